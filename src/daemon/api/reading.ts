import { createHash } from 'node:crypto';
import type { AnswerOf, RequestOf } from '../../bus/index.ts';
import { isRecord, ParleyError } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import type { Caller } from './handlers.ts';

/** What the daemon keeps for each person: how far they have read, and their filters of the list. */

/** Conversations of one person; the ones that were read first are forgotten. */
const MOST_READ = 2_000;

type Reading = AnswerOf<'reading'>;

interface Kept extends Pick<ConversationStore, 'people'> {
  readonly exists: (conversation: string) => Promise<boolean>;
}

/** Merges what the request has, and answers the whole. */
export async function readingOf(
  { publisher, author, read = {}, filters }: RequestOf<'reading'>,
  { sender, isBound }: Pick<Caller, 'sender' | 'isBound'>,
  { people, exists }: Kept,
  now: string,
): Promise<Reading> {
  if (sender === null || author === undefined || !isBound || (publisher ?? sender) !== sender)
    throw new ParleyError('BAD_REQUEST', 'reading: this token is not of one person', {
      hint: 'give each person a token in `http.people`',
    });
  const person = createHash('sha256').update(`${sender}/${author.name}`).digest('hex');
  if (filters === undefined && Object.keys(read).length === 0) {
    const known = await people.get(person);
    if (known !== null) return readingIn(known, now);
  }
  const there: Record<string, number> = {};
  for (const [id, length] of Object.entries(read)) if (await exists(id)) there[id] = length; // else it was deleted
  let kept = readingIn(null, now);
  await people.change(person, (stored) => {
    kept = merged(readingIn(stored, now), there, filters);
    return kept;
  });
  return kept;
}

function readingIn(stored: unknown, now: string): Reading {
  const { since = now, lengths, filters } = (isRecord(stored) ? stored : {}) as Partial<Reading>;
  return { since, lengths: { ...lengths }, filters: filters ?? [] };
}

function merged(known: Reading, read: Reading['lengths'], filters = known.filters): Reading {
  const others = Object.entries(known.lengths).filter(([id]) => !Object.hasOwn(read, id));
  const lengths = Object.fromEntries([...others, ...Object.entries(read)].slice(-MOST_READ));
  return { since: known.since, lengths, filters };
}
