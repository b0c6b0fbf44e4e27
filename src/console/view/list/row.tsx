import type { ConversationRow } from '../../model/answers.ts';
import { money, shortId, when, withoutAnsi } from '../../model/format.ts';
import { hasFailed, timeOf, waitOf } from '../../model/list/list.ts';
import { sharedTitles } from '../../state/conversations.ts';
import { openToWrite } from '../../state/jump.ts';
import { unsent } from '../../state/kept.ts';
import { isNew, pins } from '../../state/marks.ts';
import { firstPosts, refusedPosts } from '../../state/outbox.ts';
import { linkTo, route } from '../../state/route.ts';
import { agents } from '../../state/session.ts';
import { Avatar, Icon } from '../parts/parts.tsx';
import { openRowMenu } from './row-menu.tsx';

/** Pixels; `sidebar.css` has the same number. */
export const ROW_HEIGHT = 60;

interface ListRowProps {
  readonly row: ConversationRow;
  /** Tab reaches it. */
  readonly isStop: boolean;
  readonly onReach: () => void;
}

export function ListRow({ row, isStop, onReach }: ListRowProps) {
  const at = route.value;
  const isOpen = at.page === 'conversation' && at.id === row.id;
  const isUnread = isNew(row);
  const title = row.title ?? row.id;
  return (
    <>
      <a
        class={`row ${isUnread ? 'unread' : ''}`}
        href={linkTo.conversation(row.id)}
        title={row.id}
        aria-current={isOpen ? 'page' : undefined}
        tabIndex={isStop ? 0 : -1}
        onFocus={onReach}
        onClick={(event) => {
          if (isPlainClick(event)) openToWrite(row.id);
        }}
      >
        <span class="heading">
          {pins.value.has(row.id) && <Icon name="pin" />}
          <span class="title" dir="auto" id={`title-${row.id}`}>
            {withoutAnsi(title)}
          </span>
          {sharedTitles.value.has(row.title ?? '') && <code class="id">{shortId(row.id)}</code>}
          {isUnread && (
            <span class="dot">
              <span class="unseen">unread</span>
            </span>
          )}
        </span>
        <span class="meta">
          <span class="phase">{row.phase}</span>
          {!isOpen && unsent.value.has(row.id) && <span class="draft">draft</span>}
          <State row={row} />
          <span class="end">
            <Cost {...row} />
            {!isUnlisted(row) && <time dateTime={timeOf(row)}>{when(timeOf(row), Date.now())}</time>}
          </span>
        </span>
      </a>
      {!isUnlisted(row) && (
        <button
          type="button"
          class="quiet more"
          tabIndex={isStop ? 0 : -1}
          aria-label="Organize"
          aria-describedby={`title-${row.id}`}
          aria-keyshortcuts="m"
          onClick={() => openRowMenu(row.id)}
        >
          <Icon name="more" />
        </button>
      )}
    </>
  );
}

/** With the pointer, here: a key leaves the focus in the list. */
function isPlainClick({ detail, ctrlKey, metaKey, shiftKey }: MouseEvent): boolean {
  return detail > 0 && !ctrlKey && !metaKey && !shiftKey;
}

/** The daemon does not list it yet. */
const isUnlisted = ({ length }: ConversationRow): boolean => length === 0;

const UNSENT = { sending: 'is being sent', waiting: 'waits to be sent', refused: 'not sent' } as const;

/** Nothing where no cost is known. */
function Cost({ usd = 0, unpricedCalls = 0 }: ConversationRow) {
  if (usd === 0) return null;
  const more = unpricedCalls > 0 ? `, and ${unpricedCalls} calls of unknown cost` : '';
  return (
    <span class="cost" title={`Cost of its model calls${more}`}>
      {money(usd)}
      {more && '+'}
    </span>
  );
}

/** The agents that are working, waiting, stopped or failed. */
function State({ row }: { readonly row: ConversationRow }) {
  const name = (slug: string) => agents.value.find((agent) => agent.slug === slug)?.name ?? slug;
  const post = isUnlisted(row) ? firstPosts.value.get(row.id) : refusedPosts.value.get(row.id);
  if (post)
    return <span class={`waits ${post.state === 'refused' ? 'failed' : ''}`}>{UNSENT[post.state]}</span>;
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
  if (row.waiting.length > 0) return <span class="waits">{waitOf(row)}</span>;
  if (hasFailed(row)) return <span class="waits failed">failed</span>;
  if (row.stopped.length > 0) return <span class="waits">stopped: {row.stopped.map(name).join(', ')}</span>;
  if (row.limited.length > 0) return <span class="waits">halted by a limit</span>;
  return null;
}
