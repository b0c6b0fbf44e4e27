import type { JetStreamManager, StoredMsg } from 'nats';
import { decodeDeadLetter } from '../../dead-letter.ts';
import type { DeadLetter, DeadLetterQuery, DeadLetters } from '../../port.ts';
import type { Subjects } from '../../subjects.ts';
import { apiErrorCode, brokerError, MESSAGE_NOT_FOUND, STREAM_NOT_FOUND } from '../streams/broker-error.ts';
import { findStream } from '../streams/streams.ts';

/** Concurrent requests. Streams cannot be read backwards, so each letter is requested by its sequence. */
const AT_ONCE = 64;
/** Sequences that one page examines. */
const MOST_EXAMINED = 1_024;

/** The dead-letter stream for the commands that list, repeat and delete dead letters. */
export function createDeadLetters(manager: JetStreamManager, subjects: Subjects): DeadLetters {
  const { deadStream: stream, ingressStream } = subjects;

  async function get(sequence: number): Promise<DeadLetter | null> {
    try {
      return letterOf(subjects, await manager.streams.getMessage(stream, { seq: sequence }));
    } catch (error) {
      if (isGone(error)) return null;
      throw brokerError(error, `read stream ${stream}`);
    }
  }

  async function page(query: DeadLetterQuery) {
    const info = await findStream(manager, stream);
    const first = Math.max(1, info?.state.first_seq ?? 1);
    const last = info?.state.last_seq ?? 0;
    let at = Math.min(last, (query.before ?? Number.POSITIVE_INFINITY) - 1);
    const lowest = Math.max(first, at - MOST_EXAMINED + 1);
    const letters: DeadLetter[] = [];
    while (at >= lowest && letters.length < query.limit) {
      const sequences = Array.from({ length: Math.min(AT_ONCE, at - lowest + 1) }, (_, back) => at - back);
      const found = await Promise.all(sequences.map(get));
      for (const letter of found) {
        if (letters.length === query.limit) break;
        at -= 1;
        if (letter && fits(letter, query)) letters.push(letter);
      }
    }
    return { letters, next: at >= first ? at + 1 : null };
  }

  async function count(): Promise<number> {
    return (await findStream(manager, stream))?.state.messages ?? 0;
  }

  async function remove(sequence: number): Promise<void> {
    try {
      await manager.streams.deleteMessage(stream, sequence, false);
    } catch (error) {
      if (!isGone(error) && (await get(sequence)) !== null) throw brokerError(error, `delete from ${stream}`);
    }
  }

  return { ingressStream, get, page, count, remove };
}

function letterOf(subjects: Subjects, stored: StoredMsg): DeadLetter {
  const names = subjects.parseDead(stored.subject) ?? { publisher: '', conversation: '' };
  return decodeDeadLetter({ sequence: stored.seq, at: stored.time.toISOString(), ...names }, stored.data);
}

function fits(letter: DeadLetter, { publisher, conversation, code }: DeadLetterQuery): boolean {
  return (
    (publisher === undefined || letter.publisher === publisher) &&
    (conversation === undefined || letter.conversation === conversation) &&
    (code === undefined || letter.code === code)
  );
}

function isGone(error: unknown): boolean {
  const code = apiErrorCode(error);
  return code === MESSAGE_NOT_FOUND || code === STREAM_NOT_FOUND;
}
