import { useSignal, useSignalEffect } from '@preact/signals';
import type { RefObject } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { filesOf } from '../../../conversation/log/parts.ts';
import { heightOf } from '../../model/files.ts';
import { count, dayOf } from '../../model/format.ts';
import type { Block } from '../../model/thread/blocks.ts';
import type { LiveDraft } from '../../model/thread/live.ts';
import { messagesFrom, readMarkers, type Thinking, type Thread } from '../../model/thread/thread.ts';
import {
  drafts,
  keyOfBlock,
  keyOfDraft,
  keyOfPost,
  loading,
  loggedLength,
  nameOf,
  nameOfAuthor,
  type Opened,
  pending,
  selected,
  thinking,
  useShown,
} from '../../state/conversation.ts';
import { titleOf } from '../../state/conversations.ts';
import { keepReadingPlace, readingPlace } from '../../state/kept.ts';
import type { KeptPost } from '../../state/outbox.ts';
import { jumpTo, linkTo, pointed, route } from '../../state/route.ts';
import { me } from '../../state/session.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { Button } from '../parts/controls.tsx';
import { isPressed, useSize, useTimeout, useVirtualList } from '../parts/hooks.ts';
import { Avatar, EntryLink, EntryLinks, Fold, Name } from '../parts/parts.tsx';
import { FailedTurnActions } from './failure-view.tsx';
import { draftView, EntryTime, messageView, postView, workingView } from './message.tsx';

/** Within this distance of the end, the view follows new entries. */
const NEAR_END = 60;

export function ThreadView() {
  const here = useShown();
  if (!here) return null;
  const { loaded = 0, length = 0 } = loading.value ?? {};
  return (
    <>
      {length > 0 && (
        <p class="loading text-small muted" role="status">
          Loading the older part of {count(length)} entries:{' '}
          <progress value={loaded} max={length} aria-label="Loaded" />
        </p>
      )}
      <Entries here={here} />
    </>
  );
}

function Entries({ here: { id, thread } }: { readonly here: Opened }) {
  const scroller = useRef<HTMLDivElement>(null);
  const { blocks, entries } = thread;
  const posts = pending();
  const more: readonly Shown[] = [
    ...posts.map((post) => ({ kind: 'post', post }) as const),
    ...[...drafts.value.values()].map((draft) => ({ kind: 'draft', draft }) as const),
    ...thinking.value.map((working) => ({ kind: 'working', working }) as const),
  ];
  const shownAt = shownIn(thread, more);
  const timeAt = (place: number) => {
    const shown = shownAt(place);
    return shown && 'index' in shown ? (entries[shown.index]?.createdAt ?? null) : null;
  };
  const added = more.map((one) => keyOf(one, 0)).join();
  const list = useVirtualList({
    count: blocks.length + more.length,
    scrolled: () => scroller.current,
    // A text that grows changes no key: then the places of the blocks before it are kept.
    keyOf: useCallback((place) => keyOf(shownAt(place), place), [thread, entries.length, added]),
    estimate: (place) => estimate(shownAt(place)),
    kept: [selected.value ?? -1],
  });
  const at = route.value;
  const explained = at.page === 'conversation' && at.panel ? thread.placeOf(at.panel.index) : -1;
  useLayoutEffect(() => void (explained >= 0 && list.scrollToIndex(explained)), [explained]); // the panel narrows it
  const markers = useMemo(() => readMarkers(thread), [thread, entries.length]);
  const { isBehind, seen, onScroll, catchUp } = useReading({ id, thread }, scroller, list);
  const unseen = isBehind.value ? messagesFrom(blocks, seen.current, me.value) : 0;
  const news = unseen === 0 ? '' : `${unseen} new message${unseen === 1 ? '' : 's'}`;
  const newest = posts[0] ? keyOfPost(posts[0].post) : null;
  useLayoutEffect(() => {
    if (newest !== null) catchUp(); // the person has just written
  }, [newest]);
  return (
    <div class="thread-frame column">
      <div
        class="thread scrolls"
        ref={scroller}
        onScroll={() => onScroll()}
        role="feed"
        aria-label="Thread"
        aria-busy={drafts.value.size > 0 || blocks.length === 0}
      >
        <div class="all" style={{ height: `${list.getTotalSize()}px` }}>
          {list.getVirtualItems().map(({ key, index, start }) => {
            const block = shownAt(index);
            if (!block) return null;
            return (
              <div
                key={key}
                class="place"
                ref={list.measureElement}
                data-index={index}
                style={{ top: `${start}px` }} // a transform would misplace what sticks in it
              >
                <BlockView
                  block={block}
                  place={index}
                  count={blocks.length}
                  day={firstOfDay(timeAt(index - 1), timeAt(index))}
                  readers={markers.get(index) ?? []}
                  isSelected={selected.value === index}
                  isPointed={pointed.value === index || explained === index}
                />
              </div>
            );
          })}
        </div>
      </div>
      {isBehind.value && (
        <Button class="newest" onClick={catchUp}>
          {news || 'Newest'}
          <span aria-hidden="true"> ↓</span>
        </Button>
      )}
      <p class="unseen" role="status">
        {news && `${news} below`}
      </p>
    </div>
  );
}

