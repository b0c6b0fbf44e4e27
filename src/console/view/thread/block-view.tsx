import { dayOf } from '../../model/format.ts';
import type { Block, Origin } from '../../model/thread/blocks.ts';
import type { LiveDraft } from '../../model/thread/live.ts';
import type { Thinking } from '../../model/thread/thread.ts';
import { nameOf, nameOfAuthor, useThread } from '../../state/conversation.ts';
import { titleOf } from '../../state/conversations.ts';
import { jumpTo } from '../../state/jump.ts';
import type { KeptPost } from '../../state/outbox.ts';
import { linkTo } from '../../state/route.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { Avatar, Fold, Name } from '../parts/parts.tsx';
import { EntryTime } from './entry-meta.tsx';
import { FailedTurnActions } from './failure-view.tsx';
import { draftView, messageView, postView, workingView } from './message.tsx';

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
  /** A jump led to it. */
  readonly isPointed: boolean;
}

export function BlockView({ block, place, count, day, readers, isSelected, isPointed }: BlockProps) {
  return (
    <>
      {day !== null && (
        <p class="day">
          <time dateTime={day.slice(0, 10)}>{dayOf(day, Date.now())}</time>
        </p>
      )}
      <article
        class={`block ${classOf(block)}${isPointed ? ' pointed' : ''}`}
        tabIndex={isSelected ? 0 : -1}
        aria-posinset={place + 1}
        aria-setsize={count}
        aria-label={labelOf(block)}
      >
        {contentOf(block)}
      </article>
      {readers.length > 0 && <ReadMarker readers={readers} />}
    </>
  );
}

/** Messages are elements of one shape, not components, so that they keep their elements (`message.tsx`). */
function contentOf(block: Shown) {
  switch (block.kind) {
    case 'message':
      return messageView(block);
    case 'post':
      return postView(block.post);
    case 'draft':
      return draftView(block.draft);
    case 'working':
      return workingView(block.working);
    case 'band':
      return (
        <p class="band-line">
          <span class="band-title">
            {block.title}
            {block.origin && <OriginLink {...block.origin} />}
          </span>
          {block.detail && <bdi class="muted">{block.detail}</bdi>}
        </p>
      );
    case 'passage':
      return <Passage block={block} />;
    case 'note':
      return <Note block={block} />;
  }
}

function OriginLink({ conversation, index }: Origin) {
  return (
    <>
      {' '}
      <a href={linkTo.entry(conversation, index)}>
        <bdi>{titleOf(conversation) ?? conversation}</bdi>, entry {index}
      </a>
    </>
  );
}

function Passage({ block }: { readonly block: Extract<Block, { kind: 'passage' }> }) {
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
                <button type="button" class="link" onClick={() => jumpTo(answeredAt)}>
                  answered in entry {answeredAt}
                </button>
              ))}
            <TimeOf index={index} />
          </span>
        </p>
        <Markdown text={text} />
      </div>
    </>
  );
}

function Note({ block }: { readonly block: Extract<Block, { kind: 'note' }> }) {
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

function classOf(block: Shown): string {
  switch (block.kind) {
    case 'message':
      return `message by-${block.entry.author.kind}${block.entry.partType === 'error' ? ' fault' : ''}`;
    case 'post':
      return 'message by-person sending';
    case 'draft':
      return block.draft.isInterrupted ? 'message interrupted' : 'message draft';
    case 'working':
      return 'message working';
    default:
      return `${block.kind} ${block.tone}`;
  }
}

function labelOf(block: Shown): string {
  switch (block.kind) {
    case 'message':
      return `${nameOfAuthor(block.entry.author)}, entry ${block.index}`;
    case 'post':
      return 'Being sent';
    case 'draft':
      return `${nameOf(block.draft.agent)} is writing`;
    case 'working':
      return `${nameOf(block.working.agent)} is working`;
    case 'passage':
      return `${nameOf(block.from)} to ${nameOf(block.to)}`;
    default:
      return block.title;
  }
}
