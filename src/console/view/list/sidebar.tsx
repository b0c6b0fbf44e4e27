import type { ComponentChildren } from 'preact';
import { useCallback, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { FIRST_FLOOR } from '../../../conversation/state/answering.ts';
import { store } from '../../api/browser.ts';
import type { ConversationRow } from '../../model/answers.ts';
import { money, withoutAnsi } from '../../model/format.ts';
import { hasFailed, needsPerson, SHOWN, waitOf } from '../../model/list/list.ts';
import { nameOf } from '../../state/conversation.ts';
import { begun, isListed, rows } from '../../state/conversations.ts';
import { needed } from '../../state/inbox.ts';
import { unsent } from '../../state/kept.ts';
import { focusOn } from '../../state/keys.ts';
import {
  filter,
  found,
  isFiltered,
  isFilterOpen,
  isNew,
  markAllRead,
  narrow,
  organized,
  pins,
  savedFilters,
  saveFilter,
} from '../../state/list.ts';
import { firstPosts, heldPosts, outbox } from '../../state/outbox.ts';
import { openCommands, openPalette } from '../../state/palette.ts';
import { enterPage, focusMain, linkTo, openToWrite, route } from '../../state/route.ts';
import { agents, mayPost, phases } from '../../state/session.ts';
import { problems } from '../../state/system.ts';
import { Button, LinkButton, onSubmit, onText, Select } from '../parts/controls.tsx';
import { useSteady, useVirtualList } from '../parts/hooks.ts';
import { Avatar, Icon, IconButton, Title, When } from '../parts/parts.tsx';

/** As a person dragged it, in this browser. */
const WIDTH = 'parley.list-width';

export function Sidebar() {
  return (
    <nav
      class="sidebar column"
      aria-label="Conversations"
      style={{ width: localStorage.getItem(WIDTH) ?? undefined }}
      onPointerUp={({ currentTarget }) => {
        if (currentTarget.style.width !== '') store(localStorage, WIDTH, currentTarget.style.width);
      }}
    >
      <Button class="skip" onClick={focusMain}>
        Skip to {route.value.page === 'conversation' ? 'the conversation' : 'the page'}
      </Button>
      <header>
        <h1>
          <a href={linkTo.list}>Parley</a>
        </h1>
        <IconButton
          icon="question"
          class="quiet keys at-end"
          aria-label="Actions and keys"
          title="Actions and keys (?)"
          onClick={openCommands}
        />
        <IconButton
          icon="search"
          aria-label="Search"
          title="Search everything (Ctrl+K)"
          onClick={() => openPalette()}
        />
        {mayPost.value && (
          <a
            class="button quiet"
            href={linkTo.new}
            aria-label="New conversation"
            title="New conversation (n)"
          >
            <Icon name="plus" />
          </a>
        )}
      </header>
      <PageLink page="inbox" text="Inbox">
        <span class={`count ${needed.value.length > 0 ? 'some' : ''}`}>{needed.value.length}</span>
      </PageLink>
      <PageLink page="system" text="Team and system">
        {problems.value.length > 0 && (
          <span class="count some" title={problems.value.map(({ text }) => text).join('\n')}>
            {problems.value.length}
            <span class="unseen"> {problems.value.length === 1 ? 'problem' : 'problems'}</span>
          </span>
        )}
      </PageLink>
      <div class="find">
        <input
          id="search"
          type="search"
          placeholder="Find a conversation"
          aria-label="Find a conversation"
          value={filter.value.text}
          onInput={onText((text) => narrow({ text }))}
        />
        <IconButton
          icon="filter"
          class={`quiet ${isFiltered.value ? 'is-on' : ''}`}
          aria-label="Filter"
          aria-expanded={isFilterOpen.value}
          onClick={() => (isFilterOpen.value = !isFilterOpen.value)}
        />
      </div>
      {(isFilterOpen.value || isFiltered.value) && <Filters />}
      {isListed.value && rows.value.length + begun.value.length === 0 && (
        <p class="muted aside text-small">
          No conversations yet. {mayPost.value && <a href={linkTo.new}>Start one</a>}
        </p>
      )}
      {rows.value.length > 0 && found.value.length === 0 && (
        <p class="muted aside text-small">
          No conversation matches.{' '}
          <LinkButton onClick={() => openPalette(filter.value.text)}>Search messages</LinkButton>
        </p>
      )}
      <Rows />
    </nav>
  );
}

type PageLinkProps = { page: 'inbox' | 'system'; text: string; children: ComponentChildren };

function PageLink({ page, text, children }: PageLinkProps) {
  return (
    <a
      class={`page-link abreast ${page}-link`}
      href={linkTo[page]}
      aria-current={route.value.page === page ? 'page' : undefined}
    >
      {text}
      {children}
    </a>
  );
}

/** One row is a stop of Tab, with its button: the one that had the focus, the open one, or the first. The arrow keys reach the others. */
function Rows() {
  const [reached, reach] = useState('');
  const scroller = useRef<HTMLDivElement>(null);
  const shown = useSteady(found.value, scroller);
  const at = route.value;
  const open = at.page === 'conversation' ? at.id : '';
  const [openAt = -1, reachedAt = -1] = [open, reached].map((one) => shown.findIndex(({ id }) => id === one));
  const list = useVirtualList({
    count: shown.length,
    scrolled: () => scroller.current,
    keyOf: useCallback((place) => shown[place]?.id ?? place, [shown]),
    estimate: () => ROW_HEIGHT,
    kept: [openAt, reachedAt],
  });
  const items = list.getVirtualItems();
  const ids = items.map(({ index }) => shown[index]?.id);
  const stop = [reached, open].find((id) => ids.includes(id)) ?? ids[0];
  /** The open row is kept in sight, from when it is opened or the person posts there until they use or narrow the list. */
  const [isFollowed, follow] = useState(true);
  const leave = () => follow(false);
  const enter = ({ target }: FocusEvent) => (target as Element).ariaCurrent === null && leave();
  const posted = outbox.value.findLast(({ conversation }) => conversation === open)?.post.id;
  useLayoutEffect(() => {
    leave();
    if (reachedAt >= 0 && scroller.current?.contains(document.activeElement)) list.scrollToIndex(reachedAt);
  }, [filter.value]);
  useLayoutEffect(() => follow(true), [open, posted]);
  useLayoutEffect(() => reach(''), [open]);
  useLayoutEffect(() => {
    const isAtTop = (openAt + 1) * ROW_HEIGHT <= (list.scrollRect?.height ?? 0); // in sight with all above it
    const isHidden = openAt * ROW_HEIGHT < (list.scrollOffset ?? 0);
    if (isFollowed && openAt >= 0) list.scrollToIndex(isAtTop && isHidden ? 0 : openAt);
  }, [isFollowed, open, openAt]);
  return (
    <div class="rows scrolls" ref={scroller} onWheel={leave} onPointerDown={leave} onFocusIn={enter}>
      <ul style={{ height: `${list.getTotalSize()}px` }}>
        {items.map(({ key, index, start }) => {
          const row = shown[index];
          return (
            row && (
              <li
                key={key}
                style={{ transform: `translateY(${start}px)` }}
                aria-posinset={index + 1}
                aria-setsize={shown.length}
              >
                <ListRow row={row} isStop={row.id === stop} onReach={() => reach(row.id)} />
              </li>
            )
          );
        })}
      </ul>
    </div>
  );
}

const UNFILTERED = { shown: 'all', agent: '', phase: '' } as const;

function Filters() {
  const lists: ['shown' | 'agent' | 'phase', string, readonly (readonly [string, string])[]][] = [
    ['shown', 'Show', Object.entries(SHOWN)],
    ['agent', 'Agent', [['', 'Agent'], ...agents.value.map(({ slug, name }) => [slug, name] as const)]],
    ['phase', 'Phase', [['', 'Phase'], ...phases.value.map(({ phase }) => [phase, phase] as const)]],
  ];
  const select = ([of, label, options]: (typeof lists)[number]) => {
    const choose = (value: string) => narrow({ [of]: value });
    return <Select key={of} {...{ label, options }} value={filter.value[of]} onChoose={choose} />;
  };
  const news = found.value.filter(isNew);
  return (
    <fieldset class="filters" id="filters" tabIndex={-1} aria-label="Filters">
      {lists.map(select)}
      <SavedFilters />
      {(isFiltered.value || news.length > 0) && (
        <p class="actions">
          {isFiltered.value && <LinkButton onClick={() => narrow(UNFILTERED)}>Show all</LinkButton>}
          {news.length > 0 && (
            <Button class="link at-end" onClick={() => focusOn('filters') && markAllRead(news)}>
              Mark all as read
            </Button>
          )}
        </p>
      )}
    </fieldset>
  );
}

/** A name in the field saves what is shown; a saved one is shown again, or removed. */
function SavedFilters() {
  const [name, setName] = useState('');
  const save = () => {
    saveFilter(name.trim(), filter.value);
    setName('');
  };
  return (
    <>
      {savedFilters.value.map(({ name: saved, ...one }) => (
        <span key={saved} class="saved-filter">
          <LinkButton class="link one-line" onClick={() => narrow(one)}>
            {saved}
          </LinkButton>
          <IconButton
            icon="close"
            aria-label={`Remove the filter ${saved}`}
            onClick={() => saveFilter(saved, null)}
          />
        </span>
      ))}
      {(isFiltered.value || filter.value.text !== '') && (
        <form class="save-filter" onSubmit={onSubmit(save)}>
          <input
            aria-label="Name of the filter"
            required
            pattern=".*\S.*"
            placeholder="Save as…"
            maxLength={60}
            value={name}
            onInput={onText(setName)}
          />
          <button type="submit">Save</button>
        </form>
      )}
    </>
  );
}

/** Pixels; `sidebar.css` has the same number. */
const ROW_HEIGHT = 44;

type ListRowProps = { row: ConversationRow; isStop: boolean; onReach: () => void };

function ListRow({ row, isStop, onReach }: ListRowProps) {
  const at = route.value;
  const isOpen = at.page === 'conversation' && at.id === row.id;
  const unread = isNew(row) ? 'unread' : '';
  useLayoutEffect(() => () => passFocus(row.id), []);
  return (
    <>
      <a
        class={`row ${unread}`}
        href={linkTo.conversation(row.id)}
        title={`${withoutAnsi(row.title ?? row.id)}\n${row.id}`}
        aria-current={isOpen ? 'page' : undefined}
        tabIndex={isStop ? 0 : -1}
        onFocus={onReach}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return; // elsewhere
          if (event.detail > 0) openToWrite(row.id);
          else enterPage(linkTo.conversation(row.id));
        }}
      >
        <span class="heading">
          {pins.value.has(row.id) && <Icon name="pin" />}
          <Title of={row} class={`title ${unread}`} id={`title-${row.id}`} />
          {unread && (
            <span class="dot">
              <span class="unseen">unread</span>
            </span>
          )}
        </span>
        <span class="meta abreast">
          {row.phase !== FIRST_FLOOR.phase && <span class="phase">{row.phase}</span>}
          {!isOpen && unsent.value.has(row.id) && <span class="draft">draft</span>}
          <State row={row} />
          {/* One element: with `.cost + time`, Chromium sometimes keeps the margin of before the cost appeared. */}
          <span class="end at-end">
            <Cost {...row} />
            {!isUnlisted(row) && <When at={row.activeAt} />}
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
          onClick={() => (organized.value = row.id)}
        />
      )}
    </>
  );
}

