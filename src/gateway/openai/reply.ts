import {
  createTurnWatch,
  cutBy,
  type Entry,
  type EntryOf,
  type MessageEntry,
  type TurnWatch,
  type Usage,
} from '../../conversation/index.ts';
import { type Refusal, refusal } from '../../kernel/index.ts';
import type { Arrival } from '../port.ts';

/**
 * What a conversation says to one post, as one text.
 *
 * T1 It is made of the entries from the post on; live text comes earlier what an entry will say, and never differently:
 *    what another attempt of a call says in other words waits for the entry, and so does a call of which the beginning or
 *    anything else was missed.
 * T2 One message after another: what a second agent says meanwhile waits until the first one's message is whole.
 * T3 It is over when nothing is left to run, or only a person can go on. To one agent: when its turn is.
 */

export type Said =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'end'; readonly reason: Reason; readonly usage: Usage }
  | { readonly kind: 'failed'; readonly refusal: Refusal };

/** Of the last message: the protocol knows these. */
export type Reason = 'stop' | 'length' | 'content_filter';

interface Speaking {
  readonly turnId: string;
  call: string;
  /** Of that call, so far. */
  heard: string;
  /** Passed on already. */
  told: string;
}

export class Reply {
  readonly #watch: TurnWatch = createTurnWatch();
  readonly #index: number;
  /** The one agent that is spoken to; null: whoever's turn it is. */
  readonly #agent: string | null;
  /** Turns whose words are part of the reply. */
  readonly #turns = new Set<string>();
  readonly #usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };
  readonly #held: MessageEntry[] = [];
  /** By call: the chunk that comes next, as long as none was missed. */
  readonly #next = new Map<string, number>();
  #speaking: Speaking | null = null;
  #firstSpeaker: string | null = null;
  #failure: Refusal | null = null;
  #reason: Reason = 'stop';
  #question: string | null = null;
  #isOver = false;
  #out: Said[] = [];

  constructor(index: number, agents: readonly string[], agent: string | null) {
    this.#index = index;
    this.#agent = agent;
    this.#watch.owe(index, agents);
    if (agents.length === 0) this.#finish();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  accept(arrival: Arrival): readonly Said[] {
    if (arrival.kind === 'live') this.#live(arrival);
    else for (const entry of arrival.entries) this.#entry(entry);
    return this.drain();
  }

