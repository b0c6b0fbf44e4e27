import { useSignal, useSignalEffect } from '@preact/signals';
import type { Virtualizer } from '@tanstack/virtual-core';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Entry } from '../../../conversation/index.ts';
import { filesOf } from '../../../conversation/log/parts.ts';
import { heightOf } from '../../model/files.ts';
import { count } from '../../model/format.ts';
import { messagesFrom, readMarkers, type Thread } from '../../model/thread/thread.ts';
import {
  drafts,
  keyOfBlock,
  keyOfDraft,
  keyOfPost,
  loading,
  loggedLength,
  type Opened,
  pending,
  selected,
  thinking,
  useShown,
} from '../../state/conversation.ts';
import { keepReadingPlace, readingPlace } from '../../state/kept.ts';
import { jumpTo, pointed, route } from '../../state/route.ts';
import { me } from '../../state/session.ts';
import { Button } from '../parts/controls.tsx';
import { useVirtualList } from '../parts/hooks.ts';
import { BlockView, type Shown } from './block-view.tsx';

/** Within this distance of the end, the view follows new entries. */
const NEAR_END = 60;
const NOBODY: readonly string[] = [];

export function ThreadView() {
  const here = useShown();
  if (!here) return null;
  return (
    <>
      <LoadingBar />
      <Entries here={here} />
    </>
  );
}

