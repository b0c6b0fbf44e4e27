import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ModelRequest, PLAIN_FORM } from '../../../src/agents/index.ts';
import { checkLaws, type Entry, partsOf } from '../../../src/conversation/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { createMemoryStore } from '../../../src/persistence/memory/index.ts';
import { filesIn, hashOf, type SampleFile, sampleFile } from '../../support/sample-files.ts';
import { createWorld, type World, type WorldOptions } from './world.ts';

/** Files of posts in the requests of a daemon. */

let world: World;
afterEach(() => world.end());

const SEEING = { form: { ...PLAIN_FORM, accepts: ['image'] as const } };
const PNG = sampleFile('image/png', 1);

async function posted(files: readonly SampleFile[], options: WorldOptions = {}) {
  const store = options.store ?? createMemoryStore();
  world = createWorld({ window: SEEING, ...options, store });
  for (const { part, bytes } of files) {
    const { type: _, name: __, ...facts } = part;
    await store.blobs.put(facts, async function* () {
      yield bytes;
    });
  }
  const worker = await world.workers.use('demo');
  const say = (id: string, content: string, ...parts: readonly SampleFile[]) =>
    worker.submit({
      type: 'post',
      post: {
        ...{ id, content, delivery: 'steer', author: { id: 'alice', name: 'Alice' } },
        parts: partsOf(
          content,
          parts.map(({ part }) => part),
        ),
      },
    });
  await say('m0', 'what is this?', ...files);
  return { worker, store, say };
}

const bodyOf = ({ body }: ModelRequest) => Buffer.concat(body);
const filesOf = (request: ModelRequest) => filesIn(JSON.parse(bodyOf(request).toString('utf8')));
const startOf = (entries: readonly Entry[], at = 0) =>
  entries.filter((entry) => entry.type === 'turn-started')[at] as Extract<Entry, { type: 'turn-started' }>;

describe('files in the requests of a turn', () => {
  it('a model that takes pictures gets their bytes, and the hash in the log is that of the bytes that explain shows', async () => {
    const { worker } = await posted([PNG]);
    await expect.poll(() => world.calls.length).toBe(1);
    const { request } = world.calls[0]!;
    const { files, faults } = filesOf(request);
    expect([faults, files.map(({ data }) => hashOf(data))]).toEqual([[], [PNG.part.sha256]]);
    const hash = createHash('sha256').update(bodyOf(request)).digest('hex');
    expect(startOf(worker.entries()).requestHash).toBe(hash);
    world.calls[0]?.answer('a picture');
    await expect.poll(() => worker.state.agents.pm?.turn ?? null).toBeNull();
    const at = worker.entries().findIndex((entry) => entry.type === 'message' && entry.role === 'assistant');
    const shown = await world.request('view', { conversation: 'demo', agent: 'pm', at, body: true });
    const { body, report } = (
      shown as never as { body: { body: string; report: { requestHash: string; sent: unknown } } }
    ).body;
    expect(createHash('sha256').update(body).digest('hex')).toBe(hash);
    expect(report).toMatchObject({ requestHash: hash, sent: true });
    const read = await world.request('view', { conversation: 'demo', agent: 'pm', at });
    const { messages } = (read as never as { body: { messages: { files?: object[] }[] } }).body;
    expect(messages.at(-1)?.files).toEqual([{ ...PNG.part, tokens: expect.any(Number) }]);
  });

  it('a fallback that takes no pictures gets the line, and the first model the bytes', async () => {
    const { worker } = await posted([PNG], { fallbacks: [{ name: 'blind', form: PLAIN_FORM }] });
    await expect.poll(() => world.calls.length).toBe(1);
    world.calls[0]?.fail('PROVIDER_ERROR');
    await expect.poll(() => world.calls.length).toBe(2);
    const [seeing, blind] = world.calls.map(({ request }) => request);
    expect(filesOf(seeing!).files).toHaveLength(1);
    expect(filesOf(blind!).files).toEqual([]);
    expect(blind?.messages.at(-1)?.content).toMatch(
      /^what is this\?\n\[file 1\.png: .*; not shown: your model takes no such files\]$/,
    );
    world.calls[1]?.answer('a file');
    await expect.poll(() => worker.state.agents.pm?.turn ?? null).toBeNull();
    expect(checkLaws(worker.entries())).toEqual([]);
  });

  it.each([
    ['missing', 'MISSING_BLOB', 'is not stored'],
    ['damaged', 'BLOB_DAMAGED', 'is damaged'],
  ])(
    'a %s file ends the turn with what to do, and the next turn works once it is stored again',
    async (_, code, what) => {
      const store = createMemoryStore();
      const read = vi.spyOn(store.blobs, 'read').mockImplementation(async () => {
        if (code === 'MISSING_BLOB') return null;
        throw new ParleyError('BLOB_DAMAGED', 'damaged');
      });
      const { worker, say } = await posted([PNG], { store });
      await expect.poll(() => worker.entries().filter(({ type }) => type === 'turn-ended').length).toBe(1);
      const failed = worker.entries().find((entry) => entry.type === 'message' && entry.role === 'assistant');
      expect(failed).toMatchObject({ partType: 'error', content: expect.stringContaining(code) });
      expect(JSON.stringify(failed)).toContain(what);
      expect(JSON.stringify(failed)).toContain('upload the same file again');
      expect(world.calls).toEqual([]);
      read.mockRestore();
      await say('m1', 'and now?');
      await expect.poll(() => world.calls.length).toBe(1);
      expect(filesOf(world.calls[0]!.request).files).toHaveLength(1);
      world.calls[0]?.answer('a picture');
      await expect.poll(() => worker.state.agents.pm?.turn ?? null).toBeNull();
      expect(checkLaws(worker.entries())).toEqual([]);
    },
  );
});
