import { type Refusal, refusal } from '../../kernel/index.ts';
import type { Entry, EntryOf, EntryType, MessageEntry } from '../log/entry.ts';
import { splitFailedAnswer } from '../log/model-failure.ts';
import { isOfAPerson } from '../state/people.ts';
import type { LiveArrival, LiveChunk, Received } from './live-text.ts';
import { type CallersCall, type OpenCall, OpenCalls } from './open-calls.ts';
import { type TurnInput, TurnWatch, turnInputOf } from './turn-watch.ts';

/**
 * The effects of one or more posts as steps, from the log and the live text. Each protocol renders the steps.
 *
 * PROGRESS-1 The log decides: live text is a prefix of its entry (`IncrementalText`).
 * PROGRESS-2 With one agent, it covers the turns that process these posts and ends with them; without one, it covers all
 *    turns until no work is outstanding.
 * PROGRESS-3 It also ends when only a person can continue, with the open questions. A post that follows a waiting turn of its agent
 *    ends with the questions of that turn.
 * PROGRESS-4 Replayed from the log, from the first post on, it gives the same steps except for live text.
 * PROGRESS-5 To continue after an answer, it starts before that answer and emits nothing until it.
 * PROGRESS-6 With `endsAtQuestion`, it ends where only a person could continue, also if one has continued since.
 */

export type Step =
  | {
      readonly kind: 'words';
      readonly of: 'text' | 'reasoning';
      readonly agent: string;
      /** Id of the message, the same live and from the log. */
      readonly message: string;
      readonly delta: string;
    }
  /** A message is complete. */
  | {
      readonly kind: 'said';
      readonly entry: MessageEntry;
      readonly message: string;
      readonly text: Rest;
      readonly reasoning: Rest;
    }
  | { readonly kind: 'result'; readonly entry: MessageEntry }
  /** The phase, the mode or an agent's status has changed. */
  | { readonly kind: 'status' }
  | { readonly kind: 'begun'; readonly entry: EntryOf<'turn-started'> }
  | { readonly kind: 'over'; readonly ending: Ending };

export type Ending =
  | { readonly kind: 'completed' | 'aborted' }
  /** `callers`: calls that the authors of these posts answer. */
  | { readonly kind: 'waits'; readonly open: readonly RootedCall[]; readonly callers: readonly CallersCall[] }
  /** `stopped`: no turn starts before a person resumes the agents. */
  | { readonly kind: 'failed' | 'limited' | 'stopped'; readonly refusal: Refusal };

/** With the post that caused the call; null: unknown. */
export type RootedCall = OpenCall & { readonly root: number | null };

/** Agents that a post was routed to and that a person has stopped. */
export interface Stopped {
  readonly agents: readonly string[];
  readonly refusal: Refusal;
}

/** `agents`: their states in that conversation. */
export function stoppedAmong(
  conversation: string,
  routed: readonly string[],
  agents: Readonly<Record<string, { readonly status: string }>>,
): Stopped {
  const stopped = routed.filter((slug) => agents[slug]?.status === 'stopped');
  return { agents: stopped, refusal: stoppedRefusal(conversation, stopped) };
}

export function stoppedRefusal(conversation: string, stopped: readonly string[]): Refusal {
  const verb = stopped.length === 1 ? 'is stopped: it answers' : 'are stopped: they answer';
  const message = `${stopped.join(', ')} ${verb} after \`parley resume ${conversation}\``;
  return refusal('AGENT_STOPPED', message, 'the message is in the log');
}

/**
 * The stop of an agent that a cancellation may revert: the only one among the entries since. Null: another person stopped it too,
 * so it stays stopped.
 */
export function revertibleStop(since: readonly Entry[], agent: string): number | null {
  const stops = since.filter(
    (entry) => entry.type === 'agent-stopped' && (entry.agent === null || entry.agent === agent),
  );
  return stops.length === 1 ? (stops[0]?.index ?? null) : null;
}

