import { computed, effect, signal } from '@preact/signals';
import { requests } from '../api/requests.ts';
import { keepList, readList } from '../api/session.ts';
import type { DeadLetter } from '../model/system/system.ts';
import { opened, version } from './conversation.ts';
import { outbox, returned } from './outbox.ts';
import { publisher } from './session.ts';
import { deadLetters } from './system.ts';

/**
 * Posts of this publisher to the open conversation that the daemon refused while no page waited for the answer. The page that sent
 * a post shows its refusal itself.
 */

const DISMISSED = 'parley.letters';
const MOST_DISMISSED = 200;

const letters = signal<readonly DeadLetter[]>([]);
const dismissed = signal<readonly string[]>(readList(DISMISSED));

export const lettersHere = computed<readonly DeadLetter[]>(() => {
  void version.value;
  if (letters.value.length === 0) return letters.value;
  const entries = opened.value?.thread.entries ?? [];
  const told = new Set([...dismissed.value, ...outbox.value.map(({ post }) => post.id)]);
  return letters.value.filter(({ id = '' }) => !told.has(id) && entries.every((entry) => entry.id !== id));
});

export function dismissLetter({ id = '' }: DeadLetter): void {
  dismiss([id]);
}

function dismiss(ids: readonly string[]): void {
  const others = readList(DISMISSED).filter((id) => !ids.includes(id)); // another tab may have changed it
  dismissed.value = [...others, ...ids].slice(-MOST_DISMISSED);
  keepList(DISMISSED, dismissed.value);
}

/** The text of a refused post; its whole body if that is not understood. */
export async function textOfLetter({ sequence }: DeadLetter): Promise<string> {
  const { original } = await requests.deadLetter(sequence);
  try {
    const { content } = JSON.parse(original) as { readonly content?: unknown };
    return typeof content === 'string' ? content : original;
  } catch {
    return original;
  }
}

const openedId = computed(() => opened.value?.id ?? null);

/** Reads them when a conversation is opened and when the number of refused posts changes. Runs until the returned function is called. */
export function keepLetters(): () => void {
  const endReturned = effect(() => {
    if (returned.value.length > 0) dismiss(returned.value);
  });
  const endReading = effect(() => {
    const conversation = openedId.value;
    letters.value = [];
    if (conversation === null || deadLetters.value === 0) return;
    let isOver = false;
    void requests.deadLettersOf(conversation, publisher.value).then(
      (page) => {
        if (!isOver) letters.value = page.letters;
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