const isUnlisted = ({ length }: ConversationRow): boolean => length === 0;

const LEAST_USD = 0.01;

const UNSENT = { sending: 'is being sent', waiting: 'waits to be sent', refused: 'not sent' } as const;

function Cost({ usd, unpricedCalls }: ConversationRow) {
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
  const post = isUnlisted(row) ? firstPosts.value.get(row.id) : heldPosts.value.get(row.id);
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
        <span class="talking inline" title={`${row.running.map(nameOf).join(', ')} at work`}>
          {row.running.map((slug) => (
            <Avatar key={slug} id={slug} size="small" />
          ))}
          <span class="unseen">{row.running.map(nameOf).join(', ')} at work</span>
          <span class="pulse" aria-hidden="true" />
        </span>
        {preview}
      </>
    );
  }
  const absent = row.activity?.find((one) => one.for === 'program');
  if (absent) return <span class="waits">{nameOf(absent.agent)} is not connected</span>;
  if (row.waiting.length > 0) return <span class="waits">{waitOf(row)}</span>;
  if (hasFailed(row)) return <span class="waits failed">failed</span>;
  if (row.allStopped) return <span class="waits">all agents are stopped</span>;
  if (row.stopped.length > 0) return <span class="waits">stopped: {row.stopped.map(nameOf).join(', ')}</span>;
  if (row.limited.length > 0) return <span class="waits">halted by a limit</span>;
  return preview || null;
}

/** A row that leaves the list with the focus gives it to the next one, else to the one before it, else to the search. */
function passFocus(id: string): void {
  const here = document.getElementById(`title-${id}`)?.closest('li');
  if (!here?.contains(document.activeElement) || found.peek().some((row) => row.id === id)) return;
  const beside = here.nextElementSibling ?? here.previousElementSibling;
  (beside?.querySelector<HTMLElement>('.row') ?? document.getElementById('search'))?.focus();
}