export interface ProgressOptions {
  /** The addressed agent; null: any. */
  readonly agent: string | null;
  readonly posts: readonly { readonly index: number; readonly agents: readonly string[] }[];
  /** The end of the log before the first accepted entry, for what is open there. */
  readonly before?: readonly Entry[];
  /** Turns that continue with the answers. */
  readonly turns?: readonly { readonly turnId: string; readonly agent: string }[];
  /** Agents of these posts that a person has stopped. */
  readonly stopped?: Stopped | undefined;
  readonly endsAtQuestion?: boolean;
  /** It does not end before this entry, which the same request appended. */
  readonly notBefore?: number | undefined;
  /** PROGRESS-5: no step before one of these. */
  readonly answers?: { readonly indexes: readonly number[]; readonly approvals: readonly string[] };
}

/** Whether an entry changes the phase, the mode or an agent's status. */
const CHANGES_STATUS = {
  message: false,
  'phase-entered': true,
  'mode-entered': true,
  handoff: true,
  'delegation-requested': false,
  'delegation-answered': false,
  'turn-started': true,
  'message-delivered': false,
  'turn-ended': true,
  'tool-started': false,
  'approval-requested': false,
  'approval-answered': false,
  summary: false,
  'attempt-failed': false,
  'run-started': false,
  'node-entered': true,
  'run-ended': true,
  'agent-stopped': false,
  'agent-resumed': false,
  'title-set': false,
  feedback: false,
  'session-set': false,
  'limit-reached': false,
  claim: false,
  forked: false,
  'agent-hired': false,
  'agent-dismissed': false,
  'team-changed': false,
  note: false,
} as const satisfies Record<EntryType, boolean>;

const newTexts = () => ({ text: new IncrementalText(), reasoning: new IncrementalText() });

export class Progress {
  readonly #options: ProgressOptions;
  readonly #calls = new OpenCalls();
  readonly #watch = new TurnWatch(this.#calls);
  readonly #utterances = new Utterances();
  /** Posts that no turn has processed yet. */
  readonly #untaken: Set<number>;
  /** Covered turns with their agent; null: ended. */
  readonly #own = new Map<string, string | null>();
  readonly #roots = new Roots();
  /** Live text by message. */
  readonly #texts = new Map<string, ReturnType<typeof newTexts>>();
  #ending: Ending = { kind: 'completed' };
  /** An agent ended the run: the turns of other branches are aborted (RUN-BRANCH-4), which is no failure. */
  #hasResult = false;
  #failure: Refusal | null = null;
  #limit: Refusal | null = null;
  #isSilent: boolean;
  #seen = -1;
  #isOver = false;
  #out: Step[] = [];

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#isSilent = options.answers !== undefined;
    this.#untaken = new Set(options.posts.map(({ index }) => index));
    for (const entry of options.before ?? []) {
      this.#note(entry);
      this.#utterances.observe(entry); // a running turn may process a post
    }
    for (const { index, agents } of options.posts) this.#watch.addOutstanding(index, agents);
    this.#watch.markStopped(options.stopped?.agents ?? []);
    for (const { turnId, agent } of options.turns ?? []) this.#own.set(turnId, agent);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The calls that people must answer before work continues, of covered turns and others. */
  get openCalls(): readonly OpenCall[] {
    return this.#watch.held && !this.#watch.settled ? this.#calls.of(() => true) : [];
  }

  /** A person must resume agents of the posts. */
  get hasStopped(): boolean {
    return this.#watch.stoppedAgents.length > 0;
  }

  covers(turnId: string | undefined): boolean {
    return turnId !== undefined && this.#own.has(turnId);
  }

