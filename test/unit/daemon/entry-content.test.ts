import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { bodyLength } from '../../../src/agents/index.ts';
import type { Answer, CallOutcome, FilePart } from '../../../src/conversation/index.ts';
import { hasReplacedArguments, keptReport } from '../../../src/daemon/tools/entry-content.ts';
import { createMemoryStore } from '../../../src/persistence/memory/index.ts';
import { toolCall } from '../../support/log.ts';
import { createDaemon, type TestDaemon } from './daemon.ts';

const MIB = 1024 * 1024;
const REPORT = { agent: 'pm', turnId: 't', duration: 1, requestHash: 'h', upTo: 1 };

function setUp() {
  const store = createMemoryStore();
  let ids = 0;
  const team = { files: { maxBytesPerConversation: 10 } };
  const keeper = { store, newId: () => `id-${ids++}`, maxPayload: MIB, team };
  const report = async (answer: Answer): Promise<Answer> => {
    const command = await keptReport('demo', { type: 'model-answered', answer, ...REPORT }, keeper);
    if (command.type !== 'model-answered') throw new Error(command.type);
    return command.answer;
  };
  const file = (id: string) => store.toolRecords.readOutput('demo', id);
  return { store, keeper, report, file };
}
const called = (name: string, text: string) => toolCall(name, text, 'c');
const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

describe('the files of an answer of an agent in another process', () => {
  const named = (sha256: string, name?: string): FilePart => ({
    ...{ type: 'file', sha256, mediaType: 'application/octet-stream', size: 0, ...(name && { name }) },
  });
  async function reported(...files: { bytes: string; isStored: boolean; name?: string }[]) {
    const { store, keeper } = setUp();
    const parts: FilePart[] = [];
    for (const { bytes, isStored, name } of files) {
      const content = Buffer.from(bytes);
      const sha256 = createHash('sha256').update(content).digest('hex');
      parts.push(named(sha256, name));
      const facts = { sha256, mediaType: 'image/png', size: content.length, width: 1, height: 2 };
      if (isStored) await store.blobs.put(facts, () => Readable.from([content]));
    }
    const answer = { content: 'here', toolCalls: [], files: parts };
    return keptReport('demo', { type: 'model-answered', answer, ...REPORT }, keeper);
  }

  it('get what is stored of them, and keep the names that the agent gave', async () => {
    const command = await reported({ bytes: 'abc', isStored: true, name: 'a.png' });
    expect(command).toMatchObject({
      type: 'model-answered',
      answer: { files: [{ name: 'a.png', mediaType: 'image/png', size: 3, width: 1, height: 2 }] },
    });
  });

  it.each([
    ['a file that is not stored', { bytes: 'abc', isStored: false }, 'MISSING_BLOB', 'upload it before'],
    [
      'more than the conversation may have',
      { bytes: '12345678901', isStored: true },
      'BLOB_QUOTA',
      '12 B; 10 B are',
    ],
  ])('%s fails the turn, and the text stays', async (_, file, code, message) => {
    expect(await reported({ bytes: 'a', isStored: true }, file)).toMatchObject({
      ...{ type: 'model-failed', code, partial: 'here' },
      message: expect.stringContaining(message),
    });
  });
});

