import { type Refusal, refusal } from '../../kernel/index.ts';
import type { Entry, MessageEntry } from '../log/entry.ts';
import { splitFailedAnswer } from '../log/model-failure.ts';
import type { LiveChunk } from './live-text.ts';

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
