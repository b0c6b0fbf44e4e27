import {
  Artifact,
  Message,
  Part,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
  type TaskStatus,
} from '@a2a-js/sdk';
import {
  type Ending,
  type Entry,
  type FilePart,
  filesOf,
  finishNotice,
  isOfAPerson,
  type MessageEntry,
  NAME_PATTERN,
  type OpenCall,
  OpenCalls,
  Progress,
  publisherOfPost,
  questionText,
  type Received,
  type Step,
  type Stopped,
  wireCallId,
} from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { conversationOf } from '../client-ids.ts';
import { verdictIn } from '../fields.ts';
import { type AddressOf, type SentPart, sentFile } from '../files.ts';

/**
 * A task: a person's post and the agent's work on it, as A2A's messages and artifacts, and what a message to it answers.
 *
 * A2A-TASK-1 Its id encodes the post: `<conversation>.<index>`. The log has the rest; no state is kept.
 * A2A-TASK-2 Each message of the agent is an artifact, with the same id live and from the log.
 * A2A-TASK-3 It needs input when only a person can continue; the status has the question.
 * A2A-TASK-4 A context keeps the client's id, even if the conversation has another.
 * A2A-TASK-5 The status depends on the entries up to its end; later posts do not change it.
 */

const FINAL: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
]);

/** A2A-TASK-1; null: not the id of a task. */
export function postOfTask(taskId: string): { readonly conversation: string; readonly index: number } | null {
  const [, conversation = '', index = ''] = /^(.+)\.(\d{1,15})$/.exec(taskId) ?? [];
  return NAME_PATTERN.test(conversation) ? { conversation, index: Number(index) } : null;
}

type Update = NonNullable<StreamResponse['payload']>;

export interface TaskPlace {
  readonly conversation: string;
  readonly address: AddressOf;
}

export class AgentTask {
  readonly id: string;
  readonly conversation: string;
  readonly #address: AddressOf;
  readonly contextId: string;
  readonly post: MessageEntry;
  readonly before: readonly Entry[];
  readonly progress: Progress;
  readonly #artifacts = new Map<string, ArtifactText>();
  readonly #history: Message[] = [];
  /** Messages of people, by index; some are answers. */
  readonly #personMessages = new Map<number, MessageEntry>();
  /** Questions by call id. */
  readonly #questions = new Map<string, string>();
  state: TaskState = TaskState.TASK_STATE_SUBMITTED;
  #message: Message | undefined;
  /** When its status was last changed. ISO 8601. */
  changedAt: string;
  /** What it asks people. */
  open: readonly OpenCall[] = [];
  /** Approvals that were open when it started, and all since. */
  approvalsRequested: number;

  /** What its sender learns with the answer, besides the task; not in the log. */
  note: Readonly<Record<string, unknown>> | undefined;

  /** `before`: the end of the log before the post, for what is open there. */
  constructor(
    { conversation, address }: TaskPlace,
    post: MessageEntry,
    agent: string | null,
    before: readonly Entry[],
    stopped?: Stopped,
  ) {
    this.id = `${conversation}.${post.index}`;
    this.conversation = conversation;
    this.#address = address;
    this.contextId = contextOf(post, conversation);
    this.post = post;
    this.before = before;
    const posts = [{ index: post.index, agents: post.to ?? [] }];
    this.progress = new Progress({ agent, before, posts, ...(stopped && { stopped }) });
    this.changedAt = post.createdAt;
    this.approvalsRequested = approvalsOpenIn(before);
    this.#remember(post);
  }

  /** The task has ended. */
  get isFinal(): boolean {
    return FINAL.has(this.state);
  }

  get needsInput(): boolean {
    return this.state === TaskState.TASK_STATE_INPUT_REQUIRED;
  }