/** What is at a place: blocks, and `more` after them, but before a stop that cuts off a text that is being written. */
function shownIn(thread: Thread, more: readonly Shown[]): (place: number) => Shown | undefined {
  const { blocks } = thread;
  const ends = [...drafts.value.values()].map(({ agent }) => thread.placeOfAnswer(agent));
  const cut = Math.min(blocks.length, ...ends);
  return (place) => (place < cut ? blocks[place] : (more[place - cut] ?? blocks[place - more.length]));
}

type List = ReturnType<typeof useVirtualList>;

/**
 * Where the person reads.
 *
 * READING-1 At the end, the view follows new entries, unless a text in it is selected, and never under a pressed button, whose
 *           click would be lost. A call at the end that waits for a person is shown from its beginning: its answers come after
 *           what would run.
 * READING-2 Elsewhere it stays, also after switching and a reload, until the person or a link goes to another place. Messages
 *           that arrive meanwhile are counted, from the first whole load on.
 */
function useReading({ id, thread }: Opened, scroller: RefObject<HTMLDivElement | null>, list: List) {
  const left = useRef(readingPlace(id));
  const isAtEnd = useRef(left.current === undefined);
  const isBehind = useSignal(!isAtEnd.current);
  const at = route.value;
  const wanted = at.page === 'conversation' ? at.entry : null;
  const isLoaded = wanted !== null && wanted < thread.entries.length && loading.value === null;
  const isWhole = loggedLength.value !== null && thread.entries.length >= loggedLength.value;
  /** Blocks that were there when the person left the end, or when the thread was loaded. */
  const seen = useRef(0);
  const wasWhole = useRef(false);
  const followed = useRef<Followed>({ top: -1, call: null, hasMoved: false });
  const shown = useRef(thread);
  if (shown.current !== thread) left.current = readingPlace(id); // the older part came before it
  shown.current = thread;
  useEffect(() => void (isLoaded && jumpTo(wanted)), [wanted, isLoaded]);
  useLayoutEffect(() => {
    const place = scroller.current;
    if (!place) return;
    if (left.current) {
      // Heights are estimates until the blocks are rendered: each rendering corrects the place.
      const { index, offset } = left.current;
      const item = index < thread.entries.length && list.measurementsCache[thread.placeOf(index)];
      if (item) place.scrollTop = item.start + offset;
    } else if (isAtEnd.current && !isSelectedIn(place)) follow(place, thread.blocks.length, followed.current);
    else if (isAtEnd.current && thread.blocks.length > seen.current) onScroll(true);
    if (isAtEnd.current || !wasWhole.current) seen.current = thread.blocks.length;
    wasWhole.current ||= isWhole;
  });
  const stay = () => {
    const place = scroller.current;
    const isHere = isAtEnd.current && !left.current;
    if (place && isHere && !isSelectedIn(place)) follow(place, shown.current.blocks.length, followed.current);
  };
  useTimeout(() => (left.current = undefined), isWhole ? SETTLED_MS : null, [isWhole]);
  useSignalEffect(() => void (isPressed(scroller.current) || stay()));
  useMoves(scroller, followed, left);
  useSignalEffect(() => {
    const place = selected.value;
    if (place === null) return;
    isAtEnd.current = false;
    const index = thread.blocks[place]?.index;
    // The end of what is loaded is not the end: more entries must not move the selected one away.
    left.current = isWhole || index === undefined ? undefined : { index, offset: -SPACE_ABOVE };
    // Its end is never in sight before its beginning; a height that is not measured may be less than it will be.
    const shown = list.getVirtualItems().find((item) => item.index === place);
    const isShort = shown !== undefined && shown.size <= (list.scrollRect?.height ?? 0);
    list.scrollToIndex(place, { align: isShort ? 'auto' : 'start' });
    if (isShort && !left.current) onScroll(); // no event comes where nothing moved
  });
  const onScroll = (isHeld = false) => {
    const place = scroller.current;
    if (!place) return;
    const isNear = endOf(place, followed.current.call) - place.scrollTop < NEAR_END;
    // The event may come when what is below has grown since: then the person has not moved.
    isAtEnd.current = isNear || (!isHeld && isAtEnd.current && place.scrollTop === followed.current.top);
    isBehind.value = !isAtEnd.current;
    if (left.current) return;
    const item = list.getVirtualItemForOffset(place.scrollTop);
    const index = item && thread.blocks[item.index]?.index;
    const isKept = !isAtEnd.current && item && index !== undefined;
    keepReadingPlace(id, isKept ? { index, offset: Math.round(place.scrollTop - item.start) } : undefined);
  };
  useSize(scroller, stay); // the field below grew
  const catchUp = () => {
    left.current = undefined;
    isAtEnd.current = true;
    followed.current.hasMoved = false;
    if (scroller.current) follow(scroller.current, thread.blocks.length, followed.current);
  };
  return { isBehind, seen, onScroll, catchUp };
}

