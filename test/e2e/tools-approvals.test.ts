import { readFile, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { connect as connectToNats } from 'nats';
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
import { checkLog, finished, ofType } from '../support/log.ts';
import type { RunningDaemon } from '../support/project.ts';
import { ACT, until } from '../support/steps.ts';

/** The publisher of the commands: the user of this test. */
const USER = userInfo().username.replaceAll(/[^A-Za-z0-9_-]/g, '_');

/** Open approvals and their answers, by commands and over the bus. */
describe('a call that waits for approval', () => {
  let project: BatchProject;
  let daemon: RunningDaemon;
  let client: ParleyClient;

  beforeAll(async () => {
    project = await openBatchProject({ approvals: { approvers: ['alice', USER], ownRequests: true } });
    daemon = await project.up();
    client = await project.connect();
  });
  afterAll(() => project?.close());

  /** Posts and waits for the approval. Returns its id. */
  async function ask(conversation: string): Promise<string> {
    await client.post({ conversation, publisher: 'alice', content: conversation });
    return (await nextQuestion(client, conversation)).approvalId;
  }

  const over = (conversation: string) => becomes(client, conversation, finished(1));

  /** A reply of the request API for a NATS client: its body, and the code in its header. */
  async function requestRaw(subject: string, body: object) {
    const program = await connectToNats({ servers: daemon.ready.nats });
    try {
      const reply = await program.request(subject, JSON.stringify(body), { timeout: 10_000 });
      return {
        status: reply.headers?.get('Nats-Service-Error-Code') ?? null,
        body: JSON.parse(reply.string()),
      };
    } finally {
      await program.close();
    }
  }

  const resultOf = (conversation: string, call: number) => {
    const messages = project.requestsOf(conversation).at(-1)?.json.messages ?? [];
    return messages.slice(-3)[call - 1]?.content;
  };

  it('an approval is listed by `parley approvals` as text and JSON, and its call runs after `parley approve`', async () => {
    const approvalId = await ask('approved');
    const listed = (await project.parley('approvals', '--json')).json();
    const expected = {
      approvalId,
      conversation: 'approved',
      agent: 'pm',
      tool: ACT,
      arguments: JSON.stringify({ name: 'approved.2' }),
      risk: 'risky',
      mayHaveRun: false,
      covers: `all calls of ${ACT}`,
    };
    expect(listed).toEqual([expected]);
    expect((await requestRaw('parley.api.approvals', {})).body).toEqual({ approvals: [expected] });
    const shown = await project.parley('approvals', 'approved');
    expect(shown.stdout).toContain(`pm wants to call ${ACT} {"name":"approved.2"}`);
    expect(shown.stdout).toContain(`approve ${approvalId} --data ${project.data}`);
    expect(await project.steps.entered('approved.2')).toBe(0);

    const approved = await project.parley('approve', approvalId);
    expect([approved.code, approved.stdout]).toEqual([0, `${approvalId}: approve\n`]);
    await over('approved');
    expect(await project.steps.effects('approved.2')).toBe(1);
    expect((await project.parley('approvals', 'approved')).stdout).toBe('no pending approvals\n');
  });

  it('a call that `parley deny --reason` refuses never runs, and the model reads the reason', async () => {
    const approvalId = await ask('denied');
    const denied = await project.parley('deny', approvalId, '--reason', 'not on a Friday', '--json');
    expect([denied.code, denied.json()]).toEqual([0, [{ accepted: true }]]);
    const entries = await over('denied');
    expect(JSON.parse(resultOf('denied', 2) ?? '')).toEqual({
      error: { code: 'DENIED', message: 'a person denied this: not on a Friday' },
    });
    expect(ofType(entries, 'approval-answered')).toMatchObject([
      { approvalId, answer: 'deny', reason: 'not on a Friday', author: { kind: 'person' } },
    ]);
    expect(await project.steps.entered('denied.2')).toBe(0);
    expect(await project.steps.effects('denied.3')).toBe(1);
  });

  it('an approval accepts one answer, and refuses the second with the reason', async () => {
    const approvalId = await ask('twice');
    const answers = await Promise.all(
      ['approve', 'deny', 'approve'].map((answer) =>
        requestRaw('parley.api.answer', { approvalId, answer, publisher: 'alice' }),
      ),
    );
    const accepted = answers.filter(({ status }) => status === null);
    expect(accepted.map(({ body }) => body)).toEqual([{ accepted: true }]);
    for (const refused of answers.filter(({ status }) => status !== null)) {
      expect(refused.body).toMatchObject({
        code: 'APPROVAL_ANSWERED',
        message: `${approvalId} was answered already, or its turn is over`,
        hint: expect.any(String),
      });
    }
    const again = await project.parley('deny', approvalId);
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(again.stderr).toContain('was answered already');
    const entries = await over('twice');
    expect(ofType(entries, 'approval-answered')).toHaveLength(1);
  });

  it('a call that was interrupted is settled by `parley resolve`: run again, with a given result, or failed', async () => {
    const words: [string, string[]][] = [
      ['resolved-rerun', ['--rerun']],
      ['resolved-result', ['--result', '{"sent":1}']],
      ['resolved-failed', ['--failed']],
    ];
    await Promise.all(words.map(([conversation]) => cutShort(conversation)));
    await daemon.kill9();
    await project.steps.gone();
    for (const [conversation] of words) project.steps.release(`${conversation}.2`);
    daemon = await project.up();

    expect((await project.parley('approvals', 'resolved-failed')).stdout).toContain(
      'it may already have run',
    );
    await Promise.all(words.map(([conversation, options]) => resolve(conversation, options)));
    const effects = words.map(([conversation]) => project.steps.effects(`${conversation}.2`));
    expect(await Promise.all(effects)).toEqual([2, 1, 1]);
    expect(resultOf('resolved-rerun', 2)).toBe('resolved-rerun.2 is done');
    expect(resultOf('resolved-result', 2)).toBe('{"sent":1}');
    expect(resultOf('resolved-failed', 2)).toContain('FAILED');
  });

  /** Lets the call take effect, but not return its result. */
  async function cutShort(conversation: string): Promise<void> {
    const call = `${conversation}.2`;
    project.steps.hold(call, 'after');
    const approvalId = await ask(conversation);
    await client.request('answer', { approvalId, answer: 'approve', publisher: 'alice' });
    await until(async () => (await project.steps.effects(call)) === 1);
  }

  async function resolve(conversation: string, options: readonly string[]): Promise<void> {
    const { approvalId } = await nextQuestion(client, conversation);
    const unfitting = await requestRaw('parley.api.answer', { approvalId, answer: 'approve' });
    expect(unfitting.body).toMatchObject({
      code: 'ANSWER_DOES_NOT_FIT',
      hint: 'answer rerun, result, failed',
    });
    expect(await project.steps.effects(`${conversation}.2`)).toBe(1);
    expect((await project.parley('resolve', approvalId, ...options)).code).toBe(0);
    await over(conversation);
  }

  it('an approval stays open after a restart, even if the policy now allows everything', async () => {
    const approvalId = await ask('kept');
    expect(await daemon.stop()).toBe(0);
    await client.close();
    const file = join(project.config, 'parley.yaml');
    const settings = JSON.parse(await readFile(file, 'utf8'));
    settings.tools = { ...settings.tools, risk: { [ACT]: 'safe' }, policy: [{ tool: ACT, allow: true }] };
    await writeFile(file, JSON.stringify(settings));
    daemon = await project.up();
    client = await project.connect();

    const { approvals } = await client.request('approvals', { conversation: 'kept' });
    expect(approvals).toMatchObject([{ approvalId, tool: ACT, mayHaveRun: false }]);
    // A new call is allowed. If the old one had been released, it would have run by then.
    await client.post({ conversation: 'allowed', publisher: 'alice', content: 'allowed' });
    expect(ofType(await over('allowed'), 'approval-requested')).toEqual([]);
    expect(await project.steps.entered('kept.2')).toBe(0);
    expect((await client.request('approvals', { conversation: 'kept' })).approvals).toHaveLength(1);

    expect((await project.parley('approve', approvalId)).code).toBe(0);
    await over('kept');
    expect(await project.steps.effects('kept.2')).toBe(1);
  });

  it('approvals leave sound logs, and requests that can be explained', async () => {
    const conversations = ['approved', 'denied', 'twice', 'kept', 'resolved-rerun'];
    for (const conversation of conversations) {
      const entries = await becomes(client, conversation, hasNothingOpen);
      const at = ofType(entries, 'message').findLast(({ role }) => role === 'assistant')?.index ?? 0;
      const { messages } = await client.request('view', { conversation, agent: 'pm', at });
      const sent = (project.requestsOf(conversation).at(-1)?.json.messages ?? []) as WireMessage[];
      // The system message reflects the current configuration, which was changed in between.
      expect(messages.slice(1)).toEqual(sent.slice(1));
      expect(unpaired(sent)).toEqual([]);
    }
    expect(await daemon.stop()).toBe(0);
    for (const conversation of conversations)
      expect(checkLog(await project.logFile(conversation))).toEqual([]);
    const explained = await project.parley('explain', 'denied', '--agent', 'pm');
    expect(explained.code).toBe(0);
    expect(explained.stdout).toContain('not on a Friday');
  });
});

function hasNothingOpen(entries: readonly Entry[]): boolean {
  return openQuestions(entries).length === 0 && finished(1)(entries);
}
