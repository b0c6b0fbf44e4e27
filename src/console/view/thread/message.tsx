import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { EntryOf, FeedbackValue, FilePart, MessageEntry } from '../../../conversation/index.ts';
import { finishNotice } from '../../../conversation/log/finish-reason.ts';
import { splitMessage } from '../../../conversation/log/model-failure.ts';
import { filesOf } from '../../../conversation/log/parts.ts';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { requests } from '../../api/requests.ts';
import type { Activity } from '../../model/answers.ts';
import { isPicture } from '../../model/files.ts';
import { clockTime, count, duration, fullTime } from '../../model/format.ts';
import type { Block } from '../../model/thread/blocks.ts';
import { contentOf, type LiveDraft } from '../../model/thread/live.ts';
import { type Thinking, type Until, unreadBy } from '../../model/thread/thread.ts';
import { nameOf, nameOfAuthor, opened, useShown, useThread } from '../../state/conversation.ts';
import { activityOf } from '../../state/conversations.ts';
import { useConversation, useKeptText } from '../../state/kept.ts';
import type { KeptPost } from '../../state/outbox.ts';
import { linkTo, type Panel } from '../../state/route.ts';
import { agents, attempt, isOperator, mayPost, me, nameOfMe, sender } from '../../state/session.ts';
import { Markdown, type MarkdownProps } from '../markdown/markdown.tsx';
import { Button, CopyButton, LinkButton, onSubmit, onText, QuietButton } from '../parts/controls.tsx';
import { useNow } from '../parts/hooks.ts';
import { Avatar, Fold, Icon, Name } from '../parts/parts.tsx';
import { CallRow, ReportedRow } from './call-row.tsx';
import { FailureText } from './failure-view.tsx';
import { Files } from './files.tsx';

/**
 * A message while it is written, while it is sent, and in the log. All three have the same elements, so that a message keeps
 * its place, and a selection in it, when the log has it.
 */

interface FrameProps extends MarkdownProps {
  readonly author: string;
  readonly name?: string;
  readonly by: ComponentChildren;
  readonly reasoning?: ComponentChildren;
  readonly files?: readonly FilePart[];
  /** The log has its files. */
  readonly isLogged?: boolean;
  readonly children?: ComponentChildren;
}

function Frame({ author, name, by, reasoning, files = [], isLogged = false, children, ...text }: FrameProps) {
  return (
    <>
      <Avatar id={author} />
      <div class="body">
        <p class="by wraps text-small">
          <Name id={author} {...(name !== undefined && { name })} />
          {by}
        </p>
        {reasoning}
        {text.text !== '' && <LongText key="text" {...text} />}
        {files.length > 0 && <Files key="files" files={files} isLogged={isLogged} />}
        {children}
      </div>
    </>
  );
}

/** Characters. Laying out much more blocks the page. */
const SHOWN_FIRST = 20_000;

function LongText(props: MarkdownProps) {
  const { text, isGrowing } = props;
  const [most, setMost] = useState(SHOWN_FIRST);
  const line = text.lastIndexOf('\n', most);
  const shown = isGrowing || text.length <= most ? text : text.slice(0, line > most / 2 ? line : most);
  const hidden = text.length - shown.length;
  return (
    <>
      <Markdown {...props} text={shown} />
      {hidden > 0 && (
        <LinkButton onClick={() => setMost(most * 2)}>
          Show more ({count(hidden)} characters are hidden)
        </LinkButton>
      )}
    </>
  );
}

export function messageView({ entry, calls, feedback, index, lateFor }: Extract<Block, { kind: 'message' }>) {
  const { author } = entry;
  const notice = finishNotice(entry.finishReason);
  const { text, failure } = splitMessage(entry);
  const to = entry.role === 'user' ? (entry.to ?? []) : [];
  const isAnswer = entry.role === 'assistant' && author.kind === 'agent';
  const own = calls.filter(({ isTold }) => !isTold);
  const { reported = [] } = entry;
  const isBare = text === '' && own.length === 0 && calls.length > 0;
  return (
    <Frame
      author={author.id}
      name={nameOfAuthor(author)}
      text={text}
      files={filesOf(entry)}
      isLogged
      isTyped={author.kind === 'person'}
      by={
        <>
          {to.length > 0 && <span class="muted">to {to.map(nameOf).join(', ')}</span>}
          {isBare && (
            <span class="muted">calls {calls.map(({ tool }) => escapeHidden(tool)).join(', ')}</span>
          )}
          {entry.delivery && entry.delivery !== 'steer' && entry.workflow === undefined && (
            <span class="tag">{entry.delivery}</span>
          )}
          {entry.includeInContext === false && <span class="tag">for people only</span>}
          {author.kind !== 'agent' && entry.sessionId !== undefined && !entry.setsSession && (
            <span class="tag">its sessionId has no effect</span>
          )}
          <span class="meta">
            <MessageActions
              {...{ index, isAnswer, given: feedback }}
              author={nameOfAuthor(author)}
              text={entry.content ?? ''}
            />
            {entry.duration !== undefined && isAnswer && <span>{duration(entry.duration)}</span>}
            <EntryTime index={index} />
          </span>
        </>
      }
      reasoning={
        entry.reasoning && (
          <Fold name={`thought ${index}`} summary={<span class="muted">Reasoning</span>}>
            {reasoned(entry.reasoning)}
          </Fold>
        )
      }
    >
      {lateFor && (
        <p class="muted late text-small">
          This answer came late:{' '}
          {lateFor.resultBy
            ? `${escapeHidden(lateFor.resultBy)} had answered the question`
            : 'the turn that asked had ended'}
          . It was posted as a message.
        </p>
      )}
      {to.length > 0 && <UnreadBy entry={entry} />}
      {failure && <FailureText failure={failure} />}
      {notice !== null && <p class="fault">({notice})</p>}
      {(own.length > 0 || reported.length > 0) && (
        <div class="calls fits">
          {reported.map((call, place) => (
            <ReportedRow
              key={`reported ${place}`}
              {...{ call, agent: author.id }}
              name={`reported ${index} ${place}`}
            />
          ))}
          {own.map((call) => (
            <CallRow key={call.place.position} call={call} agent={author.id} />
          ))}
        </div>
      )}
      <Feedback index={index} given={feedback} />
    </Frame>
  );
}

