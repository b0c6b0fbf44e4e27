import { useSignal, useSignalEffect } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Block } from '../model/blocks.ts';
import type { LiveDraft } from '../model/live.ts';
import { readMarkers } from '../model/thread.ts';
import { drafts, selected, useThread } from '../state/conversation.ts';
import { BlockView } from './block-view.tsx';
import { Markdown } from './markdown.tsx';
import { Avatar, Name } from './parts.tsx';
import { useVirtualList } from './virtual-list.ts';

/** Within this distance of the end, the view follows new entries. */
const NEAR_END = 60;

export function ThreadView() {
  const thread = useThread()?.thread;
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const isBehind = useSignal(false);
  const blocks = thread?.blocks ?? [];
  const length = thread?.entries.length ?? 0;
  const live = [...drafts.value.values()];
  const list = useVirtualList({
    count: blocks.length + live.length,
    scrolled: () => scroller.current,
    keyOf: (place) => blocks[place]?.index ?? `live ${live[place - blocks.length]?.turnId ?? place}`,
    estimate: (place) => estimate(blocks[place]),
  });
  const markers = useMemo(() => (thread ? readMarkers(thread) : new Map()), [thread, length]);
  useLayoutEffect(() => {
    const place = scroller.current;
    if (place && isAtEnd.current) place.scrollTop = place.scrollHeight;
  });
  useSignalEffect(() => {
    if (selected.value === null) return;
    isAtEnd.current = false;
    list.scrollToIndex(selected.value, { align: 'auto' });
  });
  const onScroll = () => {
    const place = scroller.current;
    if (!place) return;
    isAtEnd.current = place.scrollHeight - place.scrollTop - place.clientHeight < NEAR_END;
    isBehind.value = !isAtEnd.current;
  };
  const catchUp = () => {
    isAtEnd.current = true;
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  };
  return (
    <div class="thread-frame">
      <div
        class="thread"
        ref={scroller}
        onScroll={onScroll}
        role="feed"
        aria-label="Thread"
        aria-busy={live.length > 0}
      >
        <div class="all" style={{ height: `${list.getTotalSize()}px` }}>
          {list.getVirtualItems().map((item) => {
            const block = blocks[item.index];
            const draft = live[item.index - blocks.length];
            return (
              <div
                key={item.key}
                class="place"
                ref={list.measureElement}
                data-index={item.index}
                data-place={item.index}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                {block && (
                  <BlockView
                    block={block}
                    place={item.index}
                    count={blocks.length}
                    readers={markers.get(item.index) ?? []}
                    isSelected={selected.value === item.index}
                  />
                )}
                {draft && <DraftView draft={draft} />}
              </div>
            );
          })}
        </div>
      </div>
      {isBehind.value && (
        <button type="button" class="newest" onClick={catchUp}>
          Newest
        </button>
      )}
    </div>
  );
}

/** Estimates the height of a block before it is rendered. */
function estimate(block: Block | undefined): number {
  if (!block) return 90;
  if (block.kind === 'band') return 54;
  if (block.kind !== 'message') return 76;
  const length = block.entry.content?.length ?? 0;
  return 62 + Math.ceil(length / 85) * 24 + block.calls.filter(({ isTold }) => !isTold).length * 38;
}

/** The streamed text of an agent. */
function DraftView({ draft }: { readonly draft: LiveDraft }) {
  const { agent, text, reasoning, tools, isPartial } = draft;
  return (
    <article class="block message draft" aria-label={`${agent} is speaking`}>
      <Avatar id={agent} />
      <div class="body">
        <p class="by">
          <Name id={agent} />
          <span class="pulse" aria-hidden="true" />
          <span class="muted">
            {text === '' && reasoning !== ''
              ? 'thinks'
              : tools.length > 0
                ? `calls ${tools.join(', ')}`
                : 'speaks'}
          </span>
        </p>
        {text === '' && reasoning !== '' && <p class="reasoning">{reasoning.slice(-300)}</p>}
        <Markdown text={isPartial ? `… ${text}` : text} />
      </div>
    </article>
  );
}
