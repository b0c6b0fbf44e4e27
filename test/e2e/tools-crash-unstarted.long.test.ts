import { appendFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import {
  type BatchProject,
  becomes,
  nextQuestion,
  openBatchProject,
  openQuestions,
} from '../support/batch.ts';
import { checkLog, finished, ofType, parseLog } from '../support/log.ts';

/**
 * A daemon that is killed after the log has the start of a risky call and before the call runs. The calls of a
 * batch are safe, risky, safe, so the risky one is the second to reach each crash point.
 */
const BETWEEN = 'before-tool-record:2';
const RECORDED = 'before-tool:2';

describe('a risky call whose daemon is killed before it runs', () => {
  const env: Record<string, string> = {};
  let project: BatchProject;
  beforeEach(async () => {
    project = await openBatchProject({}, env);
  });
  afterEach(() => project?.close());

  const auditOf = (id: string) => join(project.data, 'conversations', id, 'audit.jsonl');
  const ranOf = (id: string) => project.steps.entered(`${id}.2`);

  /** Brings the risky call of a new conversation to that point, where the daemon is killed. */
  async function killedAt(point: string, id: string): Promise<void> {
    env.PARLEY_CRASH_POINTS = point;
    const daemon = await project.up('--allow-crash-points');
    const client = await project.connect();
    await client.post({ conversation: id, publisher: 'alice', content: id });
    const { approvalId } = await nextQuestion(client, id);
    const answer = { approvalId, answer: 'approve', publisher: 'alice' } as const;
    await client.request('answer', answer).catch(() => undefined); // the daemon may be gone before it answers
    expect(await daemon.exited).toBeNull();
    await client.close();
    await project.steps.gone();
    const entries = parseLog(await project.logFile(id));
    expect(ofType(entries, 'tool-started').at(-1)?.call.position).toBe(1);
    expect(await ranOf(id)).toBe(0);
  }

  /** Starts a daemon that is not killed, and waits until the turn is over or an approval is open. */
  async function startedAgain(id: string): Promise<readonly Entry[]> {
    delete env.PARLEY_CRASH_POINTS;
    const daemon = await project.up();
    const client = await project.connect();
    const entries = await becomes(
      client,
      id,
      (known) => finished(1)(known) || openQuestions(known).some(({ mayHaveRun }) => mayHaveRun),
    );
    await client.close();
    await daemon.stop();
    return entries;
  }

  async function expectRunOnce(id: string, entries: readonly Entry[]): Promise<void> {
    expect(ofType(entries, 'approval-requested').map(({ mayHaveRun }) => mayHaveRun)).toEqual([false]);
    const starts = ofType(entries, 'tool-started').map(({ call }) => call.position);
    expect(starts).toEqual([0, 1, 2]);
    expect(await Promise.all([1, 2, 3].map((call) => project.steps.effects(`${id}.${call}`)))).toEqual([
      1, 1, 1,
    ]);
    expect(checkLog(await project.logFile(id))).toEqual([]);
    expect((await project.parley('fsck', id)).stdout).toContain('sound');
  }

  it('a risky call that did not start runs once after the restart, without a new approval', async () => {
    await killedAt(BETWEEN, 'between');
    await expectRunOnce('between', await startedAgain('between'));
  }, 60_000);

  it('a risky call that did not start runs once after two such kills', async () => {
    await killedAt(BETWEEN, 'twice');
    env.PARLEY_CRASH_POINTS = 'before-tool-record:1'; // the only outstanding call of the log
    const again = project.up('--allow-crash-points').then((daemon) => daemon.exited);
    await again.then(
      (code) => expect(code).toBeNull(),
      (error) => expect(error.message).toContain('the daemon ended with null before it was ready'),
    );
    await project.steps.gone();
    await expectRunOnce('twice', await startedAgain('twice'));
  }, 60_000);

  it.each<[string, string, string, (path: string) => Promise<unknown>]>([
    ['the audit log has its start', 'recorded', RECORDED, async () => undefined],
    ['the audit log was deleted', 'deleted', BETWEEN, (path) => rm(path)],
    ['the audit log ends before its request', 'older', BETWEEN, withoutLastRecord],
    ['the last line of the audit log is torn', 'torn', BETWEEN, (path) => appendFile(path, '{"type":"Tool')],
    ['a line of the audit log is damaged', 'damaged', BETWEEN, (path) => appendFile(path, '{"type":"Tool\n')],
  ])(
    "a risky call does not run and needs a person's decision if %s",
    async (_, id, point, harm) => {
      await killedAt(point, id);
      await harm(auditOf(id));
      const entries = await startedAgain(id);
      expect(openQuestions(entries)).toMatchObject([{ tool: 'mcp__steps__act', mayHaveRun: true }]);
      expect(await ranOf(id)).toBe(0);
      expect(checkLog(await project.logFile(id))).toEqual([]);
    },
    60_000,
  );
});

/** As a backup that was made before the risky call was requested. */
async function withoutLastRecord(path: string): Promise<void> {
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
  await writeFile(path, `${lines.slice(0, -1).join('\n')}\n`);
}