  /** L4 */
  hasMessage(publisher: string, id: string): boolean {
    const messages = [...this.#personMessages.values()];
    return messages.some((entry) => entry.id === id && publisherOfPost(entry) === publisher);
  }

  accept(received: Received): Update[] {
    if (received.kind === 'live') return this.#advance(received);
    const updates: Update[] = [];
    for (const [place, entry] of received.entries.entries()) {
      if (this.progress.isOver) return updates;
      this.#see(entry);
      const isCurrent = received.isCurrent && place === received.entries.length - 1;
      updates.push(...this.#advance({ kind: 'entries', entries: [entry], isCurrent }));
    }
    return received.entries.length === 0 ? this.#advance(received) : updates;
  }

  snapshot(historyLength?: number): Task {
    const history =
      historyLength === undefined ? this.#history : this.#history.slice(-historyLength || Infinity);
    return {
      id: this.id,
      contextId: this.contextId,
      status: this.#status(),
      artifacts: [...this.#artifacts].map(([name, written]) => artifactOf(name, written)),
      history: historyLength === 0 ? [] : [...history],
      metadata: this.note,
    };
  }

  #advance(received: Received): Update[] {
    return this.progress.accept(received).flatMap((step) => this.#apply(step));
  }

  #see(entry: Entry): void {
    this.changedAt = entry.createdAt;
    if (entry.type === 'approval-requested') this.approvalsRequested += 1;
    if (isOfAPerson(entry)) this.#personMessages.set(entry.index, entry);
  }

  #remember(entry: MessageEntry): void {
    this.#history.push(messageFrom(Role.ROLE_USER, this.#named(entry.id), partsFrom(entry, this.#address)));
  }

  #apply(step: Step): Update[] {
    switch (step.kind) {
      case 'begun':
        return this.#enter(TaskState.TASK_STATE_WORKING);
      case 'words':
        return step.of === 'text'
          ? [this.#write(step.message, { agent: step.agent, text: step.delta }, true, false)]
          : [];
      case 'said':
        return this.#addMessage(step);
      case 'result':
        for (const index of step.entry.answers ?? []) this.#answered(step.entry, index);
        return [];
      case 'status':
        return [];
      case 'over':
        return this.#end(step.ending);
    }
  }

  #addMessage({ entry, message, text }: Extract<Step, { kind: 'said' }>): Update[] {
    for (const [position, { function: tool }] of (entry.tool_calls ?? []).entries()) {
      const call = wireCallId({ index: entry.index, position });
      if (tool.name === 'ask') this.#questions.set(call, questionText(tool.arguments));
    }
    const isTold = this.#artifacts.has(message);
    const shown = filesOf(entry).map((file) => filePart(file, this.#address));
    const files = 'value' in entry ? [...shown, dataPart(entry.value)] : shown;
    if (text.words === '' && files.length === 0 && !isTold) return [];
    const { finishReason } = entry;
    const ended = finishNotice(finishReason) === null ? {} : { finishReason };
    return [
      this.#write(message, { agent: entry.author.id, text: text.words, files, ...ended }, text.isMore, true),
    ];
  }

  /** A person's message answered a question: both belong to the history. */
  #answered({ call, id }: MessageEntry, index: number): void {
    const entry = this.#personMessages.get(index);
    const question = call && this.#questions.get(wireCallId(call));
    if (!entry || question === undefined) return;
    this.#history.push(messageFrom(Role.ROLE_AGENT, this.#named(id), [textPart(question)]));
    this.#remember(entry);
  }

  #end(ending: Ending): Update[] {
    if (ending.kind === 'waits') {
      this.open = ending.open;
      const asked = ending.open.map(({ question }) => question).join('\n');
      const details = ending.open.flatMap(({ approval, agent, tool, arguments: given }) => {
        const { id: approvalId, mayHaveRun, asks } = approval ?? {};
        const known = { approvalId, agent, tool, arguments: given, mayHaveRun };
        return approval ? [dataPart({ ...known, ...(asks && { schema: asks.schema }) })] : [];
      });
      return this.#enter(TaskState.TASK_STATE_INPUT_REQUIRED, [textPart(asked), ...details]);
    }
    if (ending.kind === 'stopped')
      return this.#enter(TaskState.TASK_STATE_SUBMITTED, [textPart(ending.refusal.message)]);
    if ('refusal' in ending) {
      const { code, message } = ending.refusal;
      return this.#enter(TaskState.TASK_STATE_FAILED, [textPart(`${code}: ${message}`)]);
    }
    const isCanceled = ending.kind === 'aborted';
    return this.#enter(isCanceled ? TaskState.TASK_STATE_CANCELED : TaskState.TASK_STATE_COMPLETED);
  }

