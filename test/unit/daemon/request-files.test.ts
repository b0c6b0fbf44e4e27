import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Model, type ModelRequest, PLAIN_FORM } from '../../../src/agents/index.ts';
import { checkLaws, type Entry, partsOf } from '../../../src/conversation/index.ts';
import { fsck } from '../../../src/daemon/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { createMemoryStore } from '../../../src/persistence/memory/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { filesIn, hashOf, type SampleFile, sampleFile } from '../../support/sample-files.ts';
import { createDaemon, type TestDaemon, type TestDaemonOptions } from './daemon.ts';

/** Files of posts in the requests of a daemon. */

let daemon: TestDaemon;
const data = folderPerTest();
afterEach(() => daemon.end());

const SEEING = { form: { ...PLAIN_FORM, accepts: ['image'] as const } };
const PNG = sampleFile('image/png', 1);

async function posted(files: readonly SampleFile[], options: TestDaemonOptions = {}) {
  const store = options.store ?? createMemoryStore();
  daemon = createDaemon({ window: SEEING, ...options, store });
  for (const { part, bytes } of files) {
    const { type: _, name: __, ...facts } = part;
    await store.blobs.put(facts, async function* () {
      yield bytes;
    });
  }
  const worker = await daemon.workers.use('demo');
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
const startOf = (entries: readonly Entry[]) =>
  entries.find((entry) => entry.type === 'turn-started') as Extract<Entry, { type: 'turn-started' }>;

describe('files in the requests of a turn', () => {
  it('a model that takes pictures gets their bytes, and the hash in the log is that of the bytes that explain shows', async () => {
    const { worker } = await posted([PNG]);
    await expect.poll(() => daemon.calls.length).toBe(1);
    const { request } = daemon.calls[0]!;
    const { files, faults } = filesOf(request);
    expect([faults, files.map(({ data }) => hashOf(data))]).toEqual([[], [PNG.part.sha256]]);
    const hash = createHash('sha256').update(bodyOf(request)).digest('hex');
    expect(startOf(worker.entries()).requestHash).toBe(hash);
    daemon.calls[0]?.answer('a picture');
    await expect.poll(() => worker.state.agents.pm?.turn ?? null).toBeNull();
    const at = worker.entries().findIndex((entry) => entry.type === 'message' && entry.role === 'assistant');
    const shown = await daemon.request('view', { conversation: 'demo', agent: 'pm', at, body: true });
    const { body, report } = (
      shown as never as { body: { body: string; report: { requestHash: string; sent: unknown } } }
    ).body;
    expect(createHash('sha256').update(body).digest('hex')).toBe(hash);
    expect(report).toMatchObject({ requestHash: hash, sent: true });
    const read = await daemon.request('view', { conversation: 'demo', agent: 'pm', at });
    const { messages } = (read as never as { body: { messages: { files?: object[] }[] } }).body;
    expect(messages.at(-1)?.files).toEqual([{ ...PNG.part, tokens: expect.any(Number) }]);
  });

  it('a fallback that takes no pictures gets the line, and the first model the bytes', async () => {
    const { worker } = await posted([PNG], { fallbacks: [{ name: 'blind', form: PLAIN_FORM }] });
    await expect.poll(() => daemon.calls.length).toBe(1);
    daemon.calls[0]?.fail('PROVIDER_ERROR');
    await expect.poll(() => daemon.calls.length).toBe(2);
    const [seeing, blind] = daemon.calls.map(({ request }) => request);
    expect(filesOf(seeing!).files).toHaveLength(1);
    expect(filesOf(blind!).files).toEqual([]);
    expect(blind?.messages.at(-1)?.content).toMatch(
      /^what is this\?\n\[file 1\.png: .*; not shown: your model takes no such files\]$/,
    );
    daemon.calls[1]?.answer('a file');
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
      expect(daemon.calls).toEqual([]);
      read.mockRestore();
      await say('m1', 'and now?');
      await expect.poll(() => daemon.calls.length).toBe(1);
      expect(filesOf(daemon.calls[0]!.request).files).toHaveLength(1);
      daemon.calls[0]?.answer('a picture');
      await expect.poll(() => worker.state.agents.pm?.turn ?? null).toBeNull();
      expect(checkLaws(worker.entries())).toEqual([]);
    },
  );

  it('a what-if and the copy of a conversation send the same bytes again', async () => {
    const asked: ModelRequest[] = [];
    const m2: Model = {
      call: async (request) => {
        asked.push(request);
        return { kind: 'answered', answer: { content: 'else', toolCalls: [] } };
      },
    };
    const { worker } = await posted([PNG], { reply: () => 'a picture', models: { m2 } });
    await expect.poll(() => worker.state.agents.pm?.turn ?? null).toBeNull();
    const hash = startOf(worker.entries()).requestHash;
    const at = worker.entries().findIndex((entry) => entry.type === 'message' && entry.role === 'assistant');
    const started = await daemon.request('what-if', { conversation: 'demo', agent: 'pm', at, model: 'm2' });
    const { id } = (started as never as { body: { id: string } }).body;
    const result = async () =>
      (await daemon.request('what-if-result', { conversation: 'demo', id })) as never as {
        body: { state: string; results: { control: { requestHash: string }[] }[] };
      };
    await expect.poll(async () => (await result()).body.state).toBe('done');
    expect(daemon.calls.at(-1)?.request.hash).toBe(hash);
    expect((await result()).body.results[0]?.control[0]?.requestHash).toBe(hash);
    expect(asked).toHaveLength(1);

    const forked = await daemon.request('fork', { conversation: 'demo', at, as: 'copy', publisher: 'alice' });
    expect(forked).toEqual(expect.objectContaining({ ok: true }));
    const copied = { conversation: 'copy', agent: 'pm', at };
    const shown = await daemon.request('view', copied);
    expect((shown as never as { body: { report: object } }).body.report).toMatchObject({
      ...{ requestHash: hash, sent: true },
    });
  });

  it('fsck makes the same requests from the files of a stopped daemon, and finds one whose picture is gone', async () => {
    const store = await openFileStore(data);
    const { worker } = await posted([PNG], { store, reply: () => 'a picture' });
    await expect.poll(() => worker.state.agents.pm?.turn ?? null).toBeNull();
    await daemon.end();
    const findings = async () =>
      (await fsck({ dataDirectory: data, repair: false, views: true })).flatMap((one) => one.findings);
    expect(await findings()).toEqual([]);
    await rm(join(data, 'blobs', PNG.part.sha256.slice(0, 2)), { recursive: true });
    expect((await findings()).map(({ kind }) => kind)).toContain('view');
  });
});
