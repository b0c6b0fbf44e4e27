import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Entry, ModelFailure } from '../../../conversation/index.ts';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { requests } from '../../api/requests.ts';
import type { EndedTurn } from '../../model/thread/blocks.ts';
import { type Advice, adviceOn, type Ending, endingOf } from '../../model/thread/failure.ts';
import { nameOf, useThread } from '../../state/conversation.ts';
import { go, linkTo } from '../../state/route.ts';
import { agents, attempt, isOperator, mayPost, sender } from '../../state/session.ts';
import { absentAgents } from '../../state/system.ts';
import { Button } from '../parts/controls.tsx';
import { Avatar, EntryLink } from '../parts/parts.tsx';
import { Quoted } from '../parts/text.tsx';

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
      <Quoted text={advice.text} />
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
  /** The entry that says why the turn ended, which a post answers; null: it is not known. */
  readonly failed: Entry | null;
  readonly isFutile: boolean;
  readonly onDone?: (did: string) => void;
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
      title={
        isLimited ? `Gives ${nameOf(agent)} a new turn` : `Posts “Continue.” to ${nameOf(agent)} in your name`
      }
      onClick={() => void act().then((isDone) => isDone && onDone?.(isLimited ? 'Resumed' : 'Tried again'))}
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

type ActionsProps = { readonly agent: string; readonly ended: EndedTurn; readonly index: number };

type EndedProps = Omit<ContinueProps, 'isFutile'> &
  (Ending | typeof UNKNOWN) & { readonly children?: ComponentChildren };

/** The log does not say why the turn ended. */
export const UNKNOWN = { code: null, failed: null, model: undefined };

const focusFirst = (choices: HTMLElement | null) => choices?.querySelector('button')?.focus();

/** The answers to a turn that ended early, the same in the thread and in the inbox. */
export function EndedActions({ code, model, children, ...again }: EndedProps) {
  const [isChoosing, choose] = useState(false);
  const { conversation, agent, outcome, failed, onDone } = again;
  const others = agents.value.filter(({ slug }) => slug !== agent);
  const advice = adviceOn(code, model ?? agents.value.find(({ slug }) => slug === agent)?.model);
  const fails = advice?.fails ?? null;
  const isFutile = fails !== null;
  const words = `Please continue for ${nameOf(agent)}.`;
  const ask = async (slug: string) => {
    if (!(await attempt(() => postAfter(conversation, failed, slug, words)))) return;
    choose(false);
    onDone?.(`Asked ${nameOf(slug)} to continue`);
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
      {failed?.type === 'message' && (
        <Button onClick={() => go(linkTo.panel(conversation, { kind: 'why', index: failed.index }))}>
          Open the request
        </Button>
      )}
      {isFutile && button}
      {children}
      {isChoosing && (
        <div class="buttons choice" ref={focusFirst}>
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
  const { outcome, turnId } = ended;
  const before = thread.entries.slice(0, index).filter(Boolean).reverse(); // without those that are not loaded
  const ends = (one: Entry) =>
    one.type === 'limit-reached' || (one.type === 'message' && one.partType === 'error');
  const place = before.findIndex((one) => one.turnId === turnId && ends(one));
  const why = place < 0 ? null : endingOf(before.slice(place), agent, nameOf);
  const isAnswer = (one: Entry) => one.type === 'message' && one.replyTo === why?.failed.id;
  const answer = why && thread.entries.slice(index).findLast(isAnswer);
  if (answer?.type === 'message') return <NextTurn {...{ agent, index: answer.index }} by={answer.to?.[0]} />;
  const isOver = !thread.isNewest(agent, turnId);
  if (isOver && outcome !== 'aborted') return <NextTurn {...{ agent, index }} />;
  if (isOver || !mayPost.value) return null;
  const again = { conversation: id, agent, outcome };
  if (outcome === 'aborted')
    return <ContinueButton {...again} failed={thread.entries[index] ?? null} isFutile />;
  return <EndedActions {...again} {...(why ?? UNKNOWN)} />;
}
