import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry, ParleyClient } from '../../../src/client/index.ts';
import { checkLaws } from '../../../src/conversation/index.ts';
import type { FakeHandler, FakeReply } from '../fake-provider.ts';
import { entriesOf, ofType } from '../log.ts';
import type { Project } from '../project.ts';
import { until } from '../steps.ts';

/**
 * The thread of a team with a coding agent: Alice asks, Pam plans and hands over, Dev edits a file after Rita has allowed it and hands
 * over, Quinn reviews the difference and hands back, Pam answers.
 */

const PERSONAS = { pm: 'PERSONA OF PAM', qa: 'PERSONA OF QUINN' } as const;

/** `dev`: the file of the coding agent. */
export const threadTeam = (dev: string) => ({
  pm: `---\nname: Pam\ndescription: plans\ntools: [handoff]\n---\n${PERSONAS.pm}`,
  dev,
  qa: `---\nname: Quinn\ndescription: reviews\ntools: [handoff]\n---\n${PERSONAS.qa}`,
});

export const THREAD_SETTINGS = { approvals: { approvers: ['rita'] }, defaultAgent: 'pm' };

/** The own coding agent, which edits a file and hands over as `editTask` says. */
export const CODING_AGENT = join(import.meta.dirname, 'agent.mjs');
export const editTask: Task = (file) =>
  `edit ${file} hello && use handoff ${JSON.stringify({ to: 'qa', summary: 'please review' })}`;

/** What Pam asks of Dev; `DONE` is in the thread when Dev has handed over. */
type Task = (file: string) => string;

/** The models of Pam and Quinn. */
export function threadModel(task: Task): FakeHandler {
  return ({ body, json }) => {
    const text = String(body);
    const file = /please make ([\w.-]+)/.exec(text)?.[1] ?? '';
    const isPam = JSON.stringify(json.messages?.[0] ?? '').includes(PERSONAS.pm);
    if (isPam && text.includes('REVIEWED')) return { text: 'It is done.' };
    if (isPam) return handOver('dev', task(file));
    return handOver('pm', `REVIEWED ${/\+hello/.test(text) ? 'the difference' : 'nothing'}`);
  };
}

function handOver(to: string, summary: string): FakeReply {
  return {
    text: 'I hand over.',
    toolCalls: [{ name: 'handoff', arguments: JSON.stringify({ to, summary }) }],
  };
}

/** Answers each approval as Rita, asks Dev to continue after each failure, until Pam has answered. Returns the log. */
export async function finishThread(
  client: ParleyClient,
  conversation: string,
  signal?: AbortSignal,
): Promise<Entry[]> {
  let entries: Entry[] = [];
  let nudged = 0;
  await until(async () => {
    if (signal?.aborted) return true;
    entries = await entriesOf(client, conversation);
    if (isFinished(entries)) return true;
    const { approvals } = await client.request('approvals', { conversation });
    for (const { approvalId } of approvals)
      await client.request('answer', { approvalId, answer: 'approve', publisher: 'rita' });
    const failures = ofType(entries, 'turn-ended').filter(({ outcome }) => outcome === 'failed').length;
    if (failures > nudged) {
      nudged = failures;
      await client.post({ conversation, content: 'continue', to: ['dev'], publisher: 'alice' });
    }
    return false;
  });
  return entries;
}

const isFinished = (entries: readonly Entry[]) => {
  const last = ofType(entries, 'handoff').findLast(({ to }) => to === 'pm');
  return (
    last !== undefined &&
    ofType(entries, 'turn-ended').some(
      ({ agent, outcome, index }) => agent === 'pm' && outcome === 'completed' && index > last.index,
    )
  );
};

/**
 * Sentences about what was lost or happened twice in a thread that has ended. `hasReport`: the coding agent lived to report its edit;
 * else the difference is in its approval alone.
 */
export function threadFaults(entries: readonly Entry[], hasReport = true): string[] {
  const faults = checkLaws(entries);
  const route = ofType(entries, 'handoff').map(({ from, to }) => `${from}>${to}`);
  if (route.join() !== 'pm>dev,dev>qa,qa>pm') faults.push(`the thread went ${route.join()}`);
  const asked = ofType(entries, 'approval-requested').map(({ approvalId }) => approvalId);
  const answered = ofType(entries, 'approval-answered').map(({ approvalId }) => approvalId);
  if (asked.join() !== answered.join()) faults.push(`asked ${asked.join()}, answered ${answered.join()}`);
  if (ofType(entries, 'approval-answered').some(({ author }) => author.id !== 'rita'))
    faults.push('somebody else than Rita answered');
  const isReviewed = ofType(entries, 'handoff').some(({ summary }) => summary === 'REVIEWED the difference');
  const isApproved = ofType(entries, 'approval-requested').some((entry) =>
    entry.arguments?.includes('+hello'),
  );
  if (!isApproved || (hasReport && !isReviewed)) {
    const seen = entries.map(({ type, ...rest }) => `${type} ${JSON.stringify(rest).slice(0, 1_000)}`);
    faults.push(`the difference was not shown:\n${seen.join('\n')}`);
  }
  return faults;
}

/** The moments of the own coding agent, from outside. */
export const moments = (state: string) => ({
  /** The agent waits at this moment of its edit until it is released. */
  hold: (moment: string, file: string) => writeFileSync(join(state, `hold-${moment}-${file}`), ''),
  release: (moment: string, file: string) => rmSync(join(state, `hold-${moment}-${file}`), { force: true }),
  /** Resolves with the agent's process. */
  async reached(moment: string, file: string): Promise<number> {
    const mark = join(state, `at-${moment}-${file}`);
    await until(() => existsSync(mark) && readFileSync(mark, 'utf8') !== '');
    return Number(readFileSync(mark, 'utf8'));
  },
  /** How often the file was edited. */
  edits(file: string): number {
    const log = join(state, 'edits.log');
    return existsSync(log)
      ? readFileSync(log, 'utf8')
          .split('\n')
          .filter((line) => line === file).length
      : 0;
  },
});

/** Ends the daemon of the project with everything that it runs, and starts another one. */
export async function killDaemon(project: Project): Promise<ParleyClient> {
  await project.daemon.kill9();
  await project.up();
  return project.connect();
}
