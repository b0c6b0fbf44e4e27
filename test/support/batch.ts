import type { Entry, ParleyClient } from '../../src/client/index.ts';
import type { FakeRequest } from './fake-provider.ts';
import { followUntil, ofType } from './log.ts';
import { openProject, type Project } from './project.ts';
import { ACT, createSteps, LOOK, type Steps } from './steps.ts';

/**
 * A daemon whose one agent answers every message with a batch of three calls: safe, risky, safe. A call is named
 * after its conversation and position: `demo.1`, `demo.2`, `demo.3`. With the results, the agent answers `done`.
 */
export interface BatchProject extends Project {
  readonly steps: Steps;
  /** The requests for this conversation so far. */
  requestsOf(conversation: string): readonly FakeRequest[];
  /** Makes the model hang after the headers, at the first request or at the one with the results. */
  silence(conversation: string, request: 'first' | 'second'): void;
  speakAgain(): void;
}

const PAM = `---\nname: Pam\ndescription: works\nphases: [chat]\ntools: [${LOOK}, ${ACT}]\n---\nPERSONA OF PAM`;

/** Each publisher may approve, as with a managed server. */
export const EVERYBODY = { approvers: ['*'], ownRequests: true };

/** `env`: for each daemon that is started later. */
export async function openBatchProject(
  settings: object = {},
  env: Readonly<Record<string, string>> = {},
): Promise<BatchProject> {
  const steps = createSteps();
  const silent = new Set<string>();
  const project = await openProject({
    nats: {},
    agents: { pm: PAM },
    env,
    settings: { tools: { mcpServers: { steps: steps.server } }, approvals: EVERYBODY, ...settings },
    model(request) {
      const conversation = conversationOf(request);
      const isFirst = lastOf(request)?.role === 'user';
      if (silent.has(`${conversation} ${isFirst ? 'first' : 'second'}`)) return { hang: 'after-headers' };
      return isFirst ? { toolCalls: batchOf(conversation) } : { text: 'done' };
    },
  });
  project.defer(() => steps.gone().then(() => steps.remove()));
  const requestsOf = (conversation: string) =>
    project.provider.requests.filter((request) => conversationOf(request) === conversation);
  return Object.assign(project, {
    steps,
    requestsOf,
    silence: (conversation: string, request: string) => void silent.add(`${conversation} ${request}`),
    speakAgain: () => silent.clear(),
  });
}

function batchOf(conversation: string) {
  return [LOOK, ACT, LOOK].map((name, position) => ({
    name,
    arguments: JSON.stringify({ name: `${conversation}.${position + 1}` }),
  }));
}

const lastOf = (request: FakeRequest) => request.json.messages?.at(-1);

/** The content of the post, which is the name of the conversation. */
function conversationOf(request: FakeRequest): string {
  return request.json.messages?.findLast(({ role }) => role === 'user')?.content ?? '';
}

export type Question = Extract<Entry, { type: 'approval-requested' }>;

/** The open approvals. */
export function openQuestions(entries: readonly Entry[]): Question[] {
  const answered = new Set(ofType(entries, 'approval-answered').map(({ approvalId }) => approvalId));
  return ofType(entries, 'approval-requested').filter(({ approvalId }) => !answered.has(approvalId));
}

/** Follows until the log satisfies the condition now, not at an earlier length. */
export async function becomes(
  client: ParleyClient,
  conversation: string,
  condition: (entries: readonly Entry[]) => boolean,
): Promise<Entry[]> {
  const { length } = await client.request('entries', { conversation, limit: 1 });
  return followUntil(client, conversation, (known) => known.length >= length && condition(known));
}

/** The newest open approval; without one, the next. */
export async function nextQuestion(client: ParleyClient, conversation: string): Promise<Question> {
  const entries = await becomes(client, conversation, (known) => openQuestions(known).length > 0);
  return openQuestions(entries).at(-1) as Question;
}

/** The rule of every provider: the results of a message's calls follow it directly, in order. */
export function unpaired(messages: readonly WireMessage[]): string[] {
  const faults: string[] = [];
  let due: string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      if (due.shift() !== message.tool_call_id) faults.push(`a result out of place: ${message.tool_call_id}`);
      continue;
    }
    if (due.length > 0) faults.push(`no result of ${due.join(', ')}`);
    due = (message.tool_calls ?? []).map(({ id }) => id);
  }
  if (due.length > 0) faults.push(`no result of ${due.join(', ')}`);
  return faults;
}

export interface WireMessage {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly { readonly id: string }[];
  readonly tool_call_id?: string;
}
