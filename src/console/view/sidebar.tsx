import type { ConversationRow } from '../api/requests.ts';
import { shortId, when } from '../model/format.ts';
import { found, isListed, rows, search, sharedTitles } from '../state/conversations.ts';
import { inbox } from '../state/inbox.ts';
import { openPalette } from '../state/palette.ts';
import { linkTo, route } from '../state/route.ts';
import { agents } from '../state/session.ts';
import { Avatar, Icon } from './parts.tsx';

/** The number of conversations listed; the search finds the others. */
const MOST_SHOWN = 200;

export function Sidebar() {
  const shown = found.value.slice(0, MOST_SHOWN);
  const more = found.value.length - shown.length;
  return (
    <nav class="sidebar" aria-label="Conversations">
      <header>
        <h1>
          <a href={linkTo.list}>Parley</a>
        </h1>
        <button
          type="button"
          class="quiet search"
          aria-label="Search"
          title="Search everything (Ctrl+K)"
          onClick={openPalette}
        >
          <Icon name="search" />
        </button>
        <a class="button quiet" href={linkTo.new} aria-label="New conversation" title="New conversation (n)">
          <Icon name="plus" />
        </a>
      </header>
      <InboxLink />
      <input
        id="search"
        type="search"
        placeholder="Find a conversation"
        aria-label="Find a conversation"
        value={search.value}
        onInput={(event) => {
          search.value = event.currentTarget.value;
        }}
      />
      <ul class="rows">
        {shown.map((row) => (
          <Row key={row.id} row={row} />
        ))}
      </ul>
      {more > 0 && <p class="muted aside">{more} more: narrow the search</p>}
      {isListed.value && rows.value.length === 0 && <p class="muted aside">No conversations yet.</p>}
    </nav>
  );
}

function InboxLink() {
  const { length } = inbox.value;
  return (
    <a
      class="inbox-link"
      href={linkTo.inbox}
      aria-current={route.value.page === 'inbox' ? 'page' : undefined}
    >
      Inbox
      <span class={`count ${length > 0 ? 'some' : ''}`}>{length}</span>
    </a>
  );
}

function Row({ row }: { readonly row: ConversationRow }) {
  const at = route.value;
  const isOpen = at.page === 'conversation' && at.id === row.id;
  return (
    <li>
      <a
        class="row"
        href={linkTo.conversation(row.id)}
        title={row.id}
        aria-current={isOpen ? 'page' : undefined}
      >
        <span class="heading">
          <span class="title">{row.title ?? row.id}</span>
          {sharedTitles.value.has(row.title ?? '') && <code class="id">{shortId(row.id)}</code>}
        </span>
        <span class="meta">
          <span class="phase">{row.phase}</span>
          <Talking row={row} />
          <time dateTime={row.updatedAt}>{when(row.updatedAt, Date.now())}</time>
        </span>
      </a>
    </li>
  );
}

/** The agents that are working, waiting or stopped. */
function Talking({ row }: { readonly row: ConversationRow }) {
  const name = (slug: string) => agents.value.find((agent) => agent.slug === slug)?.name ?? slug;
  if (row.running.length > 0) {
    return (
      <span class="talking" title={`${row.running.map(name).join(', ')} at work`}>
        {row.running.map((slug) => (
          <Avatar key={slug} id={slug} size="small" />
        ))}
        <span class="unseen">{row.running.map(name).join(', ')} at work</span>
        <span class="pulse" aria-hidden="true" />
      </span>
    );
  }
  const absent = row.activity?.find((one) => one.for === 'program');
  if (absent) return <span class="waits">{name(absent.agent)} is not connected</span>;
  if (row.waiting.length > 0) return <span class="waits">answer needed</span>;
  if (row.stopped.length > 0) return <span class="waits">stopped: {row.stopped.map(name).join(', ')}</span>;
  if (row.limited.length > 0) return <span class="waits">halted by a limit</span>;
  return null;
}
