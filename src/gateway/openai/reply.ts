import {
  addedUp,
  type CallersCall,
  cutBy,
  type Ending,
  type Entry,
  type EntryOf,
  type MessageEntry,
  NOTHING_USED,
  type OpenCall,
  OpenCalls,
  Progress,
  type Received,
  type Step,
  type Stopped,
  schemaIn,
  type Usage,
  type Used,
} from '../../conversation/index.ts';
import { type Refusal, refusal } from '../../kernel/index.ts';
import { fileLines } from '../files.ts';

/**
 * The reply of a conversation to one post, as one text: renders a `Progress`.
 *
 * REPLY-1 It consists of the entries from the post on. Live text is a prefix of its entry: text of a retry that differs, or
 *    of a call with a missed chunk, is not sent before the entry.
 * REPLY-2 One message at a time: messages of a second agent wait until the first agent's message is complete.
 * REPLY-3 It ends when no work is outstanding or only a person can continue: then it ends with the open question, or fails
 *    if all agents are stopped. With one addressed agent, it ends with that agent's turn.
 * REPLY-4 It is never empty without a reason: a limit or a stop is a failure, or after some text a sentence; an agent that ends
 *    its turn without text is named.
 * REPLY-7 It also ends where only its caller can continue, with the calls of the caller's tools.
 * REPLY-5 Files of an answer follow its text, each in one line: the protocol has no place for them.
 * REPLY-6 To a post with a schema it is the value as JSON, and nothing before it; without a value it fails. A turn that answers by
 *    another schema, that of its agent or of a delegation, adds its value to the reply, and nothing else.
 */

export type Said =
  | { readonly kind: 'text'; readonly text: string }
  /** `usage` null: no provider reported any. `isStopped`: the turn was stopped after some text. */
  | {
      readonly kind: 'end';
      readonly reason: Reason;
      readonly usage: Usage | null;
      readonly isStopped: boolean;
    }
  /** Calls of the caller's tools, which it answers in its next request. */
  | { readonly kind: 'calls'; readonly calls: readonly CallersCall[] }
  | { readonly kind: 'failed'; readonly refusal: Refusal };

/** The finish reasons of the last message that the protocol knows. */
export type Reason = 'stop' | 'length' | 'content_filter' | 'tool_calls';

type MessageStep = Extract<Step, { kind: 'words' | 'said' }>;

/** The message that is sent, and its text so far. */
interface Speaking {
  readonly message: string;
  sent: string;
}

interface ReplyOptions {
  readonly stopped?: Stopped | undefined;
  readonly linesOf?: (entry: MessageEntry) => string;
  /** The turns that continue with results at this index, which is no post. */
  readonly turns?: readonly { readonly turnId: string; readonly agent: string }[];
  /** It does not end before this entry. */
  readonly notBefore?: number | undefined;
  /** Agents that have a schema for their answers. */
  readonly typed?: ReadonlySet<string>;
}

/**
 * The last result that the request of the first of these entries, a post or a result, gave: of those of one append, which have
 * one time, or after a post of those to earlier calls.
 */
export function lastResult(entries: readonly Entry[]): number | undefined {
  const [first, ...more] = entries.filter((entry) => entry.type === 'message');
  const isGiven = ({ call, author, createdAt }: MessageEntry) =>
    call !== undefined &&
    call.index < (first?.index ?? 0) &&
    author.id === first?.author.id &&
    (first.call === undefined || createdAt === first.createdAt);
  return more.findLast(isGiven)?.index;
}

export class Reply {
  readonly #progress: Progress;
  readonly #stopped: Stopped | undefined;
  readonly #linesOf: (entry: MessageEntry) => string;
  #usage: Used | null = null;
  /** The messages that wait for the one that is sent (REPLY-2). */
  readonly #held: MessageStep[] = [];
  #speaking: Speaking | null = null;
  #firstSpeaker: string | null = null;
  /** The text of an answer for which no agent wrote a message. */
  #silence = 'The turn ended without a text.';
  #reason: Reason = 'stop';
  /** The agent of the newest turn that was stopped. */
  #aborted = '';
  #isOver = false;
  /** The post has a schema. */
  #isTyped = false;
  readonly #typedAgents: ReadonlySet<string>;
  /** Entries with a schema, and the turns that they started. */
  readonly #schemas = new Set<number>();
  readonly #typedTurns = new Set<string>();
  /** The newest message of a turn with a schema has no value. */
  #isWithheld = false;
  readonly #index: number;
  #out: Said[] = [];

