import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Entry, ParleyClient } from '../../src/client/index.ts';
import {
  type BatchProject,
  becomes,
  nextQuestion,
  openBatchProject,
  openQuestions,
  unpaired,
  type WireMessage,
} from '../support/batch.ts';
import { checkLog, finished, ofType, parseLog } from '../support/log.ts';
import { until } from '../support/steps.ts';

/**
 * A daemon that is killed while a batch of three calls (safe, risky, safe) is at each of its points, each in its
 * own conversation: killed, started, killed again, started again.
 */
interface Point {
  /** Of the conversation. */
  readonly id: string;
  /** The progress of the batch when the daemon is killed: in a call, before or after its effect. */
  readonly at?: { readonly call: 1 | 2 | 3; readonly moment: 'before' | 'after' };
  readonly silent?: 'first' | 'second';
  /** The risky call is approved although the one before it still runs. */
  readonly early?: true;
  /** The runner of the tool recorded its result and had no time to report it. */
  readonly audited?: true;
  /** Stays at this point for the second kill. */
  readonly again?: true;
  /** The decisions of the person when it is unknown whether the risky call happened, one per request. */
  readonly words?: readonly Word[];
  /** How often each call took effect in the end; default: once. */
  readonly effects?: readonly [number, number, number];
  /** Each start of a call: its ordinal, and whether it is marked as a repetition; default: each once. */
  readonly starts?: readonly string[];
  /** What the model reads if it differs from what the call returned. */
  readonly results?: Readonly<Record<number, RegExp>>;
}

type Word = { readonly answer: 'rerun' | 'failed' } | { readonly answer: 'result'; readonly result: string };

const before = (call: 1 | 2 | 3) => ({ call, moment: 'before' }) as const;
const after = (call: 1 | 2 | 3) => ({ call, moment: 'after' }) as const;
const FIRST_AGAIN = ['1', '1 again', '2', '3'];
const THIRD_AGAIN = ['1', '2', '3', '3 again'];
const AUDITED = /^as the audit log has it$/;
const [RERUN, FAILED] = [{ answer: 'rerun' }, { answer: 'failed' }] as const;
const SENT = { answer: 'result', result: 'it was sent' } as const;

const POINTS: readonly Point[] = [
  { id: 'before-the-batch-is-durable', silent: 'first' },
  { id: 'before-the-first-takes-effect', at: before(1), starts: FIRST_AGAIN },
  { id: 'before-the-first-has-its-result', at: after(1), effects: [2, 1, 1], starts: FIRST_AGAIN },
  {
    id: 'when-only-the-audit-log-has-the-first-result',
    ...{ at: after(1), audited: true, results: { 0: AUDITED } },
  },
  {
    id: 'in-the-first-twice',
    ...{ at: after(1), again: true, effects: [2, 1, 1], starts: FIRST_AGAIN, results: { 0: /INTERRUPTED/ } },
  },
  { id: 'while-the-person-is-asked' },
  { id: 'while-the-person-is-asked-twice', again: true },
  { id: 'answered-and-not-yet-started', at: after(1), early: true, effects: [2, 1, 1], starts: FIRST_AGAIN },
  {
    id: 'before-the-risky-one-takes-effect',
    ...{ at: before(2), words: [RERUN], starts: ['1', '2', '2', '3'] },
  },
  {
    id: 'before-the-risky-one-has-its-result',
    ...{ at: after(2), words: [SENT], results: { 1: /^it was sent$/ } },
  },
  {
    id: 'the-risky-one-and-it-did-not-happen',
    ...{ at: before(2), words: [FAILED], effects: [1, 0, 1], results: { 1: /FAILED/ } },
  },
  {
    id: 'when-only-the-audit-log-has-the-risky-result',
    ...{ at: after(2), audited: true, results: { 1: AUDITED } },
  },
  {
    id: 'while-the-person-is-told-that-it-may-have-happened',
    ...{ at: after(2), again: true, words: [FAILED], results: { 1: /FAILED/ } },
  },
  {
    id: 'in-the-risky-one-that-is-run-again',
    ...{ at: before(2), again: true, words: [RERUN, RERUN], starts: ['1', '2', '2', '2', '3'] },
  },
  { id: 'before-the-third-takes-effect', at: before(3), starts: THIRD_AGAIN },
  { id: 'before-the-third-has-its-result', at: after(3), effects: [1, 1, 2], starts: THIRD_AGAIN },
  { id: 'before-the-next-model-call-is-answered', silent: 'second' },
];

