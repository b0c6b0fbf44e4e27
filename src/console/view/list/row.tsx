import { useState } from 'preact/hooks';
import { FIRST_FLOOR } from '../../../conversation/state/answering.ts';
import { requests } from '../../api/requests.ts';
import type { ConversationRow } from '../../model/answers.ts';
import { money, shortId, when, withoutAnsi } from '../../model/format.ts';
import { hasFailed, needsPerson, timeOf, waitOf } from '../../model/list/list.ts';
import { rows, sharedTitles } from '../../state/conversations.ts';
import { unsent } from '../../state/kept.ts';
import { isNew, markRead, markUnread, organized, pin, pins } from '../../state/list.ts';
import { firstPosts, refusedPosts } from '../../state/outbox.ts';
import { linkTo, openToWrite, route } from '../../state/route.ts';
import { agents, attempt, isOperator, notice, sender } from '../../state/session.ts';
import { Button, Dialog, onSubmit, onText } from '../parts/controls.tsx';
import { Avatar, Icon, IconButton } from '../parts/parts.tsx';

/** Pixels; `sidebar.css` has the same number. */
export const ROW_HEIGHT = 44;

interface ListRowProps {
  readonly row: ConversationRow;
  /** Tab reaches it. */
  readonly isStop: boolean;
  readonly onReach: () => void;
}

