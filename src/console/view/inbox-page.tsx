import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { keepValue, readValue } from '../api/browser.ts';
import { shortLine, withoutAnsi } from '../model/format.ts';
import type { InboxContent, InboxItem } from '../model/list/inbox.ts';
import { contentOf, groupsOf, isDecision, summaryOf } from '../model/list/inbox.ts';
import { EXPIRED, isBeingAnswered, NO_LONGER, tellKept, whyItIsOver } from '../state/approvals.ts';
import { nameOf } from '../state/conversation.ts';
import { isListed, rowOf } from '../state/conversations.ts';
import {
  type Alert,
  chooseAlert,
  chosenAlerts,
  dismiss,
  hasNotifications,
  inbox,
  isNotificationRefused,
  KIND_LABELS,
  leaveOut,
  mayAnswer,
  needed,
  RIGHTS,
  readEntries,
} from '../state/inbox.ts';
import { InConversation } from '../state/kept.ts';
import { isWriting, writeTo } from '../state/keys.ts';
import { linkTo, showEntry, writeIn } from '../state/route.ts';
import { isAway, refused } from '../state/session.ts';
import { Markdown } from './markdown/markdown.tsx';
import { Button, QuietButton, reveal } from './parts/controls.tsx';
import { useRequest } from './parts/hooks.ts';
import { Avatar, BackLink, Fold, Name, Title, When } from './parts/parts.tsx';
import { ApprovalCard } from './thread/approval-card.tsx';
import { QuestionCard } from './thread/call-row.tsx';
import { EndedActions, FailureText, UNKNOWN } from './thread/failure-view.tsx';

const SHOWN_AT_ONCE = 30;

export function InboxPage() {
  const items = needed.value;
  const [most, setMost] = useState(SHOWN_AT_ONCE);
  const others = inbox.value.filter((item) => !mayAnswer(item)).slice(0, most);
  const ended = items.filter((item) => !isDecision(item));
  const more = items.length - most;
  const [written, setWritten] = useState<Written | null>(null);
  const shown = withWritten(items.slice(0, most), written);
  const setWriting = (item: InboxItem | null) =>
    setWritten(item && [item, shown.findIndex(({ key }) => key === item.key)]);
  const all = [...shown, ...others];
  const [chosen, choose] = useChosen(all);
  const hasField = all.some(({ key, kind }) => key === chosen && (kind === 'question' || kind === 'form'));
  return (
    <main class="page inbox column" aria-busy={!isListed.value}>
      <header class="head abreast">
        <BackLink />
        <h2 tabIndex={-1}>Inbox</h2>
        <AlertChoice alert="notification" label="Notify me" />
        <AlertChoice alert="sound" label="Sound" />
      </header>
      <div class="inbox-body column">
        {isNotificationRefused.value && (
          <p class="muted" role="status">
            The browser refuses notifications of this page. Allow them in its settings for this address.
          </p>
        )}
        {isListed.value && shown.length === 0 && (
          <div class="empty muted stacked-2">
            <p>Nothing needs you.</p>
            <p class="muted">Approvals, questions and failures of all conversations appear here.</p>
          </div>
        )}
        <Items label="What needs you" {...{ items: shown, chosen, choose, setWriting }} />
        {more > 0 && (
          <p>
            <QuietButton onClick={() => setMost(most + SHOWN_AT_ONCE)}>Show more ({more})</QuietButton>
          </p>
        )}
        {ended.length > 1 && (
          <p>
            <QuietButton onClick={() => dismiss(ended)}>
              Dismiss all {ended.length} failures and limits
            </QuietButton>
          </p>
        )}
        {others.length > 0 && (
          <Fold name="others" summary={<span class="text-small">Waits for others ({others.length})</span>}>
            <Items label="What waits for others" {...{ items: others, chosen, choose, setWriting }} />
          </Fold>
        )}
        {items.length > 0 && (
          <p class="meta inbox-keys">
            <kbd>↓</kbd> <kbd>↑</kbd> next, previous; then the key on a button · {hasField && <kbd>r</kbd>}{' '}
            {hasField && 'answer · '}
            <kbd>Enter</kbd> open
          </p>
        )}
      </div>
    </main>
  );
}

interface ItemsProps {
  readonly label: string;
  readonly items: readonly InboxItem[];
  readonly chosen: string | null;
  readonly choose: (key: string) => void;
  readonly setWriting: (item: InboxItem | null) => void;
}

