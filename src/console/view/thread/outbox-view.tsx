import { oneLine } from '../../model/format.ts';
import { discard, outbox, sendAgain } from '../../state/outbox.ts';
import { isAway } from '../../state/session.ts';
import { LinkButton } from '../parts/controls.tsx';

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

/** The person's messages that the daemon has not confirmed. */
export function KeptPosts({ place }: { readonly place: string }) {
  const kept = outbox.value.filter(
    ({ conversation, state }) => conversation === place && state !== 'sending',
  );
  if (kept.length === 0) return null;
  return (
    <ul class="kept-posts" aria-label="Not sent yet">
      {kept.map(({ post, state, reason }) => (
        <li key={post.id} class={state}>
          <p dir="auto">{oneLine(post.content, 300)}</p>
          <p class="muted">
            {state === 'waiting' ? 'Waits to be sent' : 'Not sent'}
            {reason && `: ${reason}`}
            {state === 'refused' && <LinkButton onClick={() => sendAgain(post.id)}>Send again</LinkButton>}
            <LinkButton onClick={() => discard(post.id)}>Discard</LinkButton>
          </p>
        </li>
      ))}
    </ul>
  );
}
