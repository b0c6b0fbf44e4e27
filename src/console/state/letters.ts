import { computed, effect, signal } from '@preact/signals';
import { requests } from '../api/requests.ts';
import { keepValue, readList } from '../api/session.ts';
import type { DeadLetter } from '../model/answers.ts';
import { keyOf, type RefusedPost, refusedFor, refusedPostOf } from '../model/thread/letters.ts';
import { opened, version } from './conversation.ts';
import { outbox, returned } from './outbox.ts';
import { nameOnPosts, publisher } from './session.ts';
import { deadLetters } from './system.ts';

/**
 * Posts of this person to the open conversation that the daemon refused while no page waited for the answer. The page that sent
 * a post shows its refusal itself.
 */

const DISMISSED = 'parley.letters';
const MOST_DISMISSED = 200;

const refused = signal<readonly RefusedPost[]>([]);
const dismissed = signal<readonly string[]>(readList(DISMISSED));

export const refusedHere = computed<readonly RefusedPost[]>(() => {
  void version.value;
  if (refused.value.length === 0) return refused.value;
  const entries = opened.value?.thread.entries ?? [];
  const sent = [...outbox.value.map(({ post }) => post.id), ...entries.map(({ id }) => id)];
  const known = new Set([...dismissed.value, ...sent]);
  return refusedFor(refused.value, { name: nameOnPosts.value, known });
});

export function dismissLetter(letter: DeadLetter): void {
  dismiss([keyOf(letter)]);
}

/** Ids of posts, and keys of letters. */
function dismiss(known: readonly string[]): void {
  const others = readList(DISMISSED).filter((one) => !known.includes(one)); // another tab may have changed it
  dismissed.value = [...others, ...known].slice(-MOST_DISMISSED);
  keepValue(DISMISSED, dismissed.value);
}

const openedId = computed(() => opened.value?.id ?? null);

async function readLetters(conversation: string, from: string): Promise<readonly RefusedPost[]> {
  const { letters } = await requests.deadLettersOf(conversation, from);
  return (await Promise.all(letters.map(({ sequence }) => requests.deadLetter(sequence)))).map(refusedPostOf);
}

/** Reads them when a conversation is opened and when the number of refused posts changes. Runs until the returned function is called. */
export function keepLetters(): () => void {
  const endReturned = effect(() => {
    if (returned.value.length > 0) dismiss(returned.value);
  });
  const endReading = effect(() => {
    const conversation = openedId.value;
    refused.value = [];
    if (conversation === null || deadLetters.value === 0) return;
    let isOver = false;
    void readLetters(conversation, publisher.value).then(
      (posts) => {
        if (!isOver) refused.value = posts;
      },
      () => undefined, // the page shows that the daemon is away
    );
    return () => {
      isOver = true;
    };
  });
  return () => {
    endReturned();
    endReading();
  };
}