const reasoned = (text: string) => (
  <p class="reasoning text-small muted" dir="auto">
    {text}
  </p>
);

export function draftView(draft: LiveDraft) {
  const { agent, isInterrupted } = draft;
  const { text, reasoning, tools, newest, isPartial } = contentOf(draft);
  const isThinking = text === '' && reasoning !== '';
  const act = newest === 'tool_call_delta' ? callsText(tools) : isThinking ? 'is reasoning' : 'is writing';
  return (
    <Frame
      author={agent}
      text={isPartial ? `… ${text}` : text}
      isGrowing
      by={
        <>
          {!isInterrupted && <span class="pulse" aria-hidden="true" />}
          <span class="muted">{isInterrupted ? 'was interrupted: the daemon does not answer' : act}</span>
        </>
      }
      reasoning={isThinking && reasoned(reasoning.slice(-300))}
    />
  );
}

const NAMED_CALLS = 3;

function callsText(tools: readonly string[]): string {
  const more = tools.length > NAMED_CALLS ? '…, ' : '';
  return `calls ${more}${tools.slice(-NAMED_CALLS).map(escapeHidden).join(', ')}`;
}

/** An agent without text: the text appears in its place. */
export function workingView({ agent, since }: Thinking) {
  return <Frame author={agent} text="" by={<Working agent={agent} since={since} />} />;
}

export function postView({ post }: KeptPost) {
  return (
    <Frame
      author={me.value}
      name={nameOfMe.value}
      text={post.content}
      files={filesOf(post)}
      isTyped
      by={<span class="meta">sending…</span>}
    />
  );
}

const UNTIL: Readonly<Record<Until, string>> = {
  approval: 'after the approval',
  outcome: 'after the outcome of its call is known',
  question: 'after its question is answered',
  agent: 'after the agent that it asked has answered',
  program: 'when its program is connected',
};

/** A message in the log looks delivered, but an agent that waits reads it later, and some models are shown no pictures. */
function UnreadBy({ entry }: { readonly entry: MessageEntry }) {
  const here = useThread();
  if (!here) return null;
  const lacksProgram = (agent: string) => activityOf(here.id, agent)?.for === 'program';
  const hasPicture = filesOf(entry).some(({ mediaType }) => isPicture(mediaType));
  const isBlind = ({ slug, shownFiles }: (typeof agents.value)[number]) =>
    hasPicture && entry.to?.includes(slug) && shownFiles?.includes('image') === false;
  const blind = agents.value.filter(isBlind).map(({ slug }) => [slug, BLIND] as const);
  const unread = unreadBy(here.thread, entry, lacksProgram);
  return [...blind, ...unread.map(({ agent, until }) => [agent, `reads this ${UNTIL[until]}`] as const)].map(
    ([agent, what]) => (
      <p key={agent + what} class="muted reads-later text-small">
        <bdi>{nameOf(agent)}</bdi> {what}.
      </p>
    ),
  );
}

const BLIND = 'is shown no pictures: its model takes none';

/** The words of an agent that works and shows no text yet: that it works, or why its model is called again. */
function Working({ agent, since }: { readonly agent: string; readonly since: string }) {
  const now = useNow(1_000);
  const activity = activityOf(useConversation(), agent);
  if (activity?.for === 'program') return <span class="muted">waits: its program is not connected</span>;
  return (
    <>
      <span class="pulse" aria-hidden="true" />
      <span class="muted">{workText(activity, since, now)}</span>
    </>
  );
}

function workText(activity: Activity | undefined, since: string, now: number): string {
  const { retry } = activity ?? {};
  if (!retry) {
    const worked = now - Date.parse(since);
    return worked < LONG_MS ? 'is working' : `is working, ${duration(worked)}`;
  }
  const wait = Math.ceil((Date.parse(retry.at) - now) / 1_000);
  const when = wait > 0 ? `in ${wait} s` : 'runs';
  const reason = escapeHidden(`${retry.message} (${retry.code})`);
  return `calls its model again: attempt ${retry.attempt} of ${retry.attempts} ${when}. ${reason}`;
}