  /** Agents whose covered turns are open. */
  get busy(): readonly string[] {
    return [...this.#own.values()].filter((agent) => agent !== null);
  }

  accept(received: Received): readonly Step[] {
    if (received.kind === 'live') this.#live(received);
    else {
      for (const entry of received.entries) this.#entry(entry);
      if (received.isCurrent) this.#endIfQuiet();
    }
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #live({ agent, chunk }: LiveArrival): void {
    if (this.#isOver || !this.#own.has(chunk.turnId)) return;
    const position = this.#utterances.receive(chunk);
    if (position === null || this.#isSilent || chunk.type === 'tool_call_delta') return;
    const texts = this.#textsOf(position.message);
    if (position.isRestart) {
      texts.text.restart();
      texts.reasoning.restart();
    }
    const delta = texts[chunk.type].add(chunk.delta);
    if (delta !== '')
      this.#out.push({ kind: 'words', of: chunk.type, agent, message: position.message, delta });
  }

  #entry(entry: Entry): void {
    if (this.#isOver) return;
    if (this.#isSilent && this.#isAnswer(entry)) this.#isSilent = false;
    this.#note(entry);
    this.#follow(entry);
    if (this.#isSilent) this.#utterances.observe(entry);
    else this.#emit(entry);
    if (!this.#isSilent && this.#isDone()) this.#finish(this.#ending);
    else if (this.#options.endsAtQuestion && this.#watch.quiet) this.#endIfQuiet();
  }

  #note(entry: Entry): void {
    this.#seen = entry.index;
    this.#watch.observe(entry);
    this.#roots.observe(entry);
  }

  #isAnswer(entry: Entry): boolean {
    const { indexes = [], approvals = [] } = this.#options.answers ?? {};
    const isApproval = entry.type === 'approval-answered' && approvals.includes(entry.approvalId);
    return isApproval || indexes.includes(entry.index);
  }

  /** Tracks the covered turns. */
  #follow(entry: Entry): void {
    const taken = turnInputOf(entry);
    if (taken) this.#begin(taken);
    else if (entry.type === 'turn-ended') this.#end(entry);
    else if (entry.type === 'run-ended') this.#hasResult = entry.author.kind === 'agent';
    else if (entry.type === 'limit-reached' && this.#own.has(entry.turnId ?? '')) {
      this.#limit = refusal('LIMIT_REACHED', entry.content);
    } else if (entry.type === 'message' && entry.partType === 'error') {
      this.#failure = failureOf(entry.content).refusal;
    }
  }

  #begin({ turnId, agent, messages }: TurnInput): void {
    const isOurs =
      this.#options.agent === null ||
      this.#own.has(turnId) ||
      (agent === this.#options.agent && messages.some((index) => this.#isPost(index)));
    if (!isOurs) return;
    this.#own.set(turnId, agent);
    for (const index of messages) this.#untaken.delete(index);
  }

  #rootOf(turnId: string): number | null {
    return this.#roots.of(turnId).find((index) => this.#isPost(index)) ?? null;
  }

  #isPost(index: number): boolean {
    return this.#options.posts.some((post) => post.index === index);
  }

  #end(entry: EntryOf<'turn-ended'>): void {
    if (!this.#own.has(entry.turnId) || entry.outcome === 'waiting') return;
    this.#own.set(entry.turnId, null);
    const failed = refusal('TURN_FAILED', `the turn of ${entry.agent} failed`);
    const limited = refusal('LIMIT_REACHED', `the turn of ${entry.agent} was limited`);
    const why = this.#failure ?? this.#limit ?? failed;
    if (entry.outcome === 'failed') this.#ending = { kind: 'failed', refusal: why };
    else if (entry.outcome === 'limited') this.#ending = { kind: 'limited', refusal: this.#limit ?? limited };
    else if (!(entry.outcome === 'aborted' && this.#hasResult)) this.#ending = { kind: entry.outcome };
  }

  #emit(entry: Entry): void {
    if (entry.type === 'turn-started' && this.#own.has(entry.turnId))
      this.#out.push({ kind: 'begun', entry });
    if (entry.type === 'message' && this.#own.has(entry.turnId ?? '')) {
      if (entry.role === 'assistant') this.#addMessage(entry);
      else if (entry.role === 'tool') this.#out.push({ kind: 'result', entry });
    }
    this.#utterances.observe(entry);
    if (CHANGES_STATUS[entry.type]) this.#out.push({ kind: 'status' });
  }

  #addMessage(entry: MessageEntry): void {
    const message = this.#utterances.nameOf(entry);
    const { text, reasoning } = this.#textsOf(message);
    const content = entry.content ?? '';
    const words = entry.partType === 'error' ? failureOf(content).partial : content;
    this.#texts.delete(message);
    this.#out.push({
      kind: 'said',
      entry,
      message,
      text: text.end(words),
      reasoning: reasoning.end(entry.reasoning ?? ''),
    });
  }

  #textsOf(message: string) {
    const texts = this.#texts.get(message) ?? newTexts();
    this.#texts.set(message, texts);
    return texts;
  }

