import { oneLine, when } from '../../model/format.ts';
import type { DeadLetter } from '../../model/system/system.ts';
import { addToMessage } from '../../state/keys.ts';
import { dismissLetter, lettersHere, textOfLetter } from '../../state/letters.ts';
import { discard, outbox, sendAgain } from '../../state/outbox.ts';
import { attempt, isAway } from '../../state/session.ts';
import { VisibleText } from '../parts/visible-text.tsx';

/** One line for the whole page while the daemon does not answer. */
export function AwayBanner() {
  const waiting = outbox.value.filter(({ state }) => state === 'waiting').length;
  return (
    <div role="status">
      {isAway.value && (
        <p class="away">
          Not connected. Trying again…
          {waiting === 1 && ' Your message is sent when the daemon answers.'}
          {waiting > 1 && ` Your ${waiting} messages are sent when the daemon answers.`}
        </p>
      )}
    </div>
  );
}

/** The person's messages that the daemon has not confirmed, and those that it refused while no page waited. */
export function KeptPosts({ place }: { readonly place: string }) {
  const kept = outbox.value.filter(
    ({ conversation, state }) => conversation === place && state !== 'sending',
  );
  const letters = lettersHere.value;
  if (kept.length + letters.length === 0) return null;
  return (
    <ul class="kept-posts" aria-label="Not sent yet">
      {kept.map(({ post, state, reason }) => (
        <li key={post.id} class={state}>
          <p dir="auto">{oneLine(post.content, 300)}</p>
          <p class="muted">
            {state === 'waiting' ? 'Waits to be sent' : 'Not sent'}
            {reason && `: ${reason}`}
            {state === 'refused' && (
              <button type="button" class="link" onClick={() => sendAgain(post.id)}>
                Send again
              </button>
            )}
            <button type="button" class="link" onClick={() => discard(post.id)}>
              Discard
            </button>
          </p>
        </li>
      ))}
      {letters.map((letter) => (
        <Letter key={letter.sequence} letter={letter} />
      ))}
    </ul>
  );
}

function Letter({ letter }: { readonly letter: DeadLetter }) {
  const { publisher, at, reason } = letter;
  const write = () =>
    attempt(async () => {
      const text = await textOfLetter(letter);
      addToMessage(text);
      dismissLetter(letter);
    });
  return (
    <li class="refused">
      <p>
        A message of <VisibleText text={publisher} /> was refused ({when(at, Date.now())}):{' '}
        <VisibleText text={reason} />
      </p>
      <p class="choices">
        <button type="button" class="link" onClick={() => void write()}>
          Write it again
        </button>
        <button type="button" class="link" onClick={() => dismissLetter(letter)}>
          Dismiss
        </button>
      </p>
    </li>
  );
}