function LoadingBar() {
  if (!loading.value) return null;
  const { loaded, length } = loading.value;
  return (
    <p class="loading" role="status">
      Loading the older part of {count(length)} entries:{' '}
      <progress value={loaded} max={length} aria-label="Loaded" />
    </p>
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
  const timeAt = (place: number) => timeOf(shownAt(place), entries);
  const added = more.map((one) => keyOf(one, 0)).join();
  const list = useVirtualList({
    count: blocks.length + more.length,
    scrolled: () => scroller.current,
    // A text that grows changes no key: then the places of the blocks before it are kept.
    keyOf: useCallback((place) => keyOf(shownAt(place), place), [thread, entries.length, added]),
    estimate: (place) => estimate(shownAt(place)),
    kept: selected.value,
  });
  const at = route.value;
  const explained = at.page === 'conversation' && at.panel ? thread.placeOf(at.panel.index) : null;
  const markers = useMemo(() => readMarkers(thread), [thread, entries.length]);
  const { isBehind, seen, onScroll, catchUp } = useReading({ here: { id, thread }, scroller, list });
  const unseen = isBehind.value ? messagesFrom(blocks, seen.current, me.value) : 0;
  const news = unseen === 0 ? '' : `${unseen} new message${unseen === 1 ? '' : 's'}`;
  const newest = posts[0] ? keyOfPost(posts[0].post) : null;
  useLayoutEffect(() => {
    if (newest !== null) catchUp(); // the person has just written
  }, [newest]);
  return (
    <div class="thread-frame">
      <div
        class="thread"
        ref={scroller}
        onScroll={onScroll}
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
                data-place={index}
                style={{ top: `${start}px` }} // a transform would misplace what sticks in it
              >
                <BlockView
                  block={block}
                  place={index}
                  count={blocks.length}
                  day={firstOfDay(timeAt(index - 1), timeAt(index))}
                  readers={markers.get(index) ?? NOBODY}
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

/** Null: it is not in the log. */
function timeOf(shown: Shown | undefined, entries: readonly Entry[]): string | null {
  return shown && 'index' in shown ? (entries[shown.index]?.createdAt ?? null) : null;
}

interface Reading {
  readonly here: Opened;
  readonly scroller: { readonly current: HTMLDivElement | null };
  readonly list: Virtualizer<HTMLElement, HTMLElement>;
}

/**
 * Where the person reads.
 *
 * READING-1 At the end, the view follows new entries, unless a text in it is selected. A call at the end that waits for a person is
 *           shown from its beginning: its answers come after what would run.
 * READING-2 Elsewhere it stays, also after switching and a reload, until the person or a link goes to another place. Messages
 *           that arrive meanwhile are counted, from the first whole load on.
 */
function useReading({ here: { id, thread }, scroller, list }: Reading) {
  const left = useRef(readingPlace(id));
  const isAtEnd = useRef(left.current === undefined);
  const isBehind = useSignal(!isAtEnd.current);
  const at = route.value;
  const wanted = at.page === 'conversation' ? at.entry : null;
  const isLoaded = wanted !== null && wanted < thread.entries.length && loading.value === null;
  const isWhole = loggedLength.value !== null && thread.entries.length >= loggedLength.value;
  const isWholeNow = useRef(isWhole);
  isWholeNow.current = isWhole;
  /** Blocks that were there when the person left the end, or when the thread was loaded. */
  const seen = useRef(0);
  const [wasWhole, hasMoved] = [useRef(false), useRef(false)];
  /** Where the view was when it followed the end. */
  const followed = useRef(-1);
  const shown = useRef(thread);
  if (shown.current !== thread) left.current = readingPlace(id); // the older part came before it
  shown.current = thread;
  useEffect(() => {
    if (isLoaded) jumpTo(wanted);
  }, [wanted, isLoaded]);
  useLayoutEffect(() => {
    const place = scroller.current;
    if (!place) return;
    if (left.current) {
      // Heights are estimates until the blocks are rendered: each rendering corrects the place.
      const { index, offset } = left.current;
      const item = index < thread.entries.length && list.measurementsCache[thread.placeOf(index)];
      if (item) place.scrollTop = item.start + offset;
    } else if (isAtEnd.current && !isSelectedIn(place)) {
      const end = endOf(place, thread.blocks.length);
      if (!hasMoved.current || place.scrollTop < end) place.scrollTop = end;
      followed.current = place.scrollTop;
    }
    if (isAtEnd.current || !wasWhole.current) seen.current = thread.blocks.length;
    wasWhole.current ||= isWhole;
  });
  const release = () => {
    left.current = undefined;
  };
  const move = () => {
    hasMoved.current = true;
    release();
  };
  useSettled(isWhole, release);
  useEffect(() => {
    for (const name of MOVES) scroller.current?.addEventListener(name, move, { passive: true });
  }, []);
  useSignalEffect(() => {
    const place = selected.value;
    if (place === null) return;
    isAtEnd.current = false;
    const index = thread.blocks[place]?.index;
    // The end of what is loaded is not the end: more entries must not move the selected one away.
    left.current = isWholeNow.current || index === undefined ? undefined : { index, offset: -SPACE_ABOVE };
    list.scrollToIndex(place, { align: 'auto' });
  });
  const onScroll = () => {
    const place = scroller.current;
    if (!place) return;
    const isNear = endOf(place, thread.blocks.length) - place.scrollTop < NEAR_END;
    // The event may come when what is below has grown since: then the person has not moved.
    isAtEnd.current = isNear || (isAtEnd.current && place.scrollTop === followed.current);
    isBehind.value = !isAtEnd.current;
    if (left.current) return;
    const item = list.getVirtualItemForOffset(place.scrollTop);
    const index = item && thread.blocks[item.index]?.index;
    const isKept = !isAtEnd.current && item && index !== undefined;
    keepReadingPlace(id, isKept ? { index, offset: Math.round(place.scrollTop - item.start) } : undefined);
  };
  const catchUp = () => {
    release();
    isAtEnd.current = true;
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  };
  return { isBehind, seen, onScroll, catchUp };
}

/** After the whole thread was loaded, the heights are known within `SETTLED_MS`. */
function useSettled(isWhole: boolean, settled: () => void): void {
  useEffect(() => {
    if (!isWhole) return;
    const timer = setTimeout(settled, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [isWhole]);
}

/** Above an entry to which a link led, in pixels. */
const SPACE_ABOVE = 80;
const SETTLED_MS = 3_000;
const MOVES = ['wheel', 'pointerdown', 'touchstart', 'keydown'];

/** Where the view is at the end (READING-1). `count`: the blocks of the thread. */
function endOf(place: Element, count: number): number {
  const end = place.scrollHeight - place.clientHeight;
  const last = place.querySelector(`[data-index="${count - 1}"]`);
  const call = last?.querySelector('.ask-card :is(.whole-call, .edit-arguments)')?.closest('.call');
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

/** Estimates the height of a block before it is rendered. */
function estimate(block: Shown | undefined): number {
  if (!block || block.kind === 'post' || block.kind === 'draft') return 90;
  if (block.kind === 'band' || block.kind === 'working') return 54;
  if (block.kind !== 'message') return 76;
  const length = block.entry.content?.length ?? 0;
  const files = heightOf(filesOf(block.entry));
  return 62 + files + Math.ceil(length / 85) * 24 + block.calls.filter(({ isTold }) => !isTold).length * 38;
}