/** Above an entry to which a link led, in pixels. */
const SPACE_ABOVE = 80;
/** The heights are known, after the whole thread was loaded. */
const SETTLED_MS = 3_000;
const MOVES = ['wheel', 'pointerdown', 'touchstart', 'keydown', 'click'];
/** Where the view was when it followed the end. */
interface Followed {
  top: number;
  call: Element | null;
  /** The person has scrolled, or used a key, since it was there. */
  hasMoved: boolean;
}

/** What a person does in the view moves it: the place that was `left` is over. */
function useMoves(
  scroller: RefObject<Element | null>,
  followed: { readonly current: Followed },
  left: { current: unknown },
): void {
  useEffect(() => {
    const move = () => {
      followed.current.hasMoved = true;
      left.current = undefined;
    };
    for (const name of MOVES)
      scroller.current?.addEventListener(name, move, { passive: true, capture: true });
  }, []);
}

/** Moves the view to the end (READING-1), if the person is not below the beginning of this call. */
function follow(place: Element, count: number, followed: Followed): void {
  if (isPressed(place)) return;
  const call = callAtEnd(place, count);
  const hasMoved = followed.hasMoved && call === followed.call;
  const end = endOf(place, call);
  place.scrollTop = hasMoved ? Math.max(place.scrollTop, end) : end;
  Object.assign(followed, { top: place.scrollTop, call, hasMoved });
}

/** The call that waits in the last one of `count` blocks. */
function callAtEnd(place: Element, count: number): Element | null {
  const last = place.querySelector(`[data-index="${count - 1}"]`);
  return last?.querySelector('.ask-card :is(.whole-call, .edit-arguments)')?.closest('.call') ?? null;
}

function endOf(place: Element, call: Element | null): number {
  const end = place.scrollHeight - place.clientHeight;
  if (!call) return end;
  const above = call.getBoundingClientRect().top - place.getBoundingClientRect().top;
  return Math.min(end, place.scrollTop + above);
}

function isSelectedIn(element: Element): boolean {
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && element.contains(selection.anchorNode);
}

function keyOf(shown: Shown | undefined, place: number): string | number {
  if (!shown) return place;
  if (shown.kind === 'draft') return keyOfDraft(shown.draft);
  if (shown.kind === 'working') return `working ${shown.working.turnId}`;
  return shown.kind === 'post' ? keyOfPost(shown.post.post) : keyOfBlock(shown);
}

/** The time, if it is on another day than the entry before. */
function firstOfDay(before: string | null, time: string | null): string | null {
  if (time === null) return null;
  const isSame = before !== null && new Date(before).toDateString() === new Date(time).toDateString();
  return isSame ? null : time;
}

function estimate(block: Shown | undefined): number {
  if (!block || block.kind === 'post' || block.kind === 'draft') return 90;
  if (block.kind === 'band' || block.kind === 'working') return 54;
  if (block.kind !== 'message') return 76;
  const length = block.entry.content?.length ?? 0;
  const files = heightOf(filesOf(block.entry));
  return 62 + files + Math.ceil(length / 85) * 24 + block.calls.filter(({ isTold }) => !isTold).length * 38;
}

/** What the thread shows: blocks of the log, then posts that are under way, texts that are being written and agents at work. */
type Shown =
  | Block
  | { readonly kind: 'post'; readonly post: KeptPost }
  | { readonly kind: 'draft'; readonly draft: LiveDraft }
  | { readonly kind: 'working'; readonly working: Thinking };

interface BlockProps {
  readonly block: Shown;
  readonly place: number;
  readonly count: number;
  /** The time of the first entry of a day; null: not the first. */
  readonly day: string | null;
  readonly readers: readonly string[];
  readonly isSelected: boolean;
  /** A jump led to it, or the panel is about it. */
  readonly isPointed: boolean;
}