  #isDone(): boolean {
    if (this.#options.agent === null) return this.#watch.settled;
    return this.#untaken.size === 0 && this.busy.length === 0;
  }

  #endIfQuiet(): void {
    if (this.#isOver || this.#isSilent || !this.#watch.held) return;
    const { posts, notBefore = 0 } = this.#options;
    if (notBefore > this.#seen || posts.some(({ index }) => index > this.#seen)) return; // TURN-WATCH-6
    const isOwn = (turnId: string) => this.#own.has(turnId) || this.#rootOf(turnId) !== null;
    const own = this.#calls.of(isOwn);
    const callers = this.#calls.ofCallers(isOwn);
    const { stopped } = this.#options;
    if (stopped && this.#watch.stoppedAgents.length > 0 && own.length + callers.length === 0) {
      const isNothingBegun = this.#own.size === 0;
      this.#finish(isNothingBegun ? { kind: 'stopped', refusal: stopped.refusal } : this.#ending);
      return;
    }
    const open = own.length + callers.length > 0 || this.#watch.quiet ? own : this.#calls.of(() => true);
    const rootOf = (turnId: string) => this.#rootOf(turnId) ?? this.#roots.of(turnId)[0] ?? null;
    const rooted = open.map((call) => ({ ...call, root: rootOf(call.turnId) }));
    const isOthers = open.length + callers.length === 0 && this.#watch.quiet;
    this.#finish(isOthers ? this.#ending : { kind: 'waits', open: rooted, callers });
  }

  #finish(ending: Ending): void {
    this.#isOver = true;
    this.#out.push({ kind: 'over', ending });
  }
}

/** Folds a log, or its end, into the posts that caused each turn, through delegations, handoffs and nodes of runs. */
export class Roots {
  readonly #posts = new Set<number>();
  /** By the index of a delegation, a handoff or an entered node: its turn. */
  readonly #passedOnBy = new Map<number, string>();
  readonly #of = new Map<string, Set<number>>();
  /** The turn of the newest entry: a node is entered by the result before it. */
  #newest: string | undefined;

