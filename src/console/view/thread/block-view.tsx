import type { ComponentChildren, TargetedFocusEvent } from 'preact';
import { dayOf } from '../../model/format.ts';
import type { Block } from '../../model/thread/blocks.ts';
import type { LiveDraft } from '../../model/thread/live.ts';
import type { Thinking } from '../../model/thread/thread.ts';
import { nameOf, nameOfAuthor, useThread } from '../../state/conversation.ts';
import { titleOf } from '../../state/conversations.ts';
import type { KeptPost } from '../../state/outbox.ts';
import { jumpTo, linkTo } from '../../state/route.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { LinkButton } from '../parts/controls.tsx';
import { Avatar, Fold, Name } from '../parts/parts.tsx';
import { FailedTurnActions } from './failure-view.tsx';
import { draftView, EntryTime, messageView, postView, workingView } from './message.tsx';

/** What the thread shows: blocks of the log, then posts that are under way, texts that are being written and agents at work. */
export type Shown =
  | Block
  | { readonly kind: 'post'; readonly post: KeptPost }
  | { readonly kind: 'draft'; readonly draft: LiveDraft }
  | { readonly kind: 'working'; readonly working: Thinking };

export interface BlockProps {
  readonly block: Shown;
  readonly place: number;
  readonly count: number;
  /** The time of the first entry of a day; null: not the first. */
  readonly day: string | null;
  /** Agents that have read up to here. */
  readonly readers: readonly string[];
  readonly isSelected: boolean;
  /** A jump led to it, or the panel is about it. */
  readonly isPointed: boolean;
}

export function BlockView({ block, place, count, day, readers, isSelected, isPointed }: BlockProps) {
  const { look, label, content } = lookOf(block);
  return (
    <>
      {day !== null && (
        <p class="day">
          <time dateTime={day.slice(0, 10)}>{dayOf(day, Date.now())}</time>
        </p>
      )}
      <article
        class={`block ${look}${isPointed ? ' pointed' : ''}`}
        tabIndex={isSelected ? 0 : -1}
        aria-posinset={place + 1}
        aria-setsize={count}
        aria-label={label}
        onFocusIn={choose}
        onFocusOut={leave}
      >
        {content}
      </article>
      {readers.length > 0 && <ReadMarker readers={readers} />}
    </>
  );
}

/** It got the focus itself: its actions are shown, also on a phone, until the focus is elsewhere. */
const choose = ({ target, currentTarget: block }: TargetedFocusEvent<HTMLElement>) => {
  if (target === block) block.dataset.chosen = '';
};

const leave = ({ relatedTarget, currentTarget: block }: TargetedFocusEvent<HTMLElement>) => {
  if (!(relatedTarget instanceof Node && block.contains(relatedTarget))) delete block.dataset.chosen;
};

interface Look {
  /** The class. */
  readonly look: string;
  /** For screen readers. */
  readonly label: string;
  readonly content: ComponentChildren;
}

/** Messages are elements of one shape, not components, so that they keep their elements (`message.tsx`). */
function lookOf(block: Shown): Look {
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
      return { look: `note ${block.tone}`, label: block.title, content: <Note block={block} /> };
  }
}

type Of<Kind> = { readonly block: Extract<Block, { kind: Kind }> };

function Band({ block: { title, origin, detail } }: Of<'band'>) {
  return (
    <p class="band-line">
      <span class="band-title">
        {title}
        {origin && (
          <>
            {' '}
            <a href={linkTo.entry(origin.conversation, origin.index)}>
              <bdi>{titleOf(origin.conversation) ?? origin.conversation}</bdi>, entry {origin.index}
            </a>
          </>
        )}
      </span>
      {detail && <bdi class="muted">{detail}</bdi>}
    </p>
  );
}

function Passage({ block }: Of<'passage'>) {
  const { tone, from, to, text, answeredAt, index } = block;
  return (
    <>
      <Avatar id={from} />
      <div class="body">
        <p class="by">
          <Name id={from} />
          <span class="muted">{tone === 'handoff' ? 'hands over to' : 'asks'}</span>
          <Name id={to} />
          <span class="meta">
            {tone === 'delegation' &&
              (answeredAt === null ? (
                <span>no answer yet</span>
              ) : (
                <LinkButton onClick={() => jumpTo(answeredAt)}>answered in entry {answeredAt}</LinkButton>
              ))}
            <TimeOf index={index} />
          </span>
        </p>
        <Markdown text={text} />
      </div>
    </>
  );
}

function Note({ block }: Of<'note'>) {
  const { agent, title, content, ended, index } = block;
  const heading = (
    <>
      <span class="note-text">
        {agent && <Name id={agent} />} <bdi>{title}</bdi>
      </span>
      <span class="meta">
        <TimeOf index={index} />
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

function TimeOf({ index }: { readonly index: number }) {
  const at = useThread()?.thread.entries[index]?.createdAt;
  return at ? <EntryTime index={index} at={at} /> : null;
}

function ReadMarker({ readers }: { readonly readers: readonly string[] }) {
  const names = readers.map(nameOf).join(', ');
  return (
    <p class="read-marker" title={`Read up to here: ${names}`}>
      <span class="meta">read</span>
      {readers.map((slug) => (
        <Avatar key={slug} id={slug} size="small" />
      ))}
      <span class="unseen">up to here: {names}</span>
    </p>
  );
}