  /** What was said and not taken yet. */
  drain(): readonly Said[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #live({ agent, chunk }: Extract<Arrival, { kind: 'live' }>): void {
    if (this.#isOver || !this.#turns.has(chunk.turnId)) return;
    if (this.#speaking && this.#speaking.turnId !== chunk.turnId) return; // T2
    if (chunk.n !== (this.#next.get(chunk.call) ?? 0)) return; // T1
    this.#next.set(chunk.call, chunk.n + 1);
    if (chunk.type !== 'text') return;
    const speaking: Speaking = this.#speaking ?? {
      turnId: chunk.turnId,
      call: chunk.call,
      heard: '',
      told: '',
    };
    this.#speaking = speaking;
    if (speaking.call !== chunk.call) Object.assign(speaking, { call: chunk.call, heard: '' });
    speaking.heard += chunk.delta;
    if (speaking.heard.length > speaking.told.length && speaking.heard.startsWith(speaking.told)) {
      this.#tell(agent, speaking, speaking.heard); // T1
    }
  }

  #entry(entry: Entry): void {
    if (this.#isOver || entry.index < this.#index) return;
    this.#watch.observe(entry);
    if (entry.type === 'turn-started') this.#begin(entry.turnId, entry.agent, entry.trigger);
    else if (entry.type === 'message-delivered') this.#begin(entry.turnId, entry.agent, entry.entries);
    else if (entry.type === 'message') this.#message(entry);
    else if (entry.type === 'approval-requested') this.#question ??= approvalText(entry);
    else if (entry.type === 'turn-ended' && this.#turns.has(entry.turnId)) this.#turnEnded(entry);
    if (!this.#isOver && (this.#watch.settled || this.#watch.quiet)) this.#finish(); // T3
  }

  #begin(turnId: string, agent: string, messages: readonly number[]): void {
    if (this.#agent === null || (agent === this.#agent && messages.includes(this.#index)))
      this.#turns.add(turnId);
  }

  #message(entry: MessageEntry): void {
    if (entry.role !== 'assistant' || entry.turnId === undefined || !this.#turns.has(entry.turnId)) return;
    this.#count(entry.usage);
    this.#reason = reasonOf(entry.finishReason);
    const asked = entry.tool_calls?.find((call) => call.function.name === 'ask');
    if (asked) this.#question = questionOf(asked.function.arguments) ?? this.#question;
    if (this.#speaking && this.#speaking.turnId !== entry.turnId) {
      this.#held.push(entry); // T2
      return;
    }
    this.#whole(entry);
    this.#speaking = null;
    for (const held of this.#held.splice(0)) this.#whole(held);
  }

  /** T1: the entry says the rest. */
  #whole(entry: MessageEntry): void {
    const content = entry.partType === 'error' ? this.#failed(entry) : (entry.content ?? '');
    const current = this.#speaking;
    const speaking: Speaking =
      current && current.turnId === entry.turnId
        ? current
        : { turnId: entry.turnId ?? '', call: '', heard: '', told: '' };
    if (content.startsWith(speaking.told)) this.#tell(entry.author.id, speaking, content);
    else if (!speaking.told.startsWith(content)) this.#out.push({ kind: 'text', text: `\n\n${content}` });
  }

  #tell(agent: string, speaking: Speaking, words: string): void {
    const more = words.slice(speaking.told.length);
    if (more === '') return;
    const lead = speaking.told === '' ? this.#lead(agent) : '';
    speaking.told = words;
    this.#out.push({ kind: 'text', text: lead + more });
  }

  /** What stands before a message: nothing before the first, and a name where somebody else speaks. */
  #lead(agent: string): string {
    if (this.#firstSpeaker === null) {
      this.#firstSpeaker = agent;
      return '';
    }
    return agent === this.#firstSpeaker ? '\n\n' : `\n\n**${agent}:** `;
  }

  /** A failed call: what was said until then, without the error, which is told apart. */
  #failed(entry: MessageEntry): string {
    const content = entry.content ?? '';
    const [whole, partial = '', json = ''] =
      /^([\s\S]*?)(?:\n\n)?LLM_ERROR (\{[\s\S]*\})$/.exec(content) ?? [];
    const { code = 'MODEL_FAILED', message = 'the agent failed' } = whole ? JSON.parse(json) : {};
    // Cut before any words: the protocol has a reason for that, and it is no error.
    this.#failure = cutBy(entry.finishReason) ? null : refusal(String(code), String(message));
    return whole ? partial : content;
  }

  #turnEnded(entry: EntryOf<'turn-ended'>): void {
    if (entry.outcome === 'waiting') return;
    if (entry.outcome === 'limited') this.#reason = 'length';
    if (entry.outcome !== 'failed') this.#failure = null;
    if (entry.outcome === 'failed' && this.#reason === 'stop')
      this.#failure ??= refusal('TURN_FAILED', `the turn of ${entry.agent} failed`);
    if (this.#agent !== null) this.#finish();
  }

  #finish(): void {
    this.#isOver = true;
    const waits = !this.#watch.settled && this.#watch.quiet;
    if (waits && this.#question !== null && !this.#failure) {
      this.#out.push({ kind: 'text', text: (this.#firstSpeaker === null ? '' : '\n\n') + this.#question });
    }
    if (this.#failure) this.#out.push({ kind: 'failed', refusal: this.#failure });
    else this.#out.push({ kind: 'end', reason: this.#reason, usage: this.#usage });
  }

  #count(usage: Usage | undefined): void {
    this.#usage.inputTokens += usage?.inputTokens ?? 0;
    this.#usage.cachedInputTokens += usage?.cachedInputTokens ?? 0;
    this.#usage.outputTokens += usage?.outputTokens ?? 0;
  }
}

function reasonOf(finishReason: string | undefined): Reason {
  return finishReason === 'refusal' ? 'content_filter' : (cutBy(finishReason) ?? 'stop');
}

function questionOf(json: string): string | null {
  try {
    const { question } = JSON.parse(json);
    return typeof question === 'string' ? question : null;
  } catch {
    return null;
  }
}

function approvalText({ approvalId }: EntryOf<'approval-requested'>): string {
  return `(A call of a tool waits for approval: parley approve ${approvalId})`;
}