it('the text of an answer whose turn attached a file fits twice: its entry has it in the parts, too', async () => {
  const { keeper, file } = setUp();
  const answer = { content: 'x'.repeat(600_000), toolCalls: [] };
  const given = { type: 'model-answered', answer, ...REPORT } as const;
  expect(await keptReport('demo', given, keeper)).toMatchObject({ answer });
  expect(await keptReport('demo', given, keeper, true)).toMatchObject({
    answer: { content: expect.stringMatching(/^x{500}\n\[Full output: /) },
  });
  expect(await file('id-0')).toBe(answer.content);
});

describe('an answer of a model', () => {
  it('an answer that fits the broker payload is written to the log unchanged', async () => {
    const { report, store } = setUp();
    const saved = vi.spyOn(store.toolRecords, 'saveOutput');
    const answer = { content: 'x'.repeat(900_000), toolCalls: [] };
    expect(await report(answer)).toBe(answer);
    expect(saved).not.toHaveBeenCalled();
  });

  it('an answer of 2 MB becomes a file and a preview that names it', async () => {
    const { report, file } = setUp();
    const content = '😀'.repeat(500_000);
    const { id = '', ...kept } = await report({ content, toolCalls: [] });
    const path = `@state/logs/tool-results/demo/${id}.json`;
    expect(kept).toMatchObject({ fullOutputPath: path });
    expect(kept.content).toBe(`${'😀'.repeat(500)}\n[Full output: ${path}]`);
    expect((await file(id)) === content).toBe(true);
  });

  it('opaque fields that are too large for an entry are left out, and the entry has their size (LARGE-4)', async () => {
    const { report } = setUp();
    const answerWith = (length: number) => ({
      content: 'Hi.',
      toolCalls: [],
      blocks: {
        boundTo: 'm',
        list: [{ type: 'opaque' as const, opaque: { signature: 'x'.repeat(length) } }],
      },
    });
    const fits = answerWith(200_000);
    expect(await report(fits)).toBe(fits);
    const large = answerWith(300_000);
    expect(await report(large)).toEqual({
      ...large,
      blocks: { boundTo: 'm', omittedBytes: sizeOf(large.blocks) },
    });
  });

  it('only the largest text of a large answer becomes a file', async () => {
    const { report } = setUp();
    const small = called('fs_read', '{"path":"@project/a"}');
    const large = called('fs_write', JSON.stringify({ path: '@project/b', content: 'x'.repeat(2 * MIB) }));
    const kept = await report({ content: 'I write.', reasoning: 'Hm.', toolCalls: [small, large] });
    expect(kept).toMatchObject({ content: 'I write.', reasoning: 'Hm.', toolCalls: [small, { id: 'c' }] });
    expect(kept.fullOutputPath).toBeUndefined(); // its words are whole
    const [, after] = kept.toolCalls;
    expect(after?.function.name).toBe('fs_write');
    const given = JSON.parse(after?.function.arguments ?? '');
    expect(hasReplacedArguments(given)).toBe(true);
    expect(JSON.stringify(given)).toContain('[Full output: @state/');
  });

  it('an answer with too much reasoning, too long names or too many calls is made to fit', async () => {
    const { report } = setUp();
    const many = Array.from({ length: 60 }, () =>
      called('shell', JSON.stringify({ command: 'x'.repeat(50_000) })),
    );
    for (const answer of [
      { content: null, reasoning: 'x'.repeat(2 * MIB), toolCalls: [] },
      { content: null, toolCalls: [called('x'.repeat(2 * MIB), '{}')] },
      { content: null, toolCalls: many },
    ]) {
      expect(sizeOf(await report(answer))).toBeLessThan(MIB);
    }
  });

  it('an answer that cannot be stored as a file is cut, and the entry says so', async () => {
    const { report, store } = setUp();
    vi.spyOn(store.toolRecords, 'saveOutput').mockRejectedValue(new Error('ENOSPC'));
    const kept = await report({ content: 'x'.repeat(2 * MIB), toolCalls: [] });
    expect(kept.content).toMatch(/^x{500}\n\[cut here: all 2097152 bytes .*ENOSPC\]$/);
    expect(kept.fullOutputPath).toBeUndefined();
  });

  it.each(['model-failed', 'model-aborted'] as const)(
    'that was cut short by %s is kept the same way',
    async (type) => {
      const { keeper, file } = setUp();
      const partial = 'y'.repeat(2 * MIB);
      const given = { type, code: 'STREAM_BROKEN', message: 'broke', partial, ...REPORT } as CallOutcome;
      const command = await keptReport('demo', given, keeper);
      expect(command).toMatchObject({ type, partial: expect.stringMatching(/^y{500}\n\[Full output: /) });
      expect((await file('id-0')) === partial).toBe(true);
      const short = { ...given, partial: 'short' } as CallOutcome;
      expect(await keptReport('demo', short, keeper)).toBe(short);
    },
  );
});

describe('a conversation with a huge answer', () => {
  let daemon: TestDaemon;
  afterEach(() => daemon.end());

  it('a conversation with a huge answer continues: the entry reaches followers and the next request fits', async () => {
    daemon = createDaemon();
    const ended = () => expect.poll(async () => (await daemon.entries()).at(-1)?.type).toBe('turn-ended');
    await daemon.deliver('first');
    daemon.calls[0]?.answer('z'.repeat(2 * MIB));
    await ended();
    const answer = (await daemon.entries()).find(
      (entry) => entry.type === 'message' && entry.role === 'assistant',
    );
    expect(answer).toMatchObject({
      content: expect.stringContaining('[Full output: '),
      fullOutputPath: `@state/logs/tool-results/demo/${answer?.id}.json`,
    });
    const page = await daemon.request('entries', { conversation: 'demo' });
    expect(page).toMatchObject({ ok: true, body: { entries: await daemon.entries() } });
    await daemon.deliver('second');
    await expect.poll(() => daemon.calls.length).toBe(2);
    expect(bodyLength(daemon.calls[1]?.request.body ?? [])).toBeLessThan(10_000);
    daemon.calls[1]?.answer('done');
    await ended();
  });
});
