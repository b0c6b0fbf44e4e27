import { setImmediate as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Toolbox, ToolOutcome } from '../../../src/agents/index.ts';
import type { ClaimHolder } from '../../../src/daemon/cluster/claims.ts';
import { audited } from '../../../src/daemon/conversations/worker/decider.ts';
import { INLINE_BYTES } from '../../../src/daemon/tools/entry-content.ts';
import { runTool } from '../../../src/daemon/tools/run-tool.ts';
import type { AuditRecord, ConversationStore } from '../../../src/persistence/index.ts';
import { createMemoryDisk, createMemoryStore } from '../../../src/persistence/memory/index.ts';
import { ofType } from '../../support/log.ts';
import { shortenWaits } from '../../support/short-waits.ts';
import { toolboxOf } from '../../support/toolbox.ts';
import {
  AMONG_OTHERS,
  claimingOwner,
  createDaemon,
  type Holder,
  postCommand,
  type TestDaemon,
  type TestDaemonOptions,
} from './daemon.ts';

const EFFECT = {
  type: 'run-tool',
  agent: 'pm',
  turnId: 't1',
  call: { index: 4, position: 1 },
  name: 'shell',
  arguments: '{"command":"ls"}',
  key: 5,
} as const;

function setUp(outcome: ToolOutcome | (() => Promise<ToolOutcome>)) {
  const run = vi.fn<Toolbox['run']>(async () => (typeof outcome === 'function' ? outcome() : outcome));
  const toolbox = toolboxOf({ run });
  const daemon = createDaemon({ toolbox });
  const signal = new AbortController().signal;
  const records = daemon.store.toolRecords;
  return {
    daemon,
    run,
    records,
    call: (more: { arguments?: string } = {}) =>
      runTool('demo', { ...EFFECT, ...more }, daemon.runtime, signal),
    audit: async () => (await records.read('demo')).records.map(({ type, result }) => [type, result]),
  };
}
const seeing = (...bytes: string[]) =>
  setUp({ kind: 'completed', content: '', files: bytes.map((one) => ({ bytes: Buffer.from(one) })) });
const giving = (content: string) => setUp({ kind: 'completed', content });