export function ListRow({ row, isStop, onReach }: ListRowProps) {
  const at = route.value;
  const isOpen = at.page === 'conversation' && at.id === row.id;
  const unread = isNew(row) ? 'unread' : '';
  const title = row.title ?? row.id;
  return (
    <>
      <a
        class={`row ${unread}`}
        href={linkTo.conversation(row.id)}
        title={`${withoutAnsi(title)}\n${row.id}`}
        aria-current={isOpen ? 'page' : undefined}
        tabIndex={isStop ? 0 : -1}
        onFocus={onReach}
        onClick={(event) => {
          if (isPlainClick(event)) openToWrite(row.id);
        }}
      >
        <span class="heading">
          {pins.value.has(row.id) && <Icon name="pin" />}
          <span class={`title ${unread}`} dir="auto" id={`title-${row.id}`}>
            {withoutAnsi(title)}
          </span>
          {sharedTitles.value.has(row.title ?? '') && <code class="id">{shortId(row.id)}</code>}
          {unread && (
            <span class="dot">
              <span class="unseen">unread</span>
            </span>
          )}
        </span>
        <span class="meta">
          {row.phase !== FIRST_FLOOR.phase && <span class="phase">{row.phase}</span>}
          {!isOpen && unsent.value.has(row.id) && <span class="draft">draft</span>}
          <State row={row} />
          <span class="end">
            <Cost {...row} />
            {!isUnlisted(row) && <time dateTime={timeOf(row)}>{when(timeOf(row), Date.now())}</time>}
          </span>
        </span>
      </a>
      {!isUnlisted(row) && (
        <IconButton
          icon="more"
          class="quiet more"
          tabIndex={isStop ? 0 : -1}
          aria-label="Organize"
          aria-describedby={`title-${row.id}`}
          aria-keyshortcuts="m"
          onClick={() => {
            organized.value = row.id;
          }}
        />
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

const LEAST_USD = 0.01;

const UNSENT = { sending: 'is being sent', waiting: 'waits to be sent', refused: 'not sent' } as const;

/** Nothing below a cent. */
function Cost({ usd = 0, unpricedCalls = 0 }: ConversationRow) {
  if (usd < LEAST_USD) return null;
  const more = unpricedCalls > 0 ? `, and ${unpricedCalls} calls of unknown cost` : '';
  return (
    <span class="cost" title={`Cost of its model calls${more}`}>
      {money(usd)}
      {more && '+'}
    </span>
  );
}

/** What a person should do has the line alone; else the agents at work, and one line of the newest text. */
function State({ row }: { readonly row: ConversationRow }) {
  const name = (slug: string) => agents.value.find((agent) => agent.slug === slug)?.name ?? slug;
  const post = isUnlisted(row) ? firstPosts.value.get(row.id) : refusedPosts.value.get(row.id);
  if (post)
    return <span class={`waits ${post.state === 'refused' ? 'failed' : ''}`}>{UNSENT[post.state]}</span>;
  if (needsPerson(row)) return <span class="waits">{waitOf(row)}</span>;
  const preview = row.newest && row.newest !== row.title && (
    <span class="preview" dir="auto">
      {withoutAnsi(row.newest)}
    </span>
  );
  if (row.running.length > 0) {
    return (
      <>
        <span class="talking" title={`${row.running.map(name).join(', ')} at work`}>
          {row.running.map((slug) => (
            <Avatar key={slug} id={slug} size="small" />
          ))}
          <span class="unseen">{row.running.map(name).join(', ')} at work</span>
          <span class="pulse" aria-hidden="true" />
        </span>
        {preview}
      </>
    );
  }
  const absent = row.activity?.find((one) => one.for === 'program');
  if (absent) return <span class="waits">{name(absent.agent)} is not connected</span>;
  if (row.waiting.length > 0) return <span class="waits">{waitOf(row)}</span>;
  if (hasFailed(row)) return <span class="waits failed">failed</span>;
  if (row.stopped.length > 0) return <span class="waits">stopped: {row.stopped.map(name).join(', ')}</span>;
  if (row.limited.length > 0) return <span class="waits">halted by a limit</span>;
  return preview || null;
}

/** What can be done with a conversation of the list. */
export function RowMenu() {
  const row = rows.value.find(({ id }) => id === organized.value);
  return row ? <Menu key={row.id} row={row} /> : null;
}

function Menu({ row }: { readonly row: ConversationRow }) {
  const title = row.title ?? row.id;
  const isPinned = pins.value.has(row.id);
  return (
    <Dialog
      class="row-menu"
      label={`Conversation ${title}`}
      onClose={() => {
        organized.value = null;
      }}
    >
      {(close) => {
        const then = (action: () => unknown) => () => {
          close();
          action();
        };
        return (
          <>
            <h2>
              <bdi>{title}</bdi>
            </h2>
            {isOperator.value && (
              <Rename
                title={row.title ?? ''}
                onRename={(wanted) => then(() => label(row, { title: wanted }))()}
              />
            )}
            <div class="buttons">
              <Button onClick={then(() => pin(row.id, !isPinned))}>{isPinned ? 'Unpin' : 'Pin'}</Button>
              <Button onClick={then(() => (isNew(row) ? markRead([row]) : markUnread(row)))}>
                {isNew(row) ? 'Mark as read' : 'Mark as unread'}
              </Button>
              {isOperator.value && (
                <Button onClick={then(() => move(row))}>
                  {row.archived ? 'Move out of the archive' : 'Archive'}
                </Button>
              )}
              <Button onClick={close}>Close</Button>
            </div>
          </>
        );
      }}
    </Dialog>
  );
}

function move(row: ConversationRow): void {
  focusBeside(row.id);
  void archive(row, row.archived !== true);
}

/** False: it was refused. */
function label({ id }: ConversationRow, change: { title?: string; archived?: boolean }): Promise<boolean> {
  return attempt(() => requests.label(id, { ...change, ...sender() }));
}

/** Archives it or moves it out of the archive, and offers to undo that. */
async function archive(row: ConversationRow, archived: boolean): Promise<void> {
  if (!(await label(row, { archived }))) return;
  const undo = () => void archive(row, !archived);
  const done = archived ? 'Archived' : 'Moved out of the archive';
  notice.value = { text: `${done}: ${withoutAnsi(row.title ?? row.id)}`, hint: '', undo };
}

/** The next row, or the one before the last: the row itself leaves the list. */
function focusBeside(id: string): void {
  const here = document.getElementById(`title-${id}`)?.closest('li');
  const beside = here?.nextElementSibling ?? here?.previousElementSibling;
  beside?.querySelector<HTMLElement>('.row')?.focus();
}

function Rename({ title, onRename }: { title: string; onRename: (title: string) => void }) {
  const [text, setText] = useState(title);
  const wanted = text.trim();
  return (
    <form onSubmit={onSubmit(() => wanted !== '' && onRename(wanted))}>
      <input aria-label="Title" maxLength={200} value={text} onInput={onText(setText)} />
      <button type="submit" disabled={wanted === '' || wanted === title}>
        Rename
      </button>
    </form>
  );
}
