import { describe, expect, it, vi } from 'vitest';
import type { Command, FilePart } from '../../../src/conversation/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { perTest } from '../../support/lifetime.ts';
import { namesOn } from '../../support/memory-disk.ts';
import { AMONG_OTHERS, createDaemon, postCommand, type TestDaemon } from './daemon.ts';

const postWith = (parts: readonly FilePart[]): Command => {
  const author = { id: 'alice', name: 'Alice' };
  return { type: 'post', post: { id: 'm1', content: 'one', delivery: 'steer', author, parts } };
};
const types = (entries: readonly { type: string }[]) => entries.map(({ type }) => type);

describe('one conversation at work', () => {
  const daemon = perTest(() => createDaemon());

  it('appends, then acts, then answers (WORKER-2)', async () => {
    const worker = await daemon.workers.use('demo');
    await worker.submit(postCommand('m1', 'hello')).then(() => daemon.happened.push('answered'));
    expect(daemon.happened).toEqual([
      'appended message turn-started',
      'published message turn-started',
      'called pm',
      'answered',
    ]);
    daemon.calls[0]?.answer('hi');
    await expect.poll(() => worker.state.length).toBe(5);
    expect(types(worker.entries())).toEqual([
      'message',
      'turn-started',
      'message',
      'title-set',
      'turn-ended',
    ]);
    expect(worker.entries()[2]).toMatchObject({
      content: 'hi',
      requestHash: daemon.calls[0]?.request.hash,
      upTo: 1,
    });
  });

  it('writes the hash of the request at the start of its turn', async () => {
    const worker = await daemon.posted('hello');
    expect(worker.entries()[1]).toMatchObject({
      type: 'turn-started',
      requestHash: daemon.calls[0]?.request.hash,
    });
  });

  it('appends waiting commands together, and decides them in order (WORKER-1)', async () => {
    const worker = await daemon.workers.use('demo');
    const replies = await Promise.all(
      [1, 2, 3].map((n) => worker.submit(postCommand(`m${n}`, `number ${n}`))),
    );
    expect(daemon.appends).toEqual([4]);
    expect(replies.map((reply) => (reply.kind === 'posted' ? reply.index : -1))).toEqual([0, 2, 3]);
    expect(types(worker.entries())).toEqual(['message', 'turn-started', 'message', 'message']);
  });

  it('appends nothing for a command without effect', async () => {
    const worker = await daemon.posted('hello');
    const before = daemon.appends.length;
    expect(await worker.submit(postCommand('m1', 'hello'))).toMatchObject({
      kind: 'posted',
      duplicate: true,
      index: 0,
    });
    expect(await worker.submit(postCommand('m1', 'other'))).toMatchObject({
      refusal: { code: 'ID_CONFLICT' },
    });
    expect(daemon.appends.length).toBe(before);
  });

  it('undoes entries that could not be appended: the senders get the error, nothing is published, no call is made', async () => {
    const worker = await daemon.workers.use('demo');
    daemon.faults.push(new Error('no space left'));
    const outcomes = await Promise.allSettled([
      worker.submit(postCommand('m1', 'one')),
      worker.submit(postCommand('m2', 'two')),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect([daemon.published.length, daemon.calls.length, worker.state.length]).toEqual([0, 0, 0]);
    // The same again, now that there is room.
    expect(await worker.submit(postCommand('m1', 'one'))).toMatchObject({
      kind: 'posted',
      index: 0,
      duplicate: false,
    });
    expect(daemon.calls.length).toBe(1);
    expect(daemon.calls[0]?.request.messages.at(-1)?.content).toBe('one');
  });

  it('a post that arrives while the file of an earlier one cannot be looked up does not overtake it (POSTS-5)', async () => {
    const worker = await daemon.workers.use('demo');
    let later: Promise<unknown> | null = null;
    vi.spyOn(daemon.store.blobs, 'facts').mockImplementationOnce(async () => {
      later = worker.submit(postCommand('m2', 'two'));
      throw new Error('EMFILE: too many open files');
    });
    const file = { type: 'file' as const, sha256: 'a'.repeat(64), mediaType: 'text/plain', size: 1 };
    await expect(worker.submit(postWith([file]))).rejects.toThrow('EMFILE');
    await expect(later).rejects.toThrow('EMFILE');
    expect(worker.entries()).toEqual([]);
  });

  it('rejects the command at a conflict, and starts no effect (L3)', async () => {
    const worker = await daemon.workers.use('demo');
    daemon.faults.push({ kind: 'conflict', length: 7 });
    await expect(worker.submit(postCommand('m1', 'one'))).rejects.toMatchObject(
      errorWith('LOG_CONFLICT', 'demo', /one daemon/),
    );
    expect([daemon.calls.length, worker.state.length]).toEqual([0, 0]);
  });

  it('shows only durable entries', async () => {
    const worker = await daemon.workers.use('demo');
    const submitted = worker.submit(postCommand('m1', 'one'));
    expect([worker.state.length, worker.entries().length]).toEqual([0, 0]);
    await submitted;
    expect([worker.state.length, worker.entries().length]).toEqual([2, 2]);
  });

  it('makes the same request after an undone append', async () => {
    const worker = await daemon.posted('one');
    daemon.calls[0]?.answer('first');
    await expect.poll(() => worker.state.length).toBe(5);
    daemon.faults.push(new Error('no space left'));
    await expect(worker.submit(postCommand('lost', 'never said'))).rejects.toThrow('no space');
    await worker.submit(postCommand('m2', 'two'));
    expect(daemon.calls[1]?.request.messages.slice(1).map(({ content }) => content)).toEqual([
      'one',
      'first',
      'two',
    ]);
  });

  it('retries a report whose append failed', async () => {
    vi.useFakeTimers();
    try {
      const worker = await daemon.posted('one');
      daemon.faults.push(new Error('no space left'), new Error('still none'));
      daemon.calls[0]?.answer('worth its money');
      await vi.advanceTimersByTimeAsync(500);
      expect(worker.state.length).toBe(2);
      await vi.advanceTimersByTimeAsync(2_000);
      expect(worker.state.length).toBe(5);
      expect(worker.entries()[2]).toMatchObject({ content: 'worth its money' });
      expect(daemon.calls.length).toBe(1);
      expect(daemon.lines.filter((line) => line.includes('could not be appended')).length).toBeGreaterThan(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('records a failing model as an entry and continues (L16)', async () => {
    const worker = await daemon.posted('one');
    daemon.calls[0]?.say('half ');
    daemon.calls[0]?.fail();
    await expect.poll(() => worker.state.length).toBe(4);
    expect(worker.entries().at(-2)).toMatchObject({
      partType: 'error',
      content: 'half \n\nLLM_ERROR {"code":"PROVIDER_ERROR","message":"No luck."}',
    });
    expect(worker.entries().at(-1)).toMatchObject({ outcome: 'failed' });
  });

  it('aborts a running call when a person stops it, and keeps its partial answer', async () => {
    const worker = await daemon.posted('one');
    daemon.calls[0]?.say('half ');
    const by = { kind: 'person', id: 'alice', name: 'Alice' } as const;
    await worker.submit({ type: 'stop', agent: null, by });
    expect(daemon.calls[0]?.signal.aborted).toBe(true);
    await expect
      .poll(() => worker.entries().at(-1))
      .toMatchObject({ type: 'turn-ended', outcome: 'aborted' });
    expect(worker.entries().at(-2)).toMatchObject({ type: 'message', content: 'half ' });
  });

  it('does not call a model whose request the guard refuses, and records that in the log (L13)', async () => {
    const worker = await daemon.posted('中'.repeat(120_000));
    await expect.poll(() => worker.state.length).toBe(4);
    expect(daemon.calls.length).toBe(0);
    expect(worker.entries()[2]).toMatchObject({
      content: expect.stringContaining('CONTEXT_STILL_TOO_LARGE'),
    });
  });
});

describe('a conversation across restarts', () => {
  it('continues after a stop during a call with the same request, one answer and no loss', async () => {
    const disk = createMemoryDisk();
    const first = createDaemon({ disk });
    await first.workers.recover();
    await first.workers.submit('demo', postCommand('m1', 'hello'));
    await first.workers.submit('demo', postCommand('m2', 'and more'));
    first.calls[0]?.say('never kept');
    await first.end();
    expect(disk.logs.get('demo')?.some((line) => line.includes('turn-ended'))).toBe(false);
    expect(namesOn(disk, 'open.')).toEqual(['demo']);

    const second = createDaemon({ disk });
    await second.workers.recover();
    expect(second.calls.length).toBe(1);
    expect(second.calls[0]?.request.hash).toBe(first.calls[0]?.request.hash);
    expect(
      Buffer.concat(second.calls[0]?.request.body ?? []).equals(
        Buffer.concat(first.calls[0]?.request.body ?? []),
      ),
    ).toBe(true);
    second.calls[0]?.answer('hi');
    await expect.poll(() => second.calls.length).toBe(2);
    expect(second.calls[1]?.request.messages.slice(1).map(({ content }) => content)).toEqual([
      'hello',
      'hi',
      'and more',
    ]);
    second.calls[1]?.answer('done');
    await expect
      .poll(async () => types(await second.entries()).filter((type) => type === 'turn-ended').length)
      .toBe(2);
    await second.end();
    expect(namesOn(disk, 'open.')).toEqual([]);

    const third = createDaemon({ disk });
    await third.workers.recover();
    expect(third.calls.length).toBe(0);
    await third.end();
  });

  it('finishes a running turn while it drains, and starts no further one', async () => {
    const disk = createMemoryDisk();
    const daemon = createDaemon({ disk });
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    await daemon.workers.submit('demo', postCommand('m2', 'next'));
    const drained = daemon.workers.drain();
    daemon.calls[0]?.answer('hi');
    await drained;
    expect(daemon.calls.length).toBe(1);
    await daemon.workers.closeAll();
    await daemon.store.close();
    expect(types((disk.logs.get('demo') ?? []).map((line) => JSON.parse(line)))).toEqual([
      'message',
      'turn-started',
      'message',
      'message',
      'title-set',
      'turn-ended',
      'turn-started',
    ]);
    const second = createDaemon({ disk });
    await second.workers.recover();
    expect(second.calls[0]?.request.messages.at(-1)?.content).toBe('next');
    await second.end();
  });

  it('lists a conversation as it was when the daemon was killed, also if no work was outstanding', async () => {
    const disk = createMemoryDisk();
    const life = async () => {
      disk.inUse = false; // the one before was killed
      const daemon = createDaemon({ disk, reply: () => 'fine' });
      await daemon.workers.recover();
      return daemon;
    };
    const first = await life();
    await first.workers.submit('demo', postCommand('m1', 'hello'));
    await first.workers.idle();
    await first.end();
    const second = await life();
    const author = { id: 'alice', name: 'Alice' };
    const post = {
      id: 'm2',
      content: 'the invoice',
      delivery: 'steer',
      author,
      includeInContext: false,
    } as const;
    await second.workers.submit('demo', { type: 'post', post });
    const by = { kind: 'person', ...author } as const;
    await second.workers.submit('demo', { type: 'label', title: 'The new name', archived: true, by });
    const third = await life();
    const expected = { title: 'The new name', archived: true, newest: 'the invoice', length: 7 };
    expect(await third.workers.rows()).toMatchObject([expected]);
    await third.end();
    expect(namesOn(disk, 'open.')).toEqual([]);
    expect(disk.documents.get('row.demo')).toMatchObject(expected);
  });

  it('reads every log when the marks are missing, and only marked ones when they are there (WORKERS-3)', async () => {
    const disk = createMemoryDisk();
    const first = createDaemon({ disk, reply: () => 'fine' });
    await first.workers.recover();
    for (const id of ['a', 'b']) await first.workers.submit(id, postCommand('m', 'hello'));
    for (const id of ['a', 'b']) await expect.poll(async () => (await first.entries(id)).length).toBe(5);
    await first.end();
    const opened: string[] = [];
    const watch = (daemon: TestDaemon) => {
      const open = daemon.store.open;
      Object.assign(daemon.runtime, {
        store: new Proxy(daemon.store, {
          get: (target, name) =>
            name === 'open'
              ? (id: string) => {
                  opened.push(id);
                  return open(id);
                }
              : Reflect.get(target, name),
        }),
      });
    };
    const second = createDaemon({ disk });
    watch(second);
    await second.workers.recover();
    expect(opened).toEqual([]);
    await second.end();

    disk.documents.delete('marks');
    const third = createDaemon({ disk });
    watch(third);
    await third.workers.recover();
    expect(opened.sort()).toEqual(['a', 'b']);
    expect(disk.documents.has('marks')).toBe(true);
    await third.end();
  });

  it('serves the others when one log cannot be opened', async () => {
    const disk = createMemoryDisk();
    const first = createDaemon({ disk });
    await first.workers.recover();
    for (const id of ['bad', 'good']) await first.workers.submit(id, postCommand('m', 'hello'));
    await first.end();
    disk.logs.set('bad', ['{not json']);
    const second = createDaemon({ disk });
    await second.workers.recover();
    expect(second.calls.map(({ request }) => request.conversation)).toEqual(['good']);
    expect(second.lines.join('\n')).toMatch(/error a conversation cannot be opened.*"bad"/);
    await second.end();
  });
});

describe('commands that are too large for one append', () => {
  const daemon = perTest(() => createDaemon());

  const tooLarge = new ParleyError('APPEND_TOO_LARGE', 'more than one message');
  async function submitTogether(): Promise<PromiseSettledResult<unknown>[]> {
    const worker = await daemon.workers.use('demo');
    return Promise.allSettled(['m1', 'm2', 'm3'].map((id) => worker.submit(postCommand(id, id))));
  }

  it('are appended one by one, in order', async () => {
    daemon.faults.push(tooLarge);
    const outcomes = await submitTogether();
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect(daemon.appends).toHaveLength(3);
    const worker = await daemon.workers.use('demo');
    const texts = worker.entries().flatMap((entry) => (entry.type === 'message' ? [entry.content] : []));
    expect(texts).toEqual(['m1', 'm2', 'm3']);
  });

  it('fail with an earlier post that fails alone, since they would overtake it', async () => {
    daemon.faults.push(tooLarge, new Error('no space left'));
    const outcomes = await submitTogether();
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(daemon.appends).toEqual([]);
  });

  it('are refused when one alone is too large', async () => {
    daemon.faults.push(tooLarge);
    const worker = await daemon.workers.use('demo');
    await expect(worker.submit(postCommand('m1', 'one'))).rejects.toBe(tooLarge);
  });

  it('are refused when one alone is too large with the claim that precedes it', async () => {
    const other = createDaemon({ self: AMONG_OTHERS });
    other.faults.push(tooLarge);
    const worker = await other.workers.use('demo');
    await expect(worker.submit(postCommand('m1', 'one'))).rejects.toBe(tooLarge);
    await other.end();
  });

  it('do not fail with an earlier one that alone is too large: that one is never tried again', async () => {
    daemon.faults.push(tooLarge, tooLarge);
    const outcomes = await submitTogether();
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  });

  it('are shortened if they are reports: the text of the answer becomes a file (LARGE-5)', async () => {
    const worker = await daemon.posted('one');
    daemon.faults.push(tooLarge, tooLarge);
    const text = 'word '.repeat(60_000);
    daemon.calls[0]?.answer(text);
    await expect.poll(() => worker.entries().at(-1)).toMatchObject({ outcome: 'completed' });
    const answer = worker.entries().find((entry) => entry.type === 'message' && entry.role === 'assistant');
    expect(answer).toMatchObject({ content: expect.stringMatching(/^word .*\n\[Full output: @state/s) });
    expect(await daemon.store.toolRecords.readOutput('demo', answer?.id ?? '')).toBe(text);
    expect(daemon.lines.filter((line) => line.startsWith('error'))).toEqual([]);
  });

  it('fail the turn if they are reports that stay too large without long texts (LARGE-6)', async () => {
    const worker = await daemon.posted('one');
    daemon.faults.push(...Array.from({ length: 8 }, () => tooLarge));
    daemon.calls[0]?.answer('short');
    await expect.poll(() => worker.entries().at(-1)).toMatchObject({ outcome: 'failed' });
    expect(worker.entries().at(-2)).toMatchObject({
      partType: 'error',
      content: expect.stringContaining('ANSWER_TOO_LARGE'),
    });
    await worker.submit(postCommand('m2', 'two'));
    expect(daemon.calls).toHaveLength(2);
  });
});
