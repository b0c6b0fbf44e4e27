import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Toolbox } from '../../../src/agents/index.ts';
import { audited } from '../../../src/daemon/conversations/worker/decider.ts';
import type { AuditRecord } from '../../../src/persistence/index.ts';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import {
  AMONG_OTHERS,
  createWorld,
  type Holder,
  postCommand,
  type World,
  type WorldOptions,
} from './world.ts';

const TOOLS = {
  judge: () => ({ kind: 'run', risk: 'safe' }) as const,
  fingerprint: (text: string) => text,
};
const TWO_CALLS = ['a', 'b'].map((id) => ({ id, name: 'shell', arguments: `{"n":"${id}"}` }));
const ENDED = 'ToolCallCompleted';

describe('the requests of tools in the audit log', () => {
  let world: World;
  afterEach(() => world.end());

  /** An agent that calls two tools; `record` sees each append to the audit log, and may refuse it. */
  async function calling(
    options: WorldOptions = {},
    record: (records: readonly AuditRecord[]) => void = () => undefined,
  ): Promise<string[]> {
    const toolbox: Toolbox = {
      definitions: () => new Map(),
      check: () => null,
      run: async () => ({ kind: 'completed', content: 'ran' }),
      close: async () => undefined,
    };
    world = createWorld({ toolbox, tools: TOOLS, ...options });
    const { toolRecords } = world.store;
    const append = toolRecords.append.bind(toolRecords);
    vi.spyOn(toolRecords, 'append').mockImplementation(async (conversation, records) => {
      record(records);
      await append(conversation, records);
      for (const { type, call } of records) world.happened.push(`${type} ${call.position}`);
    });
    await world.workers.submit('demo', postCommand('m1', 'go'));
    await vi.waitFor(() => expect(world.calls).toHaveLength(1));
    world.calls[0]?.answer(null, TWO_CALLS);
    await vi.waitFor(() => expect(world.calls).toHaveLength(2), 5_000);
    return world.happened.filter((text) => /^(ToolCall|appended .*tool-started)/.test(text));
  }
  const isOf = (text: string, ...types: string[]) => types.some((type) => text.startsWith(type));

  it('L12: are there before the log has the starts, once each, and are published after', async () => {
    const happened = await calling();
    expect(happened.slice(0, 3)).toEqual([
      'ToolCallRequested 0',
      'ToolCallRequested 1',
      expect.stringMatching(/^appended message .*tool-started tool-started/),
    ]);
    expect(happened.filter((text) => isOf(text, 'ToolCallRequested'))).toHaveLength(2);
    const published = world.audited.map(({ type, call }) => `${type} ${call.position}`).sort();
    expect(published).toEqual(happened.filter((text) => isOf(text, 'ToolCall')).sort());
  });

  it('are reused when the append after them fails and is retried', async () => {
    let failures = 0;
    const happened = await calling({}, ([first]) => {
      if (first?.type === 'ToolCallRequested' && failures++ === 0) world.faults.push(new Error('disk full'));
    });
    expect(world.lines.join()).toContain('disk full');
    expect(happened.filter((text) => isOf(text, 'ToolCallRequested'))).toHaveLength(2);
    expect(happened.filter((text) => isOf(text, ENDED))).toHaveLength(2);
  });

  it('are retried call by call when they could not be written before', async () => {
    let failures = 0;
    const happened = await calling({}, ([first]) => {
      if (first?.type === 'ToolCallRequested' && failures++ === 0) throw new Error('disk full');
    });
    expect(happened[0]).toMatch(/^appended/);
    expect(happened.filter((text) => isOf(text, 'ToolCallRequested', ENDED))).toHaveLength(4);
  });

  it('follow the starts with shared logs, so that a refused append leaves none', async () => {
    const happened = await calling({ self: AMONG_OTHERS });
    expect(happened[0]).toMatch(/^appended/);
    expect(happened.filter((text) => isOf(text, 'ToolCallRequested', ENDED))).toHaveLength(4);
  });
});

describe('a request without a start', () => {
  it.each<[string, Holder | null, readonly number[], (string | null)[]]>([
    ['proves that nothing ran, in an audit log of this daemon alone', null, [], [null]],
    ['proves nothing where a line cannot be read', null, [2], []],
    ['proves nothing where logs are shared: the daemon before may still write', AMONG_OTHERS, [], []],
  ])('%s', async (_, self, unreadable, expected) => {
    const world = createWorld({ disk: createMemoryDisk(), self: self ?? undefined });
    const call = { entry: 3, position: 0 };
    const record: AuditRecord = { type: 'ToolCallRequested', call, tool: 'shell', at: '' };
    vi.spyOn(world.store.toolRecords, 'read').mockResolvedValue({ records: [record], unreadable });
    const found = await audited('demo', world.runtime);
    expect(found.map(({ content }) => content)).toEqual(expected);
    await world.end();
  });
});
