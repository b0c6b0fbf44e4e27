import {
  createTurnWatch,
  cutBy,
  type Entry,
  type EntryOf,
  type MessageEntry,
  type TurnInput,
  type TurnWatch,
  turnInputOf,
  type Usage,
} from '../../conversation/index.ts';
import { type Refusal, refusal } from '../../kernel/index.ts';
import type { Arrival } from '../port.ts';
import type { Stopped } from '../progress/ask.ts';
import { IncrementalText } from '../progress/incremental-text.ts';
import { type OpenCall, OpenCalls } from '../progress/open-calls.ts';
import { failureOf } from '../progress/utterances.ts';

/**
 * The reply of a conversation to one post, as one text.
 *
 * REPLY-1 It consists of the entries from the post on. Live text is a prefix of its entry: text of a retry that differs, or
 *    of a call with a missed chunk, is not sent before the entry.
 * REPLY-2 One message at a time: messages of a second agent wait until the first agent's message is complete.
 * REPLY-3 It ends when no work is outstanding or only a person can continue: then it ends with the open question, or fails
 *    if all agents are stopped. With one addressed agent, it ends with that agent's turn.
 * REPLY-4 It is never empty without a reason: a limit or a stop is a failure, or after some text a sentence; an agent that ends
 *    its turn without text is named.
 */

export type Said =
  | { readonly kind: 'text'; readonly text: string }
  /** `usage` null: no provider reported any. */
  | { readonly kind: 'end'; readonly reason: Reason; readonly usage: Usage | null }
  | { readonly kind: 'failed'; readonly refusal: Refusal };

/** Of the last message: the protocol knows these. */
export type Reason = 'stop' | 'length' | 'content_filter';

interface Speaking {
  readonly turnId: string;
  call: string;
  readonly incremental: IncrementalText;
}

export class Reply {
  readonly #watch: TurnWatch = createTurnWatch();
  readonly #calls = new OpenCalls();
  readonly #index: number;
  /** The addressed agent; null: any. */
  readonly #agent: string | null;
  /** Turns that are part of the reply. */
  readonly #turns = new Set<string>();
  #usage: Usage | null = null;
  readonly #held: MessageEntry[] = [];
  /** By call: the next chunk, while none was missed. */
  readonly #next = new Map<string, number>();
  #speaking: Speaking | null = null;
  #firstSpeaker: string | null = null;
  #failure: Refusal | null = null;
  /** Why the newest turn that ended did not complete; null: it did. */
  #cut: Refusal | null = null;
  /** By turn: the newest limit that it reached. */
  readonly #limits = new Map<string, string>();
  /** The text of an answer for which no agent wrote a message. */
  #silence = 'The turn ended without a text.';
  #reason: Reason = 'stop';
  readonly #stopped: Stopped | null;
  #isOver = false;
  #out: Said[] = [];