describe('running one call of a tool', () => {
  it('is in the audit log before it runs, and its result before it is reported', async () => {
    let seen: unknown;
    const { call, audit, run, records } = setUp(async () => {
      seen = (await records.read('demo')).records;
      return { kind: 'completed', content: 'two files' };
    });
    expect(await call()).toEqual({ result: 'two files' });
    expect(seen).toMatchObject([
      {
        type: 'ToolCallRequested',
        call: { entry: 4, position: 1 },
        tool: 'shell',
        arguments: EFFECT.arguments,
      },
      { type: 'ToolCallStarted' },
    ]);
    expect((await audit()).at(-1)).toEqual(['ToolCallCompleted', 'two files']);
    expect(run.mock.calls[0]?.[0]).toMatchObject({
      arguments: { command: 'ls' },
      idempotencyKey: 'demo:4:1',
    });
  });

  it('stores its files before the audit log names them (RUN-TOOL-4)', async () => {
    const { call, records, daemon } = seeing('a picture');
    const put = vi.spyOn(daemon.store.blobs, 'put');
    const append = vi.spyOn(daemon.store.toolRecords, 'append');
    const ran = await call();
    const [file] = ran?.files ?? [];
    expect(ran).toMatchObject({ result: '', files: [{ mediaType: 'text/plain', size: 9 }] });
    const [stored] = put.mock.invocationCallOrder;
    expect(append.mock.invocationCallOrder.at(-1)).toBeGreaterThan(stored ?? Number.POSITIVE_INFINITY);
    expect((await records.read('demo')).records.at(-1)).toMatchObject({
      type: 'ToolCallCompleted',
      files: [file],
    });
    expect(await audited('demo', daemon.runtime)).toMatchObject([{ content: '', files: [file] }]);
  });

  it('a file of a recorded result that was erased meanwhile is not recovered: no append may name it', async () => {
    const { call, daemon } = seeing('a picture', 'another');
    const [, kept] = (await call())?.files ?? [];
    const facts = daemon.store.blobs.facts.bind(daemon.store.blobs);
    vi.spyOn(daemon.store.blobs, 'facts').mockImplementation(async (sha256) =>
      sha256 === kept?.sha256 ? facts(sha256) : null,
    );
    expect(await audited('demo', daemon.runtime)).toMatchObject([{ files: [kept] }]);
  });

  it('is published step by step, as it is in the audit log', async () => {
    const { call, records, daemon } = giving('two files');
    await call();
    const expected = (await records.read('demo')).records.map((record) => ({
      conversation: 'demo',
      ...record,
    }));
    expect(expected).toHaveLength(3);
    expect(daemon.audited).toEqual(expected);
  });

  it.each<[string, ToolOutcome, string]>([
    ['fails', { kind: 'failed', code: 'TOOL_FAILED', message: 'no luck' }, 'no luck'],
    ['is aborted', { kind: 'aborted' }, 'unknown'],
    ['gives nothing', { kind: 'completed', content: '' }, '[no output]'],
  ])('that %s ends in a result', async (_, outcome, words) => {
    const { call, audit } = setUp(outcome);
    const ran = await call();
    expect(ran?.result).toContain(words);
    expect((await audit()).at(-1)).toEqual(['ToolCallCompleted', ran?.result]);
  });

  it.each(['{', '[1]', 'null'])('never runs with the arguments %s', async (text) => {
    const { call, run } = giving('ran');
    expect((await call({ arguments: text }))?.result).toContain('INVALID_ARGUMENTS');
    expect(run).not.toHaveBeenCalled();
  });

  it('is left open by a shutdown, with no report and no end in the audit log', async () => {
    const { call, audit, daemon } = setUp(async () => {
      daemon.shutdown.abort();
      return { kind: 'aborted' };
    });
    expect(await call()).toBeNull();
    expect((await audit()).map(([type]) => type)).toEqual(['ToolCallRequested', 'ToolCallStarted']);
  });

  it('does not happen when it cannot be recorded', async () => {
    const { call, run, records, daemon } = giving('ran');
    vi.spyOn(records, 'append').mockRejectedValue(new Error('the disk is full'));
    expect((await call())?.result).toMatch(/NOT_RUN.*the disk is full/s);
    expect(run).not.toHaveBeenCalled();
    expect(daemon.audited).toEqual([]);
  });

  it('reports its result even when the audit log cannot store it', async () => {
    const { call, records, daemon } = giving('done');
    const append = records.append.bind(records);
    vi.spyOn(records, 'append').mockImplementation(async (id, list) => {
      if (list[0]?.type === 'ToolCallCompleted') throw new Error('the disk is full');
      await append(id, list);
    });
    expect(await call()).toEqual({ result: 'done' });
    expect(daemon.lines.join()).toContain('the disk is full');
  });
});

describe('a call where several daemons share the work', () => {
  const beside = (mayAct: ClaimHolder['mayAct']) => {
    const called = giving('ran');
    const { runtime } = called.daemon;
    const self = { ...AMONG_OTHERS, daemon: 'a', mayTakeOver: () => false, mayAct };
    Object.assign(runtime, { ownership: claimingOwner(self, runtime.store) });
    return called;
  };

  it('does not run or report when another daemon owns the conversation by then', async () => {
    const { call, run, audit } = beside(async () => false);
    expect(await call()).toBeNull();
    expect(run).not.toHaveBeenCalled();
    expect((await audit()).map(([type]) => type)).toEqual(['ToolCallRequested', 'ToolCallStarted']);
  });

  it('checks the ownership last, and then runs', async () => {
    const seen: unknown[] = [];
    const { call, audit, run } = beside(async () => {
      seen.push(await audit(), run.mock.calls.length);
      return true;
    });
    expect(await call()).toEqual({ result: 'ran' });
    expect(seen).toEqual([
      [
        ['ToolCallRequested', undefined],
        ['ToolCallStarted', undefined],
      ],
      0,
    ]);
  });
});

