import type { ReadonlySignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { contentOf, type InboxContent, type InboxItem, isDecision } from '../../model/list/inbox.ts';
import { KIND_LABELS } from '../../state/alerts.ts';
import { nameOf } from '../../state/conversation.ts';
import { dismiss, inbox, leaveOut, readEntry } from '../../state/inbox.ts';
import { showEntry } from '../../state/jump.ts';
import { InConversation, moveTexts } from '../../state/kept.ts';
import { linkTo } from '../../state/route.ts';
import { isOperator, mayApprove, mayPost } from '../../state/session.ts';
import { Avatar, Name, When } from '../parts/parts.tsx';
import { ApprovalCard } from '../thread/approval-card.tsx';
import { QuestionCard } from '../thread/call-row.tsx';
import { ContinueButton, FailureAdvice, FailureText } from '../thread/failure-view.tsx';

interface EntryProps {
  readonly item: InboxItem;
}

/** One thing that needs a person, with its answers. */
export function InboxEntry({ item }: EntryProps) {
  const { conversation, title, agent, kind, since, entry } = item;
  const [content, setContent] = useState<InboxContent | null>(null);
  const article = useRef<HTMLElement>(null);
  useEffect(() => {
    let isOver = false;
    void readEntry(item).then((entry) => {
      if (!isOver) setContent(contentOf(item, entry));
    });
    return () => {
      isOver = true;
    };
  }, [item.key]);
  const call =
    content?.kind === 'approval' ? content.call : content?.kind === 'question' ? content.question.call : null;
  useLayoutEffect(
    () => () => {
      if (call && !inbox.value.some(({ key }) => key === item.key)) moveTexts(conversation, call);
    },
    [call],
  );
  /** The next item is selected by a key, so that a second press answers nothing that was not read. */
  const leave = () => {
    const heading = article.current?.closest('main')?.querySelector('h2');
    const entries = [...document.querySelectorAll('.inbox-entry')];
    if (heading) heading.dataset.left = String(entries.indexOf(article.current as HTMLElement));
    heading?.focus();
  };
  const onDone = () => {
    leave();
    leaveOut(item);
  };
  const open = (event: Event) => {
    if (entry === null) return;
    event.preventDefault();
    showEntry(conversation, entry);
  };
  return (
    <li>
      <article
        ref={article}
        class={`inbox-entry ${isDecision(item) ? '' : 'ended'}`}
        tabIndex={-1}
        aria-label={`${KIND_LABELS[kind]}: ${nameOf(agent)} in ${title}`}
        aria-busy={content === null}
      >
        <p class="by">
          <Avatar id={agent} size="small" />
          <Name id={agent} />
          <span class="kind">{KIND_LABELS[kind]}</span>
          <a class="opens" href={linkTo.conversation(conversation)} onClick={open}>
            <bdi>{title}</bdi>
          </a>
          <When at={since} />
        </p>
        <InConversation.Provider value={conversation}>
          <fieldset disabled={!mayAnswer(item)}>
            {content && <Content {...{ item, content, onDone }} />}
          </fieldset>
        </InConversation.Provider>
        {!mayAnswer(item) && (content?.kind === 'ended' || content?.kind === 'elsewhere') && (
          <p class="muted">Your token may not answer this.</p>
        )}
        {!isDecision(item) && (
          <button
            type="button"
            class="quiet"
            aria-keyshortcuts="x"
            onClick={() => {
              leave();
              dismiss([item]);
            }}
          >
            Dismiss
          </button>
        )}
      </article>
    </li>
  );
}

const RIGHTS: Readonly<Record<InboxItem['kind'], ReadonlySignal<boolean>>> = {
  approval: mayApprove,
  outcome: mayApprove,
  question: mayPost,
  failed: mayPost,
  limited: isOperator,
};

const mayAnswer = ({ kind }: InboxItem): boolean => RIGHTS[kind].value;

interface ContentProps extends EntryProps {
  readonly content: InboxContent;
  readonly onDone: () => void;
}

function Content({ item: { kind, conversation, agent }, content, onDone }: ContentProps) {
  switch (content.kind) {
    case 'approval':
      return <ApprovalCard approval={content.approval} call={content.call} agent={agent} onDone={onDone} />;
    case 'question':
      return <QuestionCard question={content.question} onDone={onDone} />;
    case 'elsewhere':
    case 'ended':
      if (kind !== 'failed' && kind !== 'limited')
        return <p class="muted">Open the conversation to answer.</p>;
      return (
        <>
          {content.kind === 'ended' && (
            <>
              <FailureText failure={{ code: content.code, message: content.text }} />
              <FailureAdvice {...{ agent, code: content.code }} />
            </>
          )}
          <ContinueButton
            conversation={conversation}
            agent={agent}
            outcome={kind}
            code={content.kind === 'ended' ? content.code : null}
            shortcut="r"
            onDone={onDone}
          />
        </>
      );
  }
}