  #enter(state: TaskState, said: Message['parts'] = []): Update[] {
    this.state = state;
    const id = `${this.id}-${this.#history.length}-status`;
    this.#message = said.length > 0 ? messageFrom(Role.ROLE_AGENT, this.#named(id), said) : undefined;
    const { id: taskId, contextId } = this;
    return [
      { $case: 'statusUpdate', value: { taskId, contextId, status: this.#status(), metadata: undefined } },
    ];
  }

  #write(name: string, written: ArtifactText, isMore: boolean, isWhole: boolean): Update {
    const known = this.#artifacts.get(name);
    const append = isMore && known !== undefined;
    this.#artifacts.set(name, append ? { ...written, text: known.text + written.text } : written);
    const { id: taskId, contextId } = this;
    const artifact = artifactOf(name, written);
    return {
      $case: 'artifactUpdate',
      value: { taskId, contextId, artifact, append, lastChunk: isWhole, metadata: undefined },
    };
  }

  #status(): TaskStatus {
    return { state: this.state, message: this.#message, timestamp: this.changedAt };
  }

  #named(id: string) {
    return { id, taskId: this.id, contextId: this.contextId };
  }
}

function approvalsOpenIn(entries: readonly Entry[]): number {
  const calls = new OpenCalls();
  for (const entry of entries) calls.observe(entry);
  return calls.of(() => true).filter(({ approval }) => approval !== null).length;
}

function contextOf({ meta }: MessageEntry, conversation: string): string {
  const { contextId } = (meta?.a2a ?? {}) as { readonly contextId?: unknown };
  return typeof contextId === 'string' && conversationOf(contextId) === conversation
    ? contextId
    : conversation;
}

interface ArtifactText {
  readonly agent: string;
  readonly text: string;
  readonly files?: readonly Part[];
  /** Why the model stopped, if unusual. */
  readonly finishReason?: string | undefined;
}

function artifactOf(artifactId: string, { agent, text, files = [], finishReason }: ArtifactText): Artifact {
  const metadata = finishReason === undefined ? undefined : { finishReason };
  return {
    ...Artifact.fromJSON({ artifactId, name: agent, metadata }),
    parts: [...(text === '' && files.length > 0 ? [] : [textPart(text)]), ...files],
  };
}

const textPart = (text: string): Part => Part.fromJSON({ text, mediaType: 'text/plain' });
const dataPart = (data: unknown): Part => Part.fromJSON({ data, mediaType: 'application/json' });

/** A file where readers of the conversation get it. */
const filePart = (file: FilePart, address: AddressOf): Part =>
  Part.fromJSON({ url: address(file), mediaType: file.mediaType, filename: file.name });

/** A message of the log: its text, and its files. */
const partsFrom = (entry: Pick<MessageEntry, 'content' | 'parts'>, address: AddressOf): Part[] =>
  entry.parts?.map((part) => (part.type === 'text' ? textPart(part.text) : filePart(part, address))) ?? [
    textPart(entry.content ?? ''),
  ];

/** `place`: its id, and its task and context. */
function messageFrom(
  role: Role,
  { id, ...place }: { readonly id: string; readonly taskId: string; readonly contextId: string },
  parts: Part[],
): Message {
  return { ...Message.fromJSON({ messageId: id, ...place, role }), parts };
}

interface Content {
  /** The parts of text. */
  readonly text: string;
  /** The objects of the parts of data, as one. */
  readonly data: Readonly<Record<string, unknown>>;
  /** All parts in order, as an agent reads them: data as fenced JSON. */
  readonly parts: readonly SentPart[];
}