describe('a large result', () => {
  it('is written to the log up to 51,200 bytes', async () => {
    expect(INLINE_BYTES).toBe(51_200);
    for (const content of ['x'.repeat(51_200), 'é'.repeat(25_600)]) {
      expect(await giving(content).call()).toEqual({ result: content });
    }
  });

  it.each(['x'.repeat(51_201), `${'é'.repeat(25_600)}x`])(
    'is a file from 51,201 bytes on',
    async (content) => {
      const { call, audit, records } = giving(content);
      const ran = await call();
      const path = `@state/logs/tool-results/demo/${ran?.id}.json`;
      expect(ran?.fullOutputPath).toBe(path);
      expect(ran?.result).toBe(`${content.slice(0, 500)}\n[Full output: ${path}]`);
      expect((await records.readOutput('demo', ran?.id ?? '')) === content).toBe(true);
      expect((await audit()).at(-1)).toEqual(['ToolCallCompleted', ran?.result]);
    },
  );

  it.each(['', 'a', 'ab'])('is never cut within a character (after %j)', async (before) => {
    const content = before + '😀'.repeat(20_000);
    const preview = (await giving(content).call())?.result.split('\n')[0] ?? '';
    expect(preview).not.toMatch(/\p{Surrogate}/u);
    expect([...preview]).toHaveLength(500);
    expect(content.startsWith(preview)).toBe(true);
  });

  it('also becomes a file when the broker payload is smaller', async () => {
    const { call, daemon } = giving('\u0001'.repeat(3_000)); // six bytes each as JSON
    expect((await call())?.fullOutputPath).toBeUndefined();
    Object.assign(daemon.runtime, { maxPayload: 16_384 });
    expect((await call())?.fullOutputPath).toMatch(/^@state/);
  });

  it('that cannot be stored becomes an error result', async () => {
    const { call, records } = giving('x'.repeat(60_000));
    vi.spyOn(records, 'saveOutput').mockRejectedValue(new Error('ENOSPC'));
    expect(await call()).toEqual({ result: expect.stringMatching(/OUTPUT_NOT_KEPT.*ENOSPC/s) });
  });
});

const TOOLS = {
  judge: () => ({ kind: 'run', risk: 'safe' }) as const,
  fingerprint: (text: string) => text,
};
const TWO_CALLS = ['a', 'b'].map((id) => ({ id, name: 'shell', arguments: `{"n":"${id}"}` }));
const ENDED = 'ToolCallCompleted';

describe('the requests of tools in the audit log', () => {
  let daemon: TestDaemon;
  afterEach(() => daemon.end());

  /** An agent that calls two tools; `record` sees each append to the audit log, and may refuse it. */
  async function calling(
    options: TestDaemonOptions = {},
    record: (records: readonly AuditRecord[]) => void = () => undefined,
  ): Promise<string[]> {
    const toolbox = toolboxOf({ run: async () => ({ kind: 'completed', content: 'ran' }) });
    daemon = createDaemon({ toolbox, tools: TOOLS, ...options });
    const { toolRecords } = daemon.store;
    const append = toolRecords.append.bind(toolRecords);
    vi.spyOn(toolRecords, 'append').mockImplementation(async (conversation, records) => {
      record(records);
      await append(conversation, records);
      for (const { type, call } of records) daemon.happened.push(`${type} ${call.position}`);
    });
    await daemon.workers.submit('demo', postCommand('m1', 'go'));
    await expect.poll(() => daemon.calls).toHaveLength(1);
    daemon.calls[0]?.answer(null, TWO_CALLS);
    await expect.poll(() => daemon.calls).toHaveLength(2);
    return daemon.happened.filter((text) => /^(ToolCall|appended .*tool-started)/.test(text));
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
    const published = daemon.audited.map(({ type, call }) => `${type} ${call.position}`).sort();
    expect(published).toEqual(happened.filter((text) => isOf(text, 'ToolCall')).sort());
  });

  it('are reused when the append after them fails and is retried', async () => {
    shortenWaits();
    let failures = 0;
    const happened = await calling({}, ([first]) => {
      if (first?.type === 'ToolCallRequested' && failures++ === 0) daemon.faults.push(new Error('disk full'));
    });
    expect(daemon.lines.join()).toContain('disk full');
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
    const daemon = createDaemon({ disk: createMemoryDisk(), self: self ?? undefined });
    const call = { entry: 3, position: 0 };
    const record: AuditRecord = { type: 'ToolCallRequested', call, tool: 'shell', at: '' };
    vi.spyOn(daemon.store.toolRecords, 'read').mockResolvedValue({ records: [record], unreadable });
    const found = await audited('demo', daemon.runtime);
    expect(found.map(({ content }) => content)).toEqual(expected);
    await daemon.end();
  });
});