  /** `before`: the end of the log before the post, for what is open there. */
  constructor(
    index: number,
    agents: readonly string[],
    agent: string | null,
    before: readonly Entry[] = [],
    stopped: Stopped | null = null,
  ) {
    this.#stopped = stopped;
    this.#index = index;
    this.#agent = agent;
    for (const entry of before) {
      this.#watch.observe(entry);
      this.#calls.observe(entry);
    }
    this.#watch.addOutstanding(index, agents);
    this.#watch.markStopped(stopped?.agents ?? []);
    if (agents.length > 0) return;
    this.#silence = 'No agent answers this message.';
    this.#finish();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  accept(arrival: Arrival): readonly Said[] {
    if (arrival.kind === 'live') this.#live(arrival);
    else {
      for (const entry of arrival.entries) this.#entry(entry);
      const isPosted = arrival.entries.some(({ index }) => index >= this.#index);
      if (isPosted && !this.#isOver && this.#watch.held) this.#finish(); // REPLY-3
    }
    return this.drain();
  }

  /** Returns the pending output. */
  drain(): readonly Said[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #live({ agent, chunk }: Extract<Arrival, { kind: 'live' }>): void {
    if (this.#isOver || !this.#turns.has(chunk.turnId)) return;
    if (this.#speaking && this.#speaking.turnId !== chunk.turnId) return; // REPLY-2
    if (chunk.n !== (this.#next.get(chunk.call) ?? 0)) return; // REPLY-1
    this.#next.set(chunk.call, chunk.n + 1);
    if (chunk.type !== 'text') return;
    const { turnId, call, delta } = chunk;
    const speaking: Speaking = this.#speaking ?? { turnId, call, incremental: new IncrementalText() };
    this.#speaking = speaking;
    if (speaking.call !== call) {
      speaking.call = call;
      speaking.incremental.restart();
    }
    const isFirst = speaking.incremental.sent === '';
    this.#emit(agent, isFirst, speaking.incremental.add(delta)); // REPLY-1
  }

  #entry(entry: Entry): void {
    if (this.#isOver || entry.index < this.#index) return;
    this.#watch.observe(entry);
    this.#calls.observe(entry);
    const taken = turnInputOf(entry);
    if (taken) this.#begin(taken);
    else if (entry.type === 'message') this.#message(entry);
    else if (!this.#turns.has(entry.turnId ?? '')) {
      // not part of the reply
    } else if (entry.type === 'limit-reached') this.#limits.set(entry.turnId ?? '', entry.content);
    else if (entry.type === 'handoff') this.#silence = `Handed over to ${entry.to}.`;
    else if (entry.type === 'turn-ended') this.#turnEnded(entry);
    if (!this.#isOver && (this.#watch.settled || this.#watch.quiet)) this.#finish(); // REPLY-3
  }

  #begin({ turnId, agent, messages }: TurnInput): void {
    if (this.#agent === null || (agent === this.#agent && messages.includes(this.#index)))
      this.#turns.add(turnId);
  }

  #message(entry: MessageEntry): void {
    if (entry.role !== 'assistant' || entry.turnId === undefined || !this.#turns.has(entry.turnId)) return;
    this.#count(entry.usage);
    this.#reason = reasonOf(entry.finishReason);
    if (this.#speaking && this.#speaking.turnId !== entry.turnId) {
      this.#held.push(entry); // REPLY-2
      return;
    }
    this.#complete(entry);
    this.#speaking = null;
    for (const held of this.#held.splice(0)) this.#complete(held);
  }

  /** REPLY-1: the rest comes from the entry. */
  #complete(entry: MessageEntry): void {
    const content = entry.partType === 'error' ? this.#failed(entry) : (entry.content ?? '');
    const current = this.#speaking;
    const incremental =
      current && current.turnId === entry.turnId ? current.incremental : new IncrementalText();
    const { isMore, words } = incremental.end(content);
    if (isMore) this.#emit(entry.author.id, incremental.sent === '', words);
    else if (!incremental.sent.startsWith(content)) this.#out.push({ kind: 'text', text: `\n\n${content}` });
  }

  #emit(agent: string, isFirst: boolean, words: string): void {
    if (words === '') return;
    const lead = isFirst ? this.#lead(agent) : '';
    this.#out.push({ kind: 'text', text: lead + words });
  }

  /** The text before a message: none before the first, the name if another agent speaks. */
  #lead(agent: string): string {
    if (this.#firstSpeaker === null) {
      this.#firstSpeaker = agent;
      return '';
    }
    return agent === this.#firstSpeaker ? '\n\n' : `\n\n**${agent}:** `;
  }

  /** The partial text of a failed call; its error is recorded separately. */
  #failed(entry: MessageEntry): string {
    const { partial, refusal } = failureOf(entry.content);
    // Cut before any text: the protocol reports that as a finish reason, not as an error.
    this.#failure = cutBy(entry.finishReason) ? null : agentFailed(refusal);
    return partial;
  }

  #turnEnded(entry: EntryOf<'turn-ended'>): void {
    if (entry.outcome === 'waiting') return;
    this.#cut = this.#cutOf(entry);
    if (entry.outcome === 'limited') this.#reason = 'length';
    if (entry.outcome !== 'failed') this.#failure = null;
    if (entry.outcome === 'failed' && this.#reason === 'stop')
      this.#failure ??= agentFailed(refusal('TURN_FAILED', `the turn of ${entry.agent} failed`));
    if (this.#agent !== null) this.#finish();
  }

  #cutOf({ agent, turnId, outcome }: EntryOf<'turn-ended'>): Refusal | null {
    if (outcome === 'aborted')
      return refusal('AGENT_STOPPED', `the turn of ${agent} was stopped`, 'the log says by whom');
    if (outcome !== 'limited') return null;
    const limit = this.#limits.get(turnId) ?? `the turn of ${agent} was limited`;
    return refusal('LIMIT_REACHED', limit, '`parley resume` continues it, where the limit allows');
  }

  /** REPLY-4 */
  #endOfText(): void {
    if (this.#failure) return;
    const isEmpty = this.#firstSpeaker === null;
    if (this.#cut) {
      if (isEmpty) this.#failure = this.#cut;
      else this.#out.push({ kind: 'text', text: `\n\n(${this.#cut.code}: ${this.#cut.message})` });
    } else if (isEmpty && this.#reason === 'stop') {
      this.#out.push({ kind: 'text', text: `(${this.#silence})` });
    }
  }

  #finish(): void {
    this.#isOver = true;
    const open = !this.#watch.settled && this.#watch.held ? this.#calls.of(() => true) : [];
    if (open.length > 0 && !this.#failure) {
      const notice = open.map(awaited).join('\n');
      this.#out.push({ kind: 'text', text: (this.#firstSpeaker === null ? '' : '\n\n') + notice });
    }
    const isStopped =
      open.length === 0 && this.#watch.stoppedAgents.length > 0 && this.#firstSpeaker === null;
    if (isStopped) this.#failure ??= this.#stopped?.refusal ?? null;
    if (open.length === 0) this.#endOfText();
    if (this.#failure) this.#out.push({ kind: 'failed', refusal: this.#failure });
    else this.#out.push({ kind: 'end', reason: this.#reason, usage: this.#usage });
  }

  #count(usage: Usage | undefined): void {
    if (!usage) return;
    const { inputTokens = 0, cachedInputTokens = 0, outputTokens = 0 } = this.#usage ?? {};
    this.#usage = {
      inputTokens: inputTokens + usage.inputTokens,
      cachedInputTokens: cachedInputTokens + (usage.cachedInputTokens ?? 0),
      outputTokens: outputTokens + usage.outputTokens,
    };
  }
}

/** Errors of an agent's model that a person must fix before a new attempt can succeed. */
const LASTING: ReadonlySet<string> = new Set([
  'BAD_REQUEST',
  'CONTEXT_STILL_TOO_LARGE',
  'CONTEXT_TOO_LONG',
  'NOT_FOUND',
  'REDIRECTED',
  'UNAUTHORIZED',
]);

/** The model of an agent failed. */
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
  const { id, mayHaveRun } = approval;
  const how = mayHaveRun
    ? `parley resolve ${id} --rerun, --failed or --result JSON`
    : `parley approve ${id}, or parley deny ${id}`;
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