function BlockView({ block, place, count, day, readers, isSelected, isPointed }: BlockProps) {
  const { look, label, content } = lookOf(block);
  return (
    <>
      {day !== null && (
        <p class="day muted text-tiny">
          <time dateTime={day.slice(0, 10)}>{dayOf(day, Date.now())}</time>
        </p>
      )}
      <article
        class={`block ${look}${isPointed ? ' pointed' : ''}`}
        tabIndex={isSelected ? 0 : -1}
        aria-posinset={place + 1}
        aria-setsize={count}
        aria-label={label}
      >
        {content}
      </article>
      {readers.length > 0 && <ReadMarker readers={readers} />}
    </>
  );
}

/** Its class, its label for screen readers, and what is in it. Messages are no components, so that they keep their elements (`message.tsx`). */
function lookOf(block: Shown) {
  switch (block.kind) {
    case 'message': {
      const { author, partType } = block.entry;
      const look = `message by-${author.kind}${partType === 'error' ? ' fault' : ''}`;
      return { look, label: `${nameOfAuthor(author)}, entry ${block.index}`, content: messageView(block) };
    }
    case 'post':
      return { look: 'message by-person sending', label: 'Being sent', content: postView(block.post) };
    case 'draft': {
      const look = block.draft.isInterrupted ? 'message interrupted' : 'message draft';
      return { look, label: `${nameOf(block.draft.agent)} is writing`, content: draftView(block.draft) };
    }
    case 'working': {
      const label = `${nameOf(block.working.agent)} is working`;
      return { look: 'message working', label, content: workingView(block.working) };
    }
    case 'band':
      return { look: `band ${block.tone}`, label: block.title, content: <Band block={block} /> };
    case 'passage': {
      const label = `${nameOf(block.from)} to ${nameOf(block.to)}`;
      return { look: `passage ${block.tone}`, label, content: <Passage block={block} /> };
    }
    case 'note':
      return { look: `note text-small ${block.tone}`, label: block.title, content: <Note block={block} /> };
  }
}

type Of<Kind> = { readonly block: Extract<Block, { kind: Kind }> };

function Band({ block: { title, origin, detail } }: Of<'band'>) {
  return (
    <p class="band-line text-tiny">
      <span class="band-title text-small">
        {title}
        {origin && ' '}
        {origin && (
          <a href={linkTo.entry(origin.conversation, origin.index)}>
            <bdi>{titleOf(origin.conversation) ?? origin.conversation}</bdi>, entry {origin.index}
          </a>
        )}
      </span>
      {detail && <bdi class="muted one-line">{detail}</bdi>}
    </p>
  );
}

function Passage({ block }: Of<'passage'>) {
  const { tone, from, to, text, answeredAt, index } = block;
  return (
    <>
      <Avatar id={from} />
      <div class="body">
        <p class="by wraps text-small">
          <Name id={from} />
          <span class="muted">{tone === 'handoff' ? 'hands over to' : 'asks'}</span>
          <Name id={to} />
          <span class="meta">
            {tone === 'delegation' &&
              (answeredAt === null ? (
                <span>no answer yet</span>
              ) : (
                <span>
                  answered in <EntryLink index={answeredAt} />
                </span>
              ))}
            <EntryTime index={index} />
          </span>
        </p>
        <Markdown text={text} />
      </div>
    </>
  );
}

function Note({ block }: Of<'note'>) {
  const { agent, title, content, ended, index, summed = [] } = block;
  const heading = (
    <>
      <span class="fills breaks">
        {agent && <Name id={agent} />} <bdi>{title}</bdi> <EntryLinks entries={summed} isRange />
      </span>
      <span class="meta">
        <EntryTime index={index} />
      </span>
    </>
  );
  if (content === '') {
    return (
      <>
        <p class="note-line">{heading}</p>
        {agent && ended && <FailedTurnActions agent={agent} ended={ended} index={index} />}
      </>
    );
  }
  return (
    <Fold summary={heading} name={`note ${index}`}>
      <Markdown text={content} />
    </Fold>
  );
}

function ReadMarker({ readers }: { readonly readers: readonly string[] }) {
  const names = readers.map(nameOf).join(', ');
  return (
    <p class="read-marker abreast" title={`Read up to here: ${names}`}>
      <span class="meta">read</span>
      {readers.map((slug) => (
        <Avatar key={slug} id={slug} size="small" />
      ))}
      <span class="unseen">up to here: {names}</span>
    </p>
  );
}