describe('questions of the server of a call (SERVER-QUESTION-1)', () => {
  let daemon: TestDaemon;
  let approvalId: string;
  let now = 0;
  afterEach(() => daemon.end());
  const never = new AbortController().signal;
  const asks = (message: string) => ({ server: 'program', message, schema: { type: 'object' } });

  async function isAsked(message: string): Promise<void> {
    const newest = async () => {
      const last = ofType(await daemon.entries(), 'approval-requested').at(-1);
      approvalId = last?.approvalId ?? '';
      return last?.asks?.message;
    };
    await expect.poll(newest).toBe(message);
  }

  const approve = (message: string) =>
    daemon.workers.submit('demo', {
      ...{ type: 'answer', approvalId, answer: 'approve' },
      arguments: JSON.stringify({ message }),
      by: { kind: 'person', id: 'alice', name: 'Alice' },
    });

  async function resultOf(run: Toolbox['run'], answer: () => Promise<void>, store?: ConversationStore) {
    const elapsed = () => now;
    daemon = createDaemon({ toolbox: toolboxOf({ run }), tools: TOOLS, elapsed, ...(store && { store }) });
    await daemon.workers.submit('demo', postCommand('m1', 'go'));
    await expect.poll(() => daemon.calls).toHaveLength(1);
    daemon.calls[0]?.answer(null, TWO_CALLS.slice(0, 1));
    await answer();
    await expect.poll(() => daemon.calls).toHaveLength(2);
    return ofType(await daemon.entries(), 'message').find(({ toolName }) => toolName)?.content;
  }

  it('are asked one after another, also if the server gives one up and asks the next at once', async () => {
    const gaveUp = new AbortController();
    const run: Toolbox['run'] = async ({ ask }) => {
      const first = ask?.(asks('first'), gaveUp.signal);
      await isAsked('first');
      gaveUp.abort();
      const others = ['second', 'third'].map((message) => ask?.(asks(message), never));
      return { kind: 'completed', content: JSON.stringify(await Promise.all([first, ...others])) };
    };
    const result = await resultOf(run, async () => {
      for (const message of ['second', 'third']) {
        await isAsked(message);
        await approve(message);
      }
    });
    expect(result).toBe('[null,{"message":"second"},{"message":"third"}]');
  });

  it('the time in which they wait for their answers, one after another, is no time of the tool', async () => {
    const run: Toolbox['run'] = async ({ ask }) => {
      now += 1_000;
      await Promise.all(['first', 'second'].map((message) => ask?.(asks(message), never)));
      now += 500;
      return { kind: 'completed', content: 'booked' };
    };
    await resultOf(run, async () => {
      for (const message of ['first', 'second']) {
        await isAsked(message);
        now += 60_000;
        await approve(message);
      }
    });
    const result = ofType(await daemon.entries(), 'message').find(({ toolName }) => toolName);
    expect(result?.duration).toBe(1_500);
  });

  it('the answer to one that the server gives up meanwhile is not the answer to the next one', async () => {
    const gaveUp = new AbortController();
    const store = createMemoryStore();
    const open = store.open.bind(store);
    let onAnswer: () => Promise<void> = async () => undefined;
    vi.spyOn(store, 'open').mockImplementation(async (id) => {
      const opened = await open(id);
      const append = opened.log.append.bind(opened.log);
      vi.spyOn(opened.log, 'append').mockImplementation(async (expected, entries, status) => {
        if (entries.some(({ type }) => type === 'approval-answered')) await onAnswer();
        return append(expected, entries, status);
      });
      return opened;
    });
    const run: Toolbox['run'] = async ({ ask }) => {
      const first = ask?.(asks('first'), gaveUp.signal);
      await isAsked('first');
      const second = await new Promise((resolve) => {
        onAnswer = async () => {
          onAnswer = async () => undefined;
          gaveUp.abort();
          resolve(ask?.(asks('second'), never));
          await pause();
        };
        void approve('first');
      });
      return { kind: 'completed', content: JSON.stringify([await first, second]) };
    };
    const result = await resultOf(
      run,
      async () => {
        await isAsked('second');
        await approve('second');
      },
      store,
    );
    expect(result).toBe('[null,{"message":"second"}]');
  });
});