export function contentOf({ parts }: Message): Content {
  const texts: string[] = [];
  const words: SentPart[] = [];
  let data: Record<string, unknown> = {};
  for (const [at, { content, filename }] of parts.entries()) {
    const as = { where: `message.parts.${at}`, ...(filename && { name: filename }) };
    if (content?.$case === 'text') {
      texts.push(content.value);
      words.push({ type: 'text', text: content.value });
    } else if (content?.$case === 'data') {
      const { value } = content;
      if (value !== null && typeof value === 'object' && !Array.isArray(value)) data = { ...data, ...value };
      words.push({ type: 'text', text: `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\`` });
    } else if (content?.$case === 'raw') words.push({ ...as, type: 'sent', bytes: content.value });
    else if (content?.$case === 'url') words.push(sentFile(content.value, as));
    else throw new ParleyError('CONTENT_NOT_SUPPORTED', `${as.where} has no text, data, raw or url`);
  }
  return { text: texts.join('\n'), data, parts: words };
}

type Reply =
  | {
      readonly kind: 'words';
      readonly agent: string;
      readonly replyTo: string;
      readonly parts: readonly SentPart[];
    }
  | { readonly kind: 'verdict'; readonly approvalId: string; readonly body: Record<string, unknown> };

const VERDICTS = ['approve', 'deny', 'rerun', 'failed', 'result'];

/**
 * Reads a message to a task that needs input.
 * `requested`: the number of approvals that the sender may have seen in this task.
 *
 * ANSWER-1 To a question, the text is the answer.
 * ANSWER-2 To an approval, the answer is an object like the body of `POST /api/approvals/<id>`, or text that starts with
 *    the answer. Anything else is refused, not guessed.
 * ANSWER-3 With several open approvals, the message must name one of them. Otherwise it is refused: it must not release a
 *    call that it did not mean.
 * ANSWER-4 After a second approval request, every answer except `deny` must name its approval: the call that the sender saw
 *    may be answered already, and another one open.
 */
export function replyOf(message: Message, open: readonly OpenCall[], requested: number): Reply {
  const { text, data, parts } = contentOf(message);
  const call = callOf(data.approvalId, open);
  const { approval, agent, place } = call;
  if (!approval) return { kind: 'words', agent, replyTo: wireCallId(place), parts };
  if (parts.some(({ type }) => type !== 'text')) {
    const hint = 'send it with a message of its own';
    throw new ParleyError('CONTENT_NOT_SUPPORTED', 'the answer to an approval has no files', { hint });
  }
  const body = verdictOf(text, data);
  if (data.approvalId === undefined && requested > 1 && body.answer !== 'deny') {
    const problem = `this task asked for ${requested} approvals, and the message names none`;
    throw new ParleyError('BAD_REQUEST', problem, { hint: naming([approval]) });
  }
  return { kind: 'verdict', approvalId: approval.id, body };
}

function callOf(approvalId: unknown, open: readonly OpenCall[]): OpenCall {
  const [first] = open;
  if (!first) throw new ParleyError('TASK_TAKES_NO_INPUT', 'no question to a person is open in this task');
  const approvals = open.flatMap(({ approval }) => approval ?? []);
  if (approvalId === undefined && (first.approval === null || approvals.length === 1)) return first;
  const named = open.find(({ approval }) => approval?.id === approvalId);
  if (named?.approval) return named;
  const problem =
    approvalId === undefined
      ? `${approvals.length} calls of tools wait for approval, and the message names none`
      : `no approval ${JSON.stringify(approvalId)} is open in this task`;
  throw new ParleyError('BAD_REQUEST', problem, { hint: naming(approvals) });
}

function naming(approvals: readonly { readonly id: string }[]): string {
  const ids = approvals.map(({ id }) => id).join(', ') || 'none';
  return `send {"approved": true, "approvalId": …} as data; open are ${ids}`;
}

/** ANSWER-2. Text beside an object is the reason. */
function verdictOf(text: string, data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const verdict = verdictIn({ ...data, reason: data.reason ?? text });
  if (verdict) return verdict;
  const [, word = '', rest = ''] = /^\s*([a-z]+)[\s:,.]*([\s\S]*)$/i.exec(text) ?? [];
  const answer = word.toLowerCase();
  if (VERDICTS.includes(answer))
    return { answer, ...(answer === 'result' ? { result: rest } : rest && { reason: rest }) };
  throw new ParleyError('BAD_REQUEST', 'a call of a tool waits for approval', {
    hint: 'send {"approved": true} or {"approved": false} as data, or the word approve or deny',
  });
}
