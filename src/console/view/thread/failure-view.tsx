import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Entry, ModelFailure } from '../../../conversation/index.ts';
import { splitMessage } from '../../../conversation/log/model-failure.ts';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { requests } from '../../api/requests.ts';
import type { EndedTurn } from '../../model/thread/blocks.ts';
import { type Advice, adviceOn } from '../../model/thread/failure.ts';
import { nameOf, useThread } from '../../state/conversation.ts';
import { go, linkTo } from '../../state/route.ts';
import { agents, attempt, isOperator, mayPost, sender } from '../../state/session.ts';
import { absentAgents } from '../../state/system.ts';
import { Button } from '../parts/controls.tsx';
import { Avatar, EntryLink } from '../parts/parts.tsx';

export function FailureText({ failure: { code, message } }: { readonly failure: ModelFailure }) {
  return (
    <p class="failure breaks">
      <bdi>{escapeHidden(message)}</bdi> <code>{escapeHidden(code)}</code>
    </p>
  );
}

function FailureAdvice({ advice }: { readonly advice: Advice }) {
  return (
    <p class="advice">
      {advice.fails !== null && 'Another try fails until this is fixed. '}
      {advice.text
        .split('`')
        .map((part, place) => (place % 2 === 1 ? <code key={place}>{part}</code> : part))}
      {advice.orNew && (
        <>
          {' '}
          Or <a href={linkTo.new}>start a new conversation</a>.
        </>
      )}
    </p>
  );
}

interface ContinueProps {
  readonly conversation: string;
  readonly agent: string;
  readonly outcome: EndedTurn['outcome'];
  /** The entry of the failed call, which "why?" explains; null: what ended the turn is shown already. */
  readonly failed: Pick<Entry, 'id' | 'index'> | null;
  readonly isFutile: boolean;
  readonly onDone?: () => void;
}

/** Answers the failure, once, from two tabs too. */
const postAfter = (conversation: string, failed: ContinueProps['failed'], slug: string, content: string) =>
  requests.post(conversation, {
    id: failed === null ? crypto.randomUUID() : `after-${failed.index}-${slug}`,
    ...{ content, to: [slug], ...(failed && { replyTo: failed.id }), ...sender() },
  });

/** Lets the agent continue after a turn that ended early. `isFutile`: another try fails. */
function ContinueButton({ conversation, agent, outcome, failed, isFutile, onDone }: ContinueProps) {
  const isLimited = outcome === 'limited';
  const act = () =>
    attempt(() =>
      isLimited
        ? requests.resume(conversation, { agent, ...sender() })
        : postAfter(conversation, failed, agent, 'Continue.'),
    );
  return (
    <Button
      class={isFutile ? 'quiet' : undefined}
      shortcut="r"
      title={isLimited ? undefined : `Posts “Continue.” to ${nameOf(agent)} in your name`}
      onClick={() => void act().then((isDone) => (isDone ? onDone?.() : undefined))}
    >
      {{ limited: 'Resume', failed: 'Try again', aborted: 'Continue' }[outcome]}
    </Button>
  );
}

/** The first entry of the next turn of this agent, or of the one that was asked in its place. */
function NextTurn({ agent, by = agent, index }: Pick<ActionsProps, 'agent' | 'index'> & { by?: string }) {
  const after = useThread()?.thread.entries.slice(index + 1) ?? [];
  const begun = after.find((one) => one.type === 'turn-started' && one.agent === by);
  const first = begun && (after.find((one) => one !== begun && one.turnId === begun.turnId) ?? begun);
  if (!first && by === agent) return null;
  return (
    <p class="advice">
      {by === agent ? `${nameOf(agent)} began another turn:` : `Continued by ${nameOf(by)}:`}{' '}
      <EntryLink index={first?.index ?? index} />
    </p>
  );
}

function codeOf(reason: Entry | undefined): string | null {
  if (reason?.type === 'limit-reached') return reason.limit;
  return reason?.type === 'message' ? (splitMessage(reason).failure?.code ?? null) : null;
}

interface ActionsProps {
  readonly agent: string;
  readonly ended: EndedTurn;
  readonly index: number;
}

interface EndedProps extends Omit<ContinueProps, 'isFutile'> {
  /** The code of the failure, or the name of the limit; null: not known. */
  readonly code: string | null;
  readonly children?: ComponentChildren;
}

/** The answers to a turn that ended early, the same in the thread and in the inbox. */
export function EndedActions({ code, children, ...again }: EndedProps) {
  const [isChoosing, choose] = useState(false);
  const { conversation, agent, outcome, failed, onDone } = again;
  const others = agents.value.filter(({ slug }) => slug !== agent);
  const advice = adviceOn(code, agents.value.find(({ slug }) => slug === agent)?.model);
  const fails = advice?.fails ?? null;
  const isFutile = fails !== null;
  const words = `Please continue for ${nameOf(agent)}.`;
  const ask = async (slug: string) => {
    if (!(await attempt(() => postAfter(conversation, failed, slug, words)))) return;
    choose(false);
    onDone?.();
  };
  const button = (outcome === 'failed' || isOperator.value) && <ContinueButton {...{ ...again, isFutile }} />;
  return (
    <div class="buttons">
      {advice && <FailureAdvice advice={advice} />}
      {!isFutile && button}
      {others.length > 0 && fails !== 'conversation' && (
        <Button aria-expanded={isChoosing} onClick={() => choose(!isChoosing)}>
          Ask another agent
        </Button>
      )}
      {failed !== null && (
        <Button onClick={() => go(linkTo.panel(conversation, { kind: 'why', index: failed.index }))}>
          Open the request
        </Button>
      )}
      {isFutile && button}
      {children}
      {isChoosing && (
        <div class="buttons choice">
          {others.map(({ slug }) => (
            <Button key={slug} title={`Posts “${words}” in your name`} onClick={() => void ask(slug)}>
              <Avatar id={slug} size="small" />
              {nameOf(slug)}
              {absentAgents.value.has(slug) && ' (not connected)'}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}

/** What a person can do after a failed turn: answer it, until a post has, or the agent begins another one. */
export function FailedTurnActions({ agent, ended, index }: ActionsProps) {
  const here = useThread();
  if (!here) return null;
  const { id, thread } = here;
  const ofTurn = thread.entries.slice(0, index).filter(({ turnId }) => turnId === ended.turnId);
  const reason = ofTurn.findLast(({ type }) =>
    ended.outcome === 'limited' ? type === 'limit-reached' : type !== 'turn-started',
  );
  const isAnswer = (one: Entry) => one.type === 'message' && one.replyTo === reason?.id;
  const answer = reason && thread.entries.slice(index).findLast(isAnswer);
  if (answer?.type === 'message') return <NextTurn {...{ agent, index: answer.index }} by={answer.to?.[0]} />;
  const { outcome } = ended;
  const isOver = !thread.isNewest(agent, ended.turnId);
  if (isOver && outcome !== 'aborted') return <NextTurn {...{ agent, index }} />;
  if (isOver || !mayPost.value) return null;
  const again = { conversation: id, agent, outcome, code: codeOf(reason) };
  if (outcome === 'aborted')
    return <ContinueButton {...again} failed={thread.entries[index] ?? null} isFutile />;
  return <EndedActions {...again} failed={reason?.type === 'message' ? reason : null} />;
}
