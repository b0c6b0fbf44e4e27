import type { ComponentChildren } from 'preact';
import { isDeleted, loggedLength, useThread } from '../../state/conversation.ts';
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

const Unknown = ({ children }: { readonly children: ComponentChildren }) => (
  <p class="unknown breaks muted as-thread" role="status">
    {children}
  </p>
);

export function UnknownPage() {
  return (
    <main class="page column">
      <header class="head abreast">
        <BackLink />
        <h2>Unknown address</h2>
      </header>
      <Unknown>
        The console has no page with this address. <a href={linkTo.list}>Open the list</a>.
      </Unknown>
    </main>
  );
}

/** Whether the log has the open conversation. True before it is known. */
export function useIsBegun(): boolean {
  const length = useLength();
  return length === null ? !isAway.value : length > 0 && !isDeleted(useThread());
}

/** Why the page of a conversation has no entries, or not that of its address. */
export function NotShown() {
  const here = useThread();
  const length = useLength();
  const at = route.value;
  if (!here || at.page !== 'conversation') return null;
  if (isAway.value && here.thread.entries.length === 0 && length !== 0)
    return (
      <Unknown>
        {begun.value.some(({ id }) => id === here.id)
          ? 'This conversation begins when the daemon answers.'
          : 'Not loaded: the daemon does not answer.'}
      </Unknown>
    );
  if (length === 0 && !firstPosts.value.has(here.id))
    return (
      <Unknown>
        There is no conversation <code>{here.id}</code>. <a href={linkTo.list}>Open the list</a>, or write its
        first message.
      </Unknown>
    );
  if (at.entry === null || !length || at.entry < length) return null;
  return <UnknownEntry index={at.entry} what="an entry" />;
}

interface UnknownEntryProps {
  readonly index: number;
  readonly what: string;
  /** The thread has it. */
  readonly isRead?: boolean;
}

export function UnknownEntry({ index, what, isRead = false }: UnknownEntryProps) {
  const here = useThread();
  const length = useLength();
  if (!here || length === null) return null;
  if (index < length && !isRead) return null;
  return (
    <Unknown>
      {index < length ? `Entry ${index} is not ${what}.` : `This conversation has no entry ${index}.`}{' '}
      <a href={linkTo.conversation(here.id)}>Open the conversation</a>, or <a href={linkTo.list}>the list</a>.
    </Unknown>
  );
}
