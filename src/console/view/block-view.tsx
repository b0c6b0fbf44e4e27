import { finishNotice } from '../../conversation/log/finish-reason.ts';
import { splitMessage } from '../../conversation/log/model-failure.ts';
import type { Block } from '../model/blocks.ts';
import { clockTime, duration } from '../model/format.ts';
import { nameOf, opened } from '../state/conversation.ts';
import { jumpTo } from '../state/jump.ts';
import { linkTo, type Panel } from '../state/route.ts';
import { isOperator } from '../state/session.ts';
import { CallRow } from './call-row.tsx';
import { FailedTurnActions, FailureText } from './failure-view.tsx';
import { Markdown } from './markdown.tsx';
import { Avatar, Fold, Name } from './parts.tsx';

export interface BlockProps {
  readonly block: Block;
  readonly place: number;
  readonly count: number;
  /** Agents that have read up to here. */
  readonly readers: readonly string[];
  readonly isSelected: boolean;
}

export function BlockView({ block, place, count, readers, isSelected }: BlockProps) {
  return (
    <>
      <article
        class={`block ${block.kind}${'tone' in block ? ` ${block.tone}` : ''}${authorClass(block)}`}
        tabIndex={isSelected ? 0 : -1}
        aria-posinset={place + 1}
        aria-setsize={count}
        aria-label={labelOf(block)}
      >
        <Content block={block} />
      </article>
      {readers.length > 0 && <ReadMarker readers={readers} />}
    </>
  );
}

function Content({ block }: { readonly block: Block }) {
  switch (block.kind) {
    case 'message':
      return <Message block={block} />;
    case 'band':
      return (
        <p class="band-line">
          <span class="band-title">{block.title}</span>
          {block.detail && <span class="muted">{block.detail}</span>}
        </p>
      );
    case 'passage':
      return <Passage block={block} />;
    case 'note':
      return <Note block={block} />;
  }
}

function Message({
  block: { entry, calls, index },
}: {
  readonly block: Extract<Block, { kind: 'message' }>;
}) {
  const { author } = entry;
  const isAnswer = entry.role === 'assistant' && author.kind === 'agent';
  const notice = finishNotice(entry.finishReason);
  const { text, failure } = splitMessage(entry);
  const to = entry.role === 'user' ? (entry.to ?? []) : [];
  return (
    <>
      <Avatar id={author.id} />
      <div class="body">
        <p class="by">
          <Name id={author.id} name={author.name} />
          {to.length > 0 && <span class="muted">to {to.map(nameOf).join(', ')}</span>}
          {entry.delivery && entry.delivery !== 'steer' && <span class="tag">{entry.delivery}</span>}
          {entry.includeInContext === false && <span class="tag">for people only</span>}
          <span class="meta">
            <PanelLinks index={index} author={author.name} isAnswer={isAnswer} />
            {entry.duration !== undefined && isAnswer && <span>{duration(entry.duration)}</span>}
            <time dateTime={entry.createdAt}>{clockTime(entry.createdAt)}</time>
            <span class="number">{index}</span>
          </span>
        </p>
        {entry.reasoning && (
          <Fold name={`thought ${index}`} summary={<span class="muted">thought about it</span>}>
            <p class="reasoning">{entry.reasoning}</p>
          </Fold>
        )}
        {text && <Markdown text={text} isTyped={author.kind === 'person'} />}
        {failure && <FailureText failure={failure} />}
        {notice !== null && <p class="fault">({notice})</p>}
        {calls.some(({ isTold }) => !isTold) && (
          <div class="calls">
            {calls.map(
              (call) => !call.isTold && <CallRow key={call.place.position} call={call} agent={author.id} />,
            )}
          </div>
        )}
      </div>
    </>
  );
}

interface PanelLinksProps {
  readonly index: number;
  readonly author: string;
  readonly isAnswer: boolean;
}

function PanelLinks({ index, author, isAnswer }: PanelLinksProps) {
  const link = (kind: Panel['kind']) => linkTo.panel(opened.value?.id ?? '', { kind, index });
  return (
    <>
      {isOperator.value && (
        <a class="beside" href={link('fork')} aria-label={`Fork from entry ${index}`} title="Fork from here">
          fork
        </a>
      )}
      {isAnswer && (
        <a
          class="beside why"
          href={link('why')}
          aria-label={`Why did ${author} say that?`}
          title="Why did it say that? (Enter)"
        >
          why?
        </a>
      )}
    </>
  );
}

function Passage({ block }: { readonly block: Extract<Block, { kind: 'passage' }> }) {
  const { tone, from, to, text, answeredAt } = block;
  return (
    <>
      <span class="passage-who">
        <Avatar id={from} size="small" />
        <span class="arrow" aria-hidden="true" />
        <Avatar id={to} size="small" />
      </span>
      <div class="body">
        <p class="by">
          <Name id={from} />
          <span class="muted">{tone === 'handoff' ? 'hands over to' : 'asks'}</span>
          <Name id={to} />
          {tone === 'delegation' && (
            <span class="meta">
              {answeredAt === null ? (
                <span>no answer yet</span>
              ) : (
                <button type="button" class="link" onClick={() => jumpTo(answeredAt)}>
                  answered in {answeredAt}
                </button>
              )}
            </span>
          )}
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
      {agent && <Name id={agent} />}
      <span>{title}</span>
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
    <p class="read-marker" title={`${names} has read up to here`}>
      <span class="meta" aria-hidden="true">
        read
      </span>
      {readers.map((slug) => (
        <Avatar key={slug} id={slug} size="small" />
      ))}
      <span class="unseen">{names} has read up to here</span>
    </p>
  );
}

function authorClass(block: Block): string {
  if (block.kind !== 'message') return '';
  const fault = block.entry.partType === 'error' ? ' fault' : '';
  return ` by-${block.entry.author.kind}${fault}`;
}

function labelOf(block: Block): string {
  if (block.kind === 'message') return `${block.entry.author.name}, entry ${block.index}`;
  if (block.kind === 'passage') return `${nameOf(block.from)} to ${nameOf(block.to)}`;
  return block.title;
}