  observe(entry: Entry): void {
    if (isOfAPerson(entry)) this.#posts.add(entry.index);
    else if (entry.type === 'delegation-requested' || entry.type === 'handoff') {
      if (entry.turnId !== undefined) this.#passedOnBy.set(entry.index, entry.turnId);
    } else if (entry.type === 'node-entered' && this.#newest !== undefined)
      this.#passedOnBy.set(entry.index, this.#newest);
    if (entry.type !== 'node-entered') this.#newest = entry.turnId; // a fork has several
    const taken = turnInputOf(entry);
    if (taken) this.#takeUp(taken.turnId, taken.messages);
  }

  /** Oldest first. */
  of(turnId: string): readonly number[] {
    return [...(this.#of.get(turnId) ?? [])];
  }

  /** The entry, which was observed, belongs to a turn that this post did not cause. */
  isOfAnother(post: number, { type, index, turnId }: Entry): boolean {
    const turn = type === 'node-entered' ? this.#passedOnBy.get(index) : turnId;
    return turn !== undefined && !this.of(turn).includes(post);
  }

  #takeUp(turnId: string, taken: readonly number[]): void {
    const roots = this.#of.get(turnId) ?? new Set();
    this.#of.set(turnId, roots);
    for (const index of taken) {
      if (this.#posts.has(index)) roots.add(index);
      for (const root of this.of(this.#passedOnBy.get(index) ?? '')) roots.add(root);
    }
  }
}

/**
 * Names an agent's messages before they are in the log: by the turn and the previous entry of that turn. A later reader
 * of the log derives the same names.
 */
export class Utterances {
  /** By turn: the entry before its next message. */
  readonly #previous = new Map<string, number>();
  /** By turn: the running attempt and its next chunk. */
  readonly #attempts = new Map<string, { readonly call: string; next: number }>();

  /** Call for every entry in order; for a message after `nameOf`. */
  observe(entry: Entry): void {
    const isOwn = entry.type === 'message' && entry.role === 'assistant';
    if (!isOwn && entry.type !== 'turn-started' && entry.type !== 'message-delivered') return;
    if (entry.turnId === undefined) return;
    this.#previous.set(entry.turnId, entry.index);
    this.#attempts.delete(entry.turnId);
  }

  nameOf(entry: MessageEntry): string {
    const previous = entry.turnId === undefined ? undefined : this.#previous.get(entry.turnId);
    return previous === undefined ? entry.id : nameAfter(entry.turnId ?? '', previous);
  }

  /** The message of a chunk; null: a chunk was missed, wait for the entry. */
  receive({ turnId, call, n }: LiveChunk): { readonly message: string; readonly isRestart: boolean } | null {
    const previous = this.#previous.get(turnId);
    if (previous === undefined) return null;
    const attempt = this.#attempts.get(turnId);
    const isRestart = attempt?.call !== call;
    if (n !== (isRestart ? 0 : attempt.next)) return null;
    this.#attempts.set(turnId, { call, next: n + 1 });
    return { message: nameAfter(turnId, previous), isRestart };
  }
}

function nameAfter(turnId: string, index: number): string {
  return `${turnId}-${index}`;
}

/** The partial text of a failed call, and its error. */
export function failureOf(content: string | null): { readonly partial: string; readonly refusal: Refusal } {
  const { text, failure } = splitFailedAnswer(content);
  const { code, message } = failure ?? { code: 'MODEL_FAILED', message: 'the agent failed' };
  return { partial: text, refusal: refusal(code, message) };
}

/** The end of a preview of a large text in the log. */
export const KEPT_FILE = /\n\[Full output: [^\n]+\]$/;

/**
 * One text, sent while it is generated. Live text is a prefix of its entry: if a retry produces another text, nothing is
 * sent until the entry arrives.
 */
export class IncrementalText {
  #sent = '';
  /** The text of the running attempt. */
  #received = '';
  /** All received text was sent. */
  #isInStep = true;

  get sent(): string {
    return this.#sent;
  }

  /** A retry starts. */
  restart(): void {
    this.#received = '';
    this.#isInStep = this.#sent === '';
  }

  /** Returns the text to send now. */
  add(delta: string): string {
    this.#received += delta;
    if (!this.#isInStep) {
      if (this.#received.length <= this.#sent.length || !this.#received.startsWith(this.#sent)) return '';
      this.#isInStep = true;
      const more = this.#received.slice(this.#sent.length);
      this.#sent = this.#received;
      return more;
    }
    this.#sent = this.#received;
    return delta;
  }

  /** The entry arrived: returns the rest of the text, or its replacement. */
  end(whole: string): Rest {
    if (whole.startsWith(this.#sent)) return { isMore: true, words: whole.slice(this.#sent.length) };
    const file = KEPT_FILE.exec(whole);
    const isPreview = file !== null && this.#sent.startsWith(whole.slice(0, file.index));
    return isPreview ? { isMore: true, words: file[0] } : { isMore: false, words: whole };
  }
}

export interface Rest {
  /** True: `words` continue the sent text; false: they replace it. */
  readonly isMore: boolean;
  readonly words: string;
}