function Items({ label, items, chosen, choose, setWriting }: ItemsProps) {
  return (
    <ul aria-label={label}>
      {groupsOf(items).map((group) => (
        <li key={group[0].conversation}>
          <h3 class="muted">
            <a href={linkTo.conversation(group[0].conversation)} tabIndex={-1}>
              <Title of={{ id: group[0].conversation, title: group[0].title }} />
            </a>
            {rowOf(group[0].conversation)?.archived && ' (archived)'}
          </h3>
          {group.map((item) => (
            <InboxEntry key={item.key} isChosen={item.key === chosen} {...{ item, choose, setWriting }} />
          ))}
        </li>
      ))}
    </ul>
  );
}

/** The item in which the person writes, and its place in the list. */
type Written = readonly [item: InboxItem, place: number];

/** What another person answered stays while this one writes in it. */
function withWritten(items: readonly InboxItem[], written: Written | null): readonly InboxItem[] {
  const [item, place] = written ?? [null, -1];
  if (item === null || place < 0 || items.some(({ key }) => key === item.key)) return items;
  return items.toSpliced(place, 0, item);
}

const CHOSEN = 'parley.inbox';

/** The key of the item that is shown in full. When it is answered, it is the one at its place; on a phone none is until one is touched. */
function useChosen(items: readonly InboxItem[]) {
  const [wanted, setWanted] = useState<unknown>(() => [readValue(CHOSEN, sessionStorage)].flat()[0] ?? null);
  const choose = (key: string) => {
    setWanted(key);
    keepValue(CHOSEN, [key], sessionStorage);
  };
  const place = useRef(0);
  const at = items.findIndex(({ key }) => key === wanted);
  const isNone = wanted === null && matchMedia('(max-width: 46rem)').matches;
  const shown = at >= 0 ? at : isNone ? -1 : Math.min(place.current, items.length - 1);
  const chosen = items[shown]?.key ?? null;
  useLayoutEffect(() => {
    place.current = Math.max(0, shown);
    if (chosen !== null && chosen !== wanted) choose(chosen); // items before it that come later change nothing
  });
  return [chosen, choose] as const;
}

function AlertChoice({ alert, label }: { readonly alert: Alert; readonly label: string }) {
  if (alert === 'notification' && !hasNotifications) return null;
  return (
    <label class="alert-choice text-small muted inline">
      <input
        type="checkbox"
        checked={chosenAlerts.value.has(alert)}
        onChange={({ currentTarget }) => {
          const isOn = currentTarget.checked;
          currentTarget.checked = chosenAlerts.value.has(alert); // until the browser has agreed
          void chooseAlert(alert, isOn);
        }}
      />
      {label}
    </label>
  );
}

type EntryProps = Pick<ItemsProps, 'choose' | 'setWriting'> & { item: InboxItem; isChosen: boolean };

