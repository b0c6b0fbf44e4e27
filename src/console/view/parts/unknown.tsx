import { loggedLength, useThread } from '../../state/conversation.ts';
import { begun } from '../../state/conversations.ts';
import { firstPosts } from '../../state/outbox.ts';
import { linkTo, route } from '../../state/route.ts';
import { isAway } from '../../state/session.ts';
import { BackLink } from './parts.tsx';

/** The number of entries that the conversation has; null: not known yet. */
function useLength(): number | null {
  const here = useThread();
  if (!here || loggedLength.value === null) return null;
  return Math.max(loggedLength.value, here.thread.entries.length);
}

/** The page of a conversation that cannot be read now, or that the person begins. It is loaded when the daemon answers. */
export function NotLoaded() {
  const here = useThread();
  if (!here || !isAway.value || here.thread.entries.length > 0 || loggedLength.value === 0) return null;
  return (
    <p class="unknown breaks muted as-thread" role="status">
      {begun.value.some(({ id }) => id === here.id)
        ? 'This conversation begins when the daemon answers.'
        : 'Not loaded: the daemon does not answer.'}
    </p>
  );
}

export function UnknownPage() {
  return (
    <main class="page column">
      <header class="head">
        <BackLink />
        <h2>Unknown address</h2>
      </header>
      <p class="unknown breaks muted as-thread" role="status">
        The console has no page with this address. <a href={linkTo.list}>Open the list</a>.
      </p>
    </main>
  );
}

/** Whether the log has the open conversation. True before it is known. */
export function useIsBegun(): boolean {
  const length = useLength();
  return length === null ? !isAway.value : length > 0;
}

/** The page of an address with the id of no conversation. A message begins it. */
export function UnknownConversation() {
  const here = useThread();
  const isEmpty = useLength() === 0;
  if (!here || !isEmpty || firstPosts.value.has(here.id)) return null;
  return (
    <p class="unknown breaks muted as-thread" role="status">
      There is no conversation <code>{here.id}</code>. <a href={linkTo.list}>Open the list</a>, or write its
      first message.
    </p>
  );
}

/** The notice for an address with an entry that the thread does not have. */
export function NoSuchEntry() {
  const at = route.value;
  const length = useLength();
  if (at.page !== 'conversation' || at.entry === null || !length || at.entry < length) return null;
  return <UnknownEntry index={at.entry} what="an entry" />;
}

interface UnknownEntryProps {
  readonly index: number;
  readonly what: string;
  /** The thread has it. */
  readonly isRead?: boolean;
}

/** The notice for an address with an entry that the panel cannot show. */
export function UnknownEntry({ index, what, isRead = false }: UnknownEntryProps) {
  const here = useThread();
  const length = useLength();
  if (!here || length === null) return null;
  if (index < length && !isRead) return null;
  return (
    <p class="unknown breaks muted as-thread" role="status">
      {index < length ? `Entry ${index} is not ${what}.` : `This conversation has no entry ${index}.`}{' '}
      <a href={linkTo.conversation(here.id)}>Open the conversation</a>, or <a href={linkTo.list}>the list</a>.
    </p>
  );
}