const LONG_MS = 5_000;

/** When an entry was appended, and its index, which is its link. */
export function EntryTime({ index }: { readonly index: number }) {
  const here = useShown();
  const at = here?.thread.entries[index]?.createdAt;
  if (!at) return null;
  const label = `Entry ${index}`;
  return (
    <>
      <time dateTime={at} title={fullTime(at)}>
        {clockTime(at)}
      </time>
      <a class="number" href={linkTo.entry(here.id, index)} aria-label={label} title={label}>
        {index}
      </a>
    </>
  );
}

type ActionsProps = FeedbackProps & { author: string; text: string; isAnswer: boolean };

function MessageActions({ index, author, text, isAnswer, given }: ActionsProps) {
  const id = opened.value?.id ?? '';
  const link = (kind: Panel['kind']) => linkTo.panel(id, { kind, index });
  const address = () => new URL(linkTo.entry(id, index), location.href).href;
  return (
    <span class="actions">
      {text !== '' && <CopyButton text={() => text} label={`Copy entry ${index}`} word="copy" />}
      <CopyButton text={address} label={`Copy the link to entry ${index}`} word="link" />
      {isOperator.value && (
        <a href={link('fork')} aria-label={`Fork from entry ${index}`} title="Fork from here">
          fork
        </a>
      )}
      {isAnswer && <Thumbs index={index} given={given} />}
      {isAnswer && (
        <a
          class="why"
          href={link('why')}
          aria-label={`Why did ${author} say that?`}
          title="Why did it say that? (Enter)"
        >
          why?
        </a>
      )}
    </span>
  );
}

type FeedbackProps = { readonly index: number; readonly given: readonly EntryOf<'feedback'>[] };

const LABELS = { up: 'Good answer', down: 'Bad answer' } as const;

const mine = (given: FeedbackProps['given']) => given.find(({ author }) => author.id === me.value);

const send = (index: number, value: FeedbackValue, note?: string) =>
  attempt(() =>
    requests.feedback(opened.value?.id ?? '', { index, value, ...(note && { note }), ...sender() }),
  );

/** The answer whose note the person asked for. */
const noting = signal<number | null>(null);

/** The pressed one takes the thumb back, with its note. What a thumb adds moves none, as its second click must not miss it. */
function Thumbs({ index, given }: FeedbackProps) {
  if (!mayPost.value) return null;
  const { value: now, note } = mine(given) ?? {};
  return (
    <>
      {(['up', 'down'] as const).map((value) => (
        <LinkButton
          key={value}
          aria-label={`${LABELS[value]}, entry ${index}`}
          aria-pressed={now === value}
          title={`Rate (thumb ${value}): ${LABELS[value]}`}
          onClick={() => void (now === value ? send(index, 'none') : send(index, value, note))}
        >
          <Icon name={value} />
        </LinkButton>
      ))}
      {now && (
        <Button
          class="link to-note"
          aria-label={`${note ? 'Edit your' : 'Add a'} note, entry ${index}`}
          onClick={() => (noting.value = index)}
        >
          note
        </Button>
      )}
    </>
  );
}

function Feedback({ index, given }: FeedbackProps) {
  const own = mayPost.value ? mine(given) : undefined;
  const told = given.filter((one) => one !== own || one.note !== undefined);
  return (
    <>
      {told.map(({ value, author, note }) => (
        <div key={author.id} class={`feedback wraps text-small breaks ${value}`}>
          <Icon name={value === 'up' ? 'up' : 'down'} />
          <span class="unseen">{value === 'up' ? LABELS.up : LABELS.down}:</span>
          <bdi>{nameOfAuthor(author)}</bdi>
          {note !== undefined && <span dir="auto">{note}</span>}
        </div>
      ))}
      {own && <Note index={index} of={own} />}
    </>
  );
}

function Note({ index, of }: { readonly index: number; readonly of: EntryOf<'feedback'> }) {
  const [text, setText] = useKeptText(`${index}/note`);
  const [isOpen, open] = useState(text !== '');
  const isAsked = noting.value === index;
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (!isAsked) return;
    noting.value = null;
    if (!isOpen) setText(of.note ?? '');
    open(true);
    field.current?.focus();
  }, [isAsked]);
  if (!isOpen && !isAsked) return null;
  const end = () => {
    setText('');
    open(false);
  };
  const save = async () => (await send(index, of.value, text.trim())) && end();
  return (
    <form class="feedback wraps text-small" onSubmit={onSubmit(save)}>
      <input
        aria-label={`Note on entry ${index}`}
        placeholder="What was right or wrong?"
        maxLength={2_000}
        value={text}
        ref={field}
        onInput={onText(setText)}
      />
      <button type="submit">Save</button>
      <QuietButton onClick={end}>Cancel</QuietButton>
    </form>
  );
}
