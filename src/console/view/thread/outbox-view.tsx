import { oneLine, when } from '../../model/format.ts';
import type { RefusedPost } from '../../model/thread/letters.ts';
import { addToMessage } from '../../state/keys.ts';
import { dismissLetter, refusedHere } from '../../state/letters.ts';
import { discard, outbox, sendAgain } from '../../state/outbox.ts';
import { isAway } from '../../state/session.ts';
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
  const refused = refusedHere.value;
  if (kept.length + refused.length === 0) return null;
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
      {refused.map((post) => (
        <Refused key={post.letter.sequence} post={post} />
      ))}
    </ul>
  );
}

function Refused({ post: { letter, text } }: { readonly post: RefusedPost }) {
  const write = () => {
    addToMessage(text);
    dismissLetter(letter);
  };
  return (
    <li class="refused">
      <p dir="auto">{oneLine(text, 300)}</p>
      <p>
        A message of <VisibleText text={letter.publisher} /> was refused ({when(letter.at, Date.now())}):{' '}
        <VisibleText text={letter.reason} />
      </p>
      <p class="choices">
        <button type="button" class="link" onClick={write}>
          Write it again
        </button>
        <button type="button" class="link" onClick={() => dismissLetter(letter)}>
          Dismiss
        </button>
      </p>
    </li>
  );
}