const nameOf = ({ id }: Point, call: number) => `${id}.${call}`;

describe('a daemon that is killed in the middle of a batch of calls', () => {
  let project: BatchProject;
  const logs = new Map<string, readonly Entry[]>();
  const texts = new Map<string, string>();

  beforeAll(async () => {
    project = await openBatchProject();
    for (const point of POINTS) {
      if (point.at) project.steps.hold(nameOf(point, point.at.call), point.at.moment);
      if (point.silent) project.silence(point.id, point.silent);
    }
    const first = await project.up();
    await withClient((client) => Promise.all(POINTS.map((point) => reach(client, point))));
    await first.kill9();
    await project.steps.gone();
    for (const point of POINTS.filter(({ again }) => !again))
      project.steps.release(nameOf(point, point.at?.call ?? 0));
    for (const point of POINTS.filter(({ audited }) => audited)) await audit(point);
    project.speakAgain();

    const second = await project.up();
    await withClient((client) =>
      Promise.all(POINTS.map((point) => (point.again ? reachAgain(client, point) : finish(client, point)))),
    );
    await second.kill9();
    await project.steps.gone();
    for (const point of POINTS) project.steps.release(nameOf(point, point.at?.call ?? 0));

    const third = await project.up();
    await withClient((client) => Promise.all(POINTS.map((point) => finish(client, point))));
    await third.stop();
    for (const { id } of POINTS) {
      const text = await project.logFile(id);
      texts.set(id, text);
      logs.set(id, parseLog(text));
    }
  }, 120_000);
  afterAll(() => project?.close());

  async function withClient(work: (client: ParleyClient) => Promise<unknown>): Promise<void> {
    const client = await project.connect();
    await work(client);
    await client.close();
  }

  async function answer(client: ParleyClient, approvalId: string, word: { answer: string; result?: string }) {
    await client.request('answer', { approvalId, publisher: 'alice', ...word } as never);
  }

  /** Brings the batch to its point. */
  async function reach(client: ParleyClient, point: Point): Promise<void> {
    await client.post({ conversation: point.id, publisher: 'alice', content: point.id });
    const isPastTheQuestion = point.silent === 'second' || (point.at?.call ?? 0) > 1 || point.early;
    if (isPastTheQuestion) {
      const { approvalId } = await nextQuestion(client, point.id);
      await answer(client, approvalId, { answer: 'approve' });
    }
    if (point.at) await isAt(point, 1);
    else if (point.silent)
      await until(() => project.requestsOf(point.id).length === (point.silent === 'first' ? 1 : 2));
    else await becomes(client, point.id, waits);
  }

  async function isAt(point: Point, times: number): Promise<void> {
    const { at } = point;
    const count = at?.moment === 'before' ? project.steps.entered : project.steps.effects;
    await until(async () => (await count(nameOf(point, at?.call ?? 0))) === times);
  }

  /** Brings it there once more, or to the approval for the unknown outcome. */
  async function reachAgain(client: ParleyClient, point: Point): Promise<void> {
    if (point.at?.call === 1) await isAt(point, 2);
    else await becomes(client, point.id, waits);
    const [word, next] = point.words ?? [];
    if (next === undefined || word === undefined) return;
    const { approvalId } = await nextQuestion(client, point.id);
    await answer(client, approvalId, word);
    await isAt(point, 2);
  }

  /** Answers open approvals until the turn is over. */
  async function finish(client: ParleyClient, point: Point): Promise<void> {
    for (;;) {
      const entries = await becomes(
        client,
        point.id,
        (known) => finished(1)(known) || openQuestions(known).length > 0,
      );
      const [question] = openQuestions(entries);
      if (question === undefined) return;
      const { approvalId, mayHaveRun } = question;
      if (mayHaveRun) await nothingRuns(client, point, approvalId);
      const said = ofType(entries, 'approval-answered').filter((entry) => entry.answer === 'rerun').length;
      const word = mayHaveRun ? point.words?.[said] : { answer: 'approve' };
      await answer(client, approvalId, word ?? { answer: 'none was expected' });
    }
  }

  /** One approval is open, and it says that the call may have happened. */
  async function nothingRuns(client: ParleyClient, point: Point, approvalId: string): Promise<void> {
    const before = await project.steps.entered(nameOf(point, 2));
    const { approvals } = await client.request('approvals', { conversation: point.id });
    expect(approvals).toMatchObject([
      { approvalId, tool: 'mcp__steps__act', risk: 'risky', mayHaveRun: true },
    ]);
    expect(await project.steps.entered(nameOf(point, 2))).toBe(before);
  }

  async function audit(point: Point): Promise<void> {
    const entries = parseLog(await project.logFile(point.id));
    const entry = ofType(entries, 'message').findLast(({ role }) => role === 'assistant')?.index;
    const call = { entry, position: (point.at?.call ?? 0) - 1 };
    const record = { type: 'ToolCallCompleted', call, result: 'as the audit log has it' };
    await appendFile(
      join(project.data, 'conversations', point.id, 'audit.jsonl'),
      `${JSON.stringify(record)}\n`,
    );
  }

  const logOf = ({ id }: Point) => logs.get(id) ?? [];

  describe.each(POINTS)('$id', (point) => {
    it('each call takes effect as often as the log permits', async () => {
      const counts = await Promise.all([1, 2, 3].map((call) => project.steps.effects(nameOf(point, call))));
      expect(counts).toEqual(point.effects ?? [1, 1, 1]);
      const starts = ofType(logOf(point), 'tool-started').map(
        ({ call, rerun }) => `${call.position + 1}${rerun ? ' again' : ''}`,
      );
      expect(starts).toEqual(point.starts ?? ['1', '2', '3']);
    });

    it('the person decides once, and again only if the outcome is unknown', () => {
      const questions = ofType(logOf(point), 'approval-requested');
      expect(questions.map(({ mayHaveRun }) => mayHaveRun)).toEqual([
        false,
        ...(point.words ?? []).map(() => true),
      ]);
      const waiting = logOf(point).map((_, at) => openQuestions(logOf(point).slice(0, at + 1)).length);
      expect(Math.max(...waiting)).toBe(1);
    });

    it('the conversation continues with a sound log and a request that any provider accepts', () => {
      expect(checkLog(texts.get(point.id) ?? '')).toEqual([]);
      const requests = project.requestsOf(point.id).map(({ json }) => (json.messages ?? []) as WireMessage[]);
      for (const messages of requests) expect(unpaired(messages)).toEqual([]);
      const results = requests.at(-1)?.slice(-3) ?? [];
      expect(results).toHaveLength(3);
      for (const [position, { content }] of results.entries()) {
        expect(content).toMatch(
          point.results?.[position] ?? new RegExp(`^${nameOf(point, position + 1)} is done$`),
        );
      }
      expect(ofType(logOf(point), 'message').at(-1)).toMatchObject({ role: 'assistant', content: 'done' });
      if (!point.silent) return;
      const [repeated, first] = project.requestsOf(point.id).slice(point.silent === 'first' ? 0 : 1);
      expect(first?.body.equals(repeated?.body ?? Buffer.alloc(0))).toBe(true);
    });
  });
});

/** An approval is open, and nothing else of the turn runs. */
function waits(entries: readonly Entry[]): boolean {
  return entries.at(-1)?.type === 'turn-ended' && openQuestions(entries).length > 0;
}