/** One thing that needs a person: a row, and if it is chosen, all of it with its answers. */
function InboxEntry({ item, isChosen, choose, setWriting }: EntryProps) {
  const { conversation, title, agent, kind, since, entry } = item;
  const read = async () => contentOf(item, await readEntries(item), nameOf);
  const { answer, fault } = useRequest(read, [item.key, isAway.value]);
  const content = answer ?? (fault === null ? null : contentOf(item, [])); // what was read stays in an outage
  const article = useRef<HTMLElement>(null);
  const call =
    content?.kind === 'approval' ? content.call : content?.kind === 'question' ? content.question.call : null;
  const isOver = () =>
    call !== null && !inbox.value.some(({ key }) => key === item.key) && !isBeingAnswered(conversation, call);
  useLayoutEffect(() => void (isChosen && reveal(article.current?.querySelector('button'))), [isChosen]);
  useLayoutEffect(() => () => void (call && isOver() && tellKept(item, call)), [call]);
  const ask = async () => (call && isOver() ? whyItIsOver(conversation, call) : '');
  const why = useRequest(ask, [isOver()]).answer ?? '';
  /** Who answered it first, as far as that is known; null: it still waits. */
  const over = isOver() ? why : null;
  const word = over === NO_LONGER || over === EXPIRED ? 'No longer waits' : 'Answered';
  const label = over ? word : KIND_LABELS[kind];
  /** The next item is selected by a key, so that a second press answers nothing that was not read. */
  const leave = () => {
    const heading = article.current?.closest('main')?.querySelector('h2');
    // A button that is pressed loses the focus while its answer is sent.
    const isHere = document.activeElement === document.body && article.current?.querySelector('.detail');
    if (!heading || !article.current || !(isHere || article.current.contains(document.activeElement))) return;
    const entries = [...document.querySelectorAll('.inbox-entry')];
    heading.dataset.left = String(entries.indexOf(article.current));
    heading.focus();
  };
  useLayoutEffect(() => leave, []);
  const onDone: OnDone = (did, ran) => {
    leave(); // at once: an item with the focus in its field stays
    const of = (call && content && summaryOf(content, ran)) || title;
    leaveOut(item, `${withoutAnsi(did)}: ${shortLine(withoutAnsi(of))}`);
  };
  const open = (event: Event) => {
    if (entry === null && kind !== 'input') return;
    event.preventDefault();
    if (kind === 'input') writeIn(conversation, () => writeTo(agent));
    else if (entry !== null) showEntry(conversation, entry);
  };
  return (
    <article
      ref={article}
      class={`inbox-entry ${isDecision(item) ? '' : 'ended'}`}
      tabIndex={-1}
      aria-label={`${label}: ${nameOf(agent)} in ${title}`}
      aria-busy={content === null}
      onFocusIn={({ target }) => {
        choose(item.key);
        if (isWriting(target)) setWriting(item);
      }}
      onFocusOut={({ relatedTarget: next }) => {
        if (!(next instanceof Node && article.current?.contains(next))) setWriting(null);
      }}
    >
      <Button class="inbox-line" aria-expanded={isChosen} onClick={() => article.current?.focus()}>
        <Avatar id={agent} size="small" />
        <span class="fills">
          <span class="by wraps text-tiny">
            <span class="kind">{label}</span>
            <When at={since} />
          </span>
          <span class="summary one-line">{content && summaryOf(content)}</span>
        </span>
      </Button>
      {isChosen && (
        <div class="detail text-small stacked-3">
          <p class="by wraps text-small">
            <Name id={agent} />
            {content && 'asker' in content && content.asker && (
              <span class="muted">
                For <bdi>{content.asker}</bdi>
              </span>
            )}
            <a class="opens one-line at-end" href={linkTo.conversation(conversation)} onClick={open}>
              <bdi>{title}</bdi>
            </a>
          </p>
          <InConversation.Provider value={conversation}>
            <fieldset class="fits" disabled={!mayAnswer(item)}>
              {content && 'said' in content && content.said && <Markdown text={content.said} />}
              {content && <Content {...{ item, content, over, onDone }} />}
            </fieldset>
          </InConversation.Provider>
          {over !== null && (
            <p class="muted" role="status">
              {over && `${over} Your text is kept in its conversation.`}
            </p>
          )}
          {isAway.value && <p class="muted">It can be answered when the daemon answers again.</p>}
          {content && !call && !mayAnswer(item) && (
            <p class="muted">{refused('not answer this', RIGHTS[kind])}</p>
          )}
        </div>
      )}
    </article>
  );
}

type OnDone = (did: string, ran?: object) => void;
type ContentProps = { item: InboxItem; content: InboxContent; over: string | null; onDone: OnDone };

function Content({ item, content, over, onDone }: ContentProps) {
  const { kind, conversation, agent } = item;
  const ended = content.kind === 'ended' && content;
  const about = summaryOf(content);
  switch (content.kind) {
    case 'approval':
      return <ApprovalCard {...content} {...{ agent, over, onDone }} />;
    case 'question':
      return <QuestionCard question={content.question} isOver={over !== null} onDone={onDone} />;
    case 'elsewhere':
    case 'ended':
      if (kind !== 'failed' && kind !== 'limited')
        return (
          <p class="muted">
            {isAway.value
              ? 'The daemon does not answer.'
              : `${about && `${about}. `}Open the conversation to answer.`}
          </p>
        );
      return (
        <>
          {ended && <FailureText failure={{ code: ended.code, message: ended.text }} />}
          <EndedActions {...{ conversation, agent, outcome: kind, onDone }} {...(ended || UNKNOWN)}>
            <Button shortcut="x" onClick={() => dismiss([item])}>
              Dismiss
            </Button>
          </EndedActions>
        </>
      );
  }
}
