import type { ComponentChildren } from 'preact';
import { useCallback, useRef, useState } from 'preact/hooks';
import { store } from '../../api/browser.ts';
import { SHOWN, type Shown } from '../../model/list/list.ts';
import { begun, isListed, rows } from '../../state/conversations.ts';
import { needed } from '../../state/inbox.ts';
import {
  filter,
  found,
  isFiltered,
  isFilterOpen,
  isNew,
  markRead,
  narrow,
  savedFilters,
  saveFilter,
} from '../../state/list.ts';
import { openCommands, openPalette, typed } from '../../state/palette.ts';
import { linkTo, route } from '../../state/route.ts';
import { agents, mayPost, phases } from '../../state/session.ts';
import { problems } from '../../state/system.ts';
import { Button, LinkButton, onSubmit, onText, Select } from '../parts/controls.tsx';
import { useVirtualList } from '../parts/hooks.ts';
import { Icon, IconButton } from '../parts/parts.tsx';
import { ListRow, ROW_HEIGHT } from './row.tsx';

/** As a person dragged it, in this browser. */
const WIDTH = 'parley.list-width';

export function Sidebar() {
  return (
    <nav
      class="sidebar"
      aria-label="Conversations"
      style={{ width: localStorage.getItem(WIDTH) ?? undefined }}
      onPointerUp={({ currentTarget }) => {
        if (currentTarget.style.width !== '') store(localStorage, WIDTH, currentTarget.style.width);
      }}
    >
      <SkipLink />
      <header>
        <h1>
          <a href={linkTo.list}>Parley</a>
        </h1>
        <IconButton
          icon="question"
          class="quiet keys"
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
      <PageLink href={linkTo.inbox} page="inbox" text="Inbox">
        <span class={`count ${needed.value.length > 0 ? 'some' : ''}`}>{needed.value.length}</span>
      </PageLink>
      <PageLink href={linkTo.system} page="system" text="Team and system">
        <Problems />
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
          title="Filter"
          aria-expanded={isFilterOpen.value}
          onClick={() => {
            isFilterOpen.value = !isFilterOpen.value;
          }}
        />
      </div>
      {(isFilterOpen.value || isFiltered.value) && <Filters />}
      {isListed.value && rows.value.length + begun.value.length === 0 && (
        <p class="muted aside">No conversations yet. {mayPost.value && <a href={linkTo.new}>Start one</a>}</p>
      )}
      {rows.value.length > 0 && found.value.length === 0 && (
        <p class="muted aside">
          No conversation matches. <LinkButton onClick={searchMessages}>Search messages</LinkButton>
        </p>
      )}
      <Rows />
    </nav>
  );
}

/** To the main part of the page, past the list. */
function SkipLink() {
  const to = route.value.page === 'conversation' ? 'the conversation' : 'the page';
  return (
    <Button
      class="skip"
      onClick={() => {
        const main = document.querySelector('main');
        if (main) main.tabIndex = -1;
        main?.focus();
      }}
    >
      Skip to {to}
    </Button>
  );
}

/** For the words that no title has. */
function searchMessages(): void {
  openPalette();
  typed.value = filter.value.text;
}

interface PageLinkProps {
  readonly page: 'inbox' | 'system';
  readonly href: string;
  readonly text: string;
  readonly children: ComponentChildren;
}

function PageLink({ page, href, text, children }: PageLinkProps) {
  const isHere = route.value.page === page;
  return (
    <a class={`page-link ${page}-link`} href={href} aria-current={isHere ? 'page' : undefined}>
      {text}
      {children}
    </a>
  );
}

function Problems() {
  const { length } = problems.value;
  if (length === 0) return null;
  return (
    <span class="count some" title={problems.value.map(({ text }) => text).join('\n')}>
      {length}
      <span class="unseen"> {length === 1 ? 'problem' : 'problems'}</span>
    </span>
  );
}

/** One row is a stop of Tab, with its button: the one that had the focus, the open one, or the first. The arrow keys reach the others. */
function Rows() {
  const [reached, reach] = useState('');
  const scroller = useRef<HTMLDivElement>(null);
  const shown = found.value;
  const list = useVirtualList({
    count: shown.length,
    scrolled: () => scroller.current,
    keyOf: useCallback((place) => shown[place]?.id ?? place, [shown]),
    estimate: () => ROW_HEIGHT,
  });
  const items = list.getVirtualItems();
  const ids = items.map(({ index }) => shown[index]?.id);
  const at = route.value;
  const stop = [reached, at.page === 'conversation' ? at.id : ''].find((id) => ids.includes(id)) ?? ids[0];
  return (
    <div class="rows" ref={scroller}>
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

function Filters() {
  const { shown, agent, phase } = filter.value;
  return (
    <fieldset class="filters" aria-label="Filters">
      <Select
        label="Show"
        value={shown}
        options={Object.entries(SHOWN) as [Shown, string][]}
        onChoose={(value) => narrow({ shown: value })}
      />
      <Select
        label="Agent"
        value={agent}
        options={[['', 'Agent'], ...agents.value.map(({ slug, name }) => [slug, name] as const)]}
        onChoose={(value) => narrow({ agent: value })}
      />
      <Select
        label="Phase"
        value={phase}
        options={[['', 'Phase'], ...phases.value.map((one) => one.phase)]}
        onChoose={(value) => narrow({ phase: value })}
      />
      <SavedFilters />
      {(isFiltered.value || unread().length > 0) && (
        <p class="actions">
          {isFiltered.value && (
            <LinkButton onClick={() => narrow({ shown: 'all', agent: '', phase: '' })}>Show all</LinkButton>
          )}
          {unread().length > 0 && (
            <Button class="link at-end" onClick={() => markRead(unread())}>
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
    if (name.trim() === '') return;
    saveFilter(name.trim(), filter.value);
    setName('');
  };
  return (
    <>
      {savedFilters.value.map(({ name: saved, ...one }) => (
        <span key={saved} class="saved-filter">
          <LinkButton onClick={() => narrow(one)}>{saved}</LinkButton>
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

/** The unread conversations of those that the filter shows. */
const unread = () => found.value.filter(isNew);