  /** `before`: the end of the log before the post, for what is open there. */
  constructor(
    index: number,
    agents: readonly string[],
    agent: string | null,
    before: readonly Entry[] = [],
    { stopped, linesOf = fileLines, turns, notBefore, typed = new Set() }: ReplyOptions = {},
  ) {
    this.#stopped = stopped;
    this.#index = index;
    this.#linesOf = linesOf;
    this.#typedAgents = typed;
    for (const entry of before) this.#noteSchema(entry);
    const posts = turns ? [] : [{ index, agents }];
    this.#progress = new Progress({
      agent,
      posts,
      before,
      stopped,
      notBefore,
      endsAtQuestion: true,
      ...(turns && { turns }),
    });
    if (turns || agents.length > 0) return;
    this.#silence = 'No agent answers this message.';
    this.#finish({ kind: 'completed' });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Agents whose turns for the post are open. */
  get busy(): readonly string[] {
    return this.#progress.busy;
  }

  accept(received: Received): readonly Said[] {
    if (received.kind === 'entries') for (const entry of received.entries) this.#noteSchema(entry);
    const steps = this.#isOver ? [] : this.#progress.accept(received);
    if (received.kind === 'entries') for (const entry of received.entries) this.#see(entry);
    for (const step of steps) {
      if (step.kind === 'over') this.#finish(step.ending);
      else if (step.kind === 'words' && step.of === 'text' && received.kind === 'live') {
        if (!this.#givesValue(step.agent, received.chunk.turnId)) this.#say(step);
      } else if (step.kind === 'said') {
        this.#count(step.entry);
        if (!this.#givesValue(step.entry.author.id, step.entry.turnId)) this.#say(step);
        else this.#sayValue(step);
      }
    }
    return this.drain();
  }

  /** Accepts a log from the post or result on, to the end of the reply; `length`: the entries until then. */
  replay(entries: readonly Entry[]): { readonly said: readonly Said[]; readonly length: number } {
    const said = [...this.drain()];
    let length = 0;
    for (; length < entries.length && !this.#isOver; length++)
      said.push(
        ...this.accept({ kind: 'entries', entries: entries.slice(length, length + 1), isCurrent: false }),
      );
    said.push(...this.accept({ kind: 'entries', entries: [], isCurrent: true }));
    return { said, length };
  }

  /** Returns the pending output. */
  drain(): readonly Said[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #see(entry: Entry): void {
    if (!this.#progress.covers(entry.turnId)) return;
    if (entry.type === 'handoff') this.#silence = `Handed over to ${entry.to}.`;
    if (entry.type === 'turn-ended' && entry.outcome === 'aborted') this.#aborted = entry.agent;
  }

  #noteSchema(entry: Entry): void {
    if (schemaIn(entry)) this.#schemas.add(entry.index);
    this.#isTyped ||= this.#schemas.has(this.#index);
    if (entry.type !== 'turn-started') return;
    if (entry.trigger.some((index) => this.#schemas.has(index))) this.#typedTurns.add(entry.turnId);
  }

  /** REPLY-6: of its text, only the value is sent. */
  #givesValue(agent: string, turnId = ''): boolean {
    return this.#isTyped || this.#typedAgents.has(agent) || this.#typedTurns.has(turnId);
  }

  #sayValue(step: Extract<Step, { kind: 'said' }>): void {
    this.#isWithheld = !('value' in step.entry);
    if (this.#isWithheld) return;
    this.#say({ ...step, text: { isMore: true, words: JSON.stringify(step.entry.value) } });
  }

  #say(step: MessageStep): void {
    this.#speaking ??= { message: step.message, sent: '' };
    if (this.#speaking.message !== step.message) this.#held.push(step);
    else if (step.kind === 'words') this.#emit(this.#speaking, step.agent, step.delta);
    else {
      const { isMore, words } = step.text;
      const agent = step.entry.author.id;
      if (isMore) this.#emit(this.#speaking, agent, words);
      else if (!this.#speaking.sent.startsWith(words)) this.#write(`\n\n${words}`);
      const lines = 'value' in step.entry ? '' : this.#linesOf(step.entry);
      if (lines !== '')
        this.#emit(this.#speaking, agent, `${this.#speaking.sent === '' ? '' : '\n'}${lines}`);
      this.#sayHeld();
    }
  }

  #sayHeld(): void {
    this.#speaking = null;
    for (const step of this.#held.splice(0)) this.#say(step);
  }

  /** A message begins with the name of its agent, if that is not the first one. */
  #emit(speaking: Speaking, agent: string, words: string): void {
    if (words === '') return;
    const hasLead = speaking.sent === '' && this.#firstSpeaker !== null;
    const lead = !hasLead ? '' : agent === this.#firstSpeaker ? '\n\n' : `\n\n**${agent}:** `;
    this.#firstSpeaker ??= agent;
    speaking.sent += words;
    this.#write(lead + words);
  }

  #write(text: string): void {
    this.#out.push({ kind: 'text', text });
  }

  #count({ usage, finishReason }: MessageEntry): void {
    this.#reason = reasonOf(finishReason);
    if (usage) this.#usage = addedUp(this.#usage ?? NOTHING_USED, usage);
  }

  #finish(ending: Ending): void {
    this.#isOver = true;
    while (this.#held.length > 0) this.#sayHeld(); // a turn ended without the message that was sent
    const isEmpty = this.#firstSpeaker === null;
    const open = this.#progress.openCalls;
    const isStopped = open.length === 0 && isEmpty && this.#progress.hasStopped;
    const callers = ending.kind === 'waits' ? ending.callers : [];
    if (ending.kind === 'waits' && open.length + callers.length === 0)
      this.#silence =
        'The agent waits for another program, which answers its call; then it reads this message.';
    const cut = open.length + callers.length === 0 ? this.#cutOf(ending) : null;
    let failure = ending.kind === 'failed' && this.#reason === 'stop' ? agentFailed(ending.refusal) : null;
    if (isStopped) failure ??= this.#stopped?.refusal ?? null;
    const isInvalid = ending.kind === 'failed' && this.#isWithheld;
    if ((this.#isTyped || isInvalid) && isEmpty && open.length === 0) failure ??= cut ?? NO_VALUE;
    if (ending.kind === 'limited') this.#reason = 'length';
    if (!failure && open.length > 0) this.#write((isEmpty ? '' : '\n\n') + open.map(awaited).join('\n'));
    else if (!failure && cut && isEmpty) failure = cut;
    else if (!failure && cut) this.#write(`\n\n(${cut.code}: ${cut.message})`);
    else if (!failure && isEmpty && callers.length === 0 && this.#reason === 'stop')
      this.#write(`(${this.#silence})`);
    if (callers.length > 0 && !failure) {
      this.#out.push({ kind: 'calls', calls: callers });
      this.#reason = 'tool_calls';
    }
    if (failure) this.#out.push({ kind: 'failed', refusal: failure });
    else {
      const wasStopped = cut?.code === 'AGENT_STOPPED';
      this.#out.push({ kind: 'end', reason: this.#reason, usage: this.#usage, isStopped: wasStopped });
    }
  }

  /** Why the newest turn that ended did not complete. */
  #cutOf(ending: Ending): Refusal | null {
    if (ending.kind === 'aborted')
      return refusal('AGENT_STOPPED', `the turn of ${this.#aborted} was stopped`, 'the log says by whom');
    if (ending.kind !== 'limited') return null;
    const { message } = ending.refusal;
    return refusal('LIMIT_REACHED', message, '`parley resume` continues it, where the limit allows');
  }
}

const NO_VALUE = refusal(
  'AGENT_FAILED',
  'the turn ended without an answer that matches the schema',
  'the log has what it did; an agent that hands over does not pass the schema on',
);

/** Errors of an agent's model that a person must fix before a new attempt can succeed. */
const LASTING: ReadonlySet<string> = new Set([
  'BAD_REQUEST',
  'CONTEXT_STILL_TOO_LARGE',
  'CONTEXT_TOO_LONG',
  'NOT_FOUND',
  'REDIRECTED',
  'UNAUTHORIZED',
]);

function agentFailed({ code, message }: Refusal): Refusal {
  const when = LASTING.has(code) ? 'once the cause is fixed' : 'for another attempt';
  const again = `the same request gets this failure for 5 minutes: ${when} send another message, or a new idempotency-key`;
  return refusal('AGENT_FAILED', `${code}: ${message}`, `the log has the details; ${again}`);
}

function reasonOf(finishReason: string | undefined): Reason {
  if (finishReason === 'refusal') return 'content_filter';
  const cut = cutBy(finishReason);
  return cut === 'content_filter' ? cut : cut ? 'length' : 'stop'; // the protocol has no other word for an incomplete answer
}

/** What a person must do before the turn continues; the next message answers a question. */
function awaited({ approval, question }: OpenCall): string {
  if (approval === null) return question;
  const { id, mayHaveRun, asks } = approval;
  const given = asks && !asks.url ? ' --arguments JSON' : '';
  const how = mayHaveRun
    ? `parley resolve ${id} --rerun, --failed or --result JSON`
    : `parley approve ${id}${given}, or parley deny ${id}`;
  return `(Waiting for approval ${id}: ${question}. Answer it with: ${how})`;
}

/** The end of a reply that waits for this approval. */
export function approvalNotice(entry: EntryOf<'approval-requested'>): string {
  const calls = new OpenCalls();
  calls.observe(entry);
  return calls
    .of(() => true)
    .map(awaited)
    .join('');
}
