import type { LiveChunk } from '../../bus/port.ts';
import type { Entry, MessageEntry } from '../../conversation/index.ts';

/**
 * Names an agent's messages before they are in the log, by what is in it already: the turn, and the entry behind which
 * this message of the turn comes. Who reads the log later finds the same names.
 */
export class Utterances {
  /** By turn: the entry behind which its next message comes. */
  readonly #behind = new Map<string, number>();
  /** By turn: the attempt that runs and its next chunk. */
  readonly #attempts = new Map<string, { readonly call: string; next: number }>();

  /** Of every entry, in order; of a message, after `nameOf`. */
  observe(entry: Entry): void {
    const isOwn = entry.type === 'message' && entry.role === 'assistant';
    if (!isOwn && entry.type !== 'turn-started' && entry.type !== 'message-delivered') return;
    if (entry.turnId === undefined) return;
    this.#behind.set(entry.turnId, entry.index);
    this.#attempts.delete(entry.turnId);
  }

  nameOf(entry: MessageEntry): string {
    const behind = entry.turnId === undefined ? undefined : this.#behind.get(entry.turnId);
    return behind === undefined ? entry.id : nameBehind(entry.turnId ?? '', behind);
  }

  /** The message that a chunk belongs to; null: its beginning was missed, and the entry will say it all. */
  hear({ turnId, call, n }: LiveChunk): { readonly message: string; readonly isRestart: boolean } | null {
    const behind = this.#behind.get(turnId);
    if (behind === undefined) return null;
    const attempt = this.#attempts.get(turnId);
    const isRestart = attempt?.call !== call;
    if (n !== (isRestart ? 0 : attempt.next)) return null;
    this.#attempts.set(turnId, { call, next: n + 1 });
    return { message: nameBehind(turnId, behind), isRestart };
  }
}

function nameBehind(turnId: string, index: number): string {
  return `${turnId}-${index}`;
}
