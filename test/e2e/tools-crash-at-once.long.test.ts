import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import type { AuditRecord } from '../../src/persistence/index.ts';
import { type BatchProject, becomes, openBatchProject, openQuestions } from '../support/batch.ts';
import { checkLog, finished, followUntil, ofType, parseLog } from '../support/log.ts';
import type { RunningDaemon } from '../support/project.ts';

/**
 * A daemon that is killed the moment an entry of a batch of calls (safe, risky, safe) is seen. What had begun by
 * then is random; the permitted outcomes are not.
 */
describe('a daemon that is killed as soon as an entry is in its log', () => {
  let project: BatchProject;
  let daemon: RunningDaemon;

  beforeAll(async () => {
    project = await openBatchProject();
    daemon = await project.up();
  });
  afterAll(() => project?.close());

  it.each<[string, string, (entries: readonly Entry[]) => boolean]>([
    ['the request of the batch', 'asked-for', (entries) => callsIn(entries)],
    ['the result of the first call', 'first', (entries) => resultsIn(entries) === 1],
    ['the answer of the person', 'answered', (entries) => ofType(entries, 'approval-answered').length === 1],
    ['the result of the risky call', 'risky', (entries) => resultsIn(entries) === 2],
    ['the result of the last call', 'last', (entries) => resultsIn(entries) === 3],
  ])(
    'the calls end correctly if the daemon is killed once the log has %s',
    async (_, conversation, isSeen) => {
      const client = await project.connect();
      await client.post({ conversation, publisher: 'alice', content: conversation });
      const seen = followUntil(client, conversation, isSeen).then(() => daemon.kill9());
      const approving = approve(conversation);
      await seen;
      await approving;
      await project.steps.gone();
      const before = await effectsOf(conversation);
      const mayHaveRun = await isRecordedAsStarted(conversation);
      if (before[1] === 1) expect(mayHaveRun).toBe(true);
      daemon = await project.up();
      if (mayHaveRun) expect((await effectsOf(conversation))[1]).toBe(before[1]);

      for (;;) {
        const entries = await becomes(client, conversation, isSettled);
        const [question] = openQuestions(entries);
        if (!question) break;
        const { approvalId } = question;
        if (question.mayHaveRun) expect(mayHaveRun).toBe(true);
        const answer = question.mayHaveRun ? 'failed' : 'approve';
        await client.request('answer', { approvalId, answer, publisher: 'alice' });
      }
      await client.close();
      const text = await project.logFile(conversation);
      const entries = parseLog(text);
      expect(checkLog(text)).toEqual([]);
      const [first = 0, risky = 0, last = 0] = await effectsOf(conversation);
      for (const [position, count] of [
        [0, first],
        [2, last],
      ]) {
        const starts = ofType(entries, 'tool-started').filter(({ call }) => call.position === position);
        expect(count).toBeGreaterThan(0);
        expect(count).toBeLessThanOrEqual(starts.length);
      }
      expect(risky).toBeLessThanOrEqual(1);
      expect(ofType(entries, 'approval-requested').length).toBeLessThanOrEqual(2);
      expect(ofType(entries, 'message').at(-1)).toMatchObject({ role: 'assistant', content: 'done' });
    },
  );

  const effectsOf = (conversation: string) =>
    Promise.all([1, 2, 3].map((call) => project.steps.effects(`${conversation}.${call}`)));

  /** The audit log has the start of the risky call. */
  async function isRecordedAsStarted(conversation: string): Promise<boolean> {
    const file = join(project.data, 'conversations', conversation, 'audit.jsonl');
    const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
    const records = lines.map((line) => JSON.parse(line) as AuditRecord);
    return records.some(({ type, call }) => type === 'ToolCallStarted' && call.position === 1);
  }

  /** Approves if it is requested before the daemon has ended. */
  async function approve(conversation: string): Promise<void> {
    const over = new AbortController();
    const client = await project.connect();
    void daemon.exited.then(() => over.abort());
    try {
      const known: Entry[] = [];
      for await (const event of client.follow(conversation, { from: 0, live: false, signal: over.signal })) {
        if (event.kind === 'entry') known.push(event.entry);
        const [question] = openQuestions(known);
        if (!question || resultsIn(known) === 0) continue;
        const { approvalId } = question;
        const body = { approvalId, answer: 'approve', publisher: 'alice' } as const;
        await client.request('answer', body, { signal: over.signal }).catch(() => undefined); // it may have ended by now
        return;
      }
    } finally {
      await client.close();
    }
  }
});

function callsIn(entries: readonly Entry[]): boolean {
  return ofType(entries, 'message').some(({ tool_calls: calls }) => calls !== undefined);
}

function resultsIn(entries: readonly Entry[]): number {
  return ofType(entries, 'message').filter(({ role }) => role === 'tool').length;
}

/** The turn is over, or waits for a person. */
function isSettled(entries: readonly Entry[]): boolean {
  return finished(1)(entries) || (openQuestions(entries).length > 0 && entries.at(-1)?.type === 'turn-ended');
}
