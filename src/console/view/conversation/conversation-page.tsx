import type { ComponentProps } from 'preact';
import type { DeliveryMode, Mode } from '../../../conversation/index.ts';
import { requests } from '../../api/requests.ts';
import { whyItAnswers } from '../../model/addressing.ts';
import { shortLine } from '../../model/format.ts';
import type { AgentState } from '../../model/thread/thread.ts';
import {
  connection,
  isDeleted,
  isWhollyStopped,
  nameOf,
  participants,
  recipientsHere,
  team,
  useShown,
  useThread,
} from '../../state/conversation.ts';
import { rows, titleOf } from '../../state/conversations.ts';
import { draftOf, postOf } from '../../state/files.ts';
import { writeTo } from '../../state/keys.ts';
import { label } from '../../state/list.ts';
import { discard, outbox, send, sendAgain } from '../../state/outbox.ts';
import { jumpTo, linkTo, route } from '../../state/route.ts';
import {
  agents,
  attempt,
  isOperator,
  mayPost,
  phases,
  refused,
  sender,
  workflows,
} from '../../state/session.ts';
import { absentAgents } from '../../state/system.ts';
import { AnswerPanel } from '../answer/panel.tsx';
import { Button, LinkButton, Menu, Select } from '../parts/controls.tsx';
import { useHeading } from '../parts/hooks.ts';
import { Avatar, BackLink, Tabs } from '../parts/parts.tsx';
import { NotShown, useIsBegun } from '../parts/unknown.tsx';
import { ThreadView } from '../thread/thread-view.tsx';
import { Timeline } from '../timeline/timeline.tsx';
import { ChosenFiles, Composer, StopButton } from './composer.tsx';
import { ConversationMenu } from './conversation-menu.tsx';
import { Runs } from './runs.tsx';

export function ConversationPage() {
  const here = useThread();
  const title = here && (titleOf(here.id) ?? here.thread.title);
  useHeading(title ?? '');
  const at = route.value;
  if (at.page !== 'conversation' || here?.id !== at.id) return <main class="page column" aria-busy="true" />;
  const post = (content: string, delivery: DeliveryMode) =>
    send(at.id, { content, delivery }, draftOf(at.id));
  return (
    <>
      <main class="page column">
        <Header key={at.id} />
        <People />
        <StateBar id={at.id} />
        <Runs />
        <WaitingBar />
        <NotShown />
        {at.view === 'timeline' ? (
          <Timeline key={`timeline-${at.id}`} />
        ) : (
          <ThreadView key={`thread-${at.id}`} />
        )}
        <KeptPosts place={at.id} />
        <Composer key={`composer-${at.id}`} onPost={post} place={at.id} />
      </main>
      {at.panel && <AnswerPanel key={at.id} id={at.id} panel={at.panel} />}
    </>
  );
}

function WaitingBar() {
  const thread = useThread()?.thread;
  const { questions = [], waitingCalls = [] } = thread ?? {};
  const [first] = [...questions.map(({ call }) => call), ...waitingCalls];
  if (!first) return null;
  const unknown = waitingCalls.filter(({ approval }) => approval?.mayHaveRun).length;
  const forms = waitingCalls.filter(({ approval }) => approval?.asks).length;
  const needed = [
    amount(waitingCalls.length - unknown - forms, 'approval', 'needed'),
    amount(questions.length + forms, 'answer', 'needed'),
    amount(unknown, 'outcome', 'unknown'),
  ];
  return (
    <p class="waiting-bar text-small">
      <LinkButton onClick={() => jumpTo(first.place.index)}>
        {needed.filter((part) => part !== '').join(', ')}
      </LinkButton>
    </p>
  );
}

const amount = (count: number, what: string, is: string): string =>
  count === 0 ? '' : `${count} ${what}${count === 1 ? '' : 's'} ${is}`;

/** Why it is not followed, or in no list but that of the archive, for all users. */
function StateBar({ id }: { readonly id: string }) {
  const state = connection.value;
  const row = rows.value.find((one) => one.id === id);
  const isGone = isDeleted(useThread());
  const isOver = isGone || state.kind === 'over';
  if (!isOver && !row?.archived) return null;
  return (
    <p class="connection text-small" role="status">
      {isGone
        ? `This conversation was deleted.${mayPost.value ? ' Your next message begins a new one.' : ''}`
        : state.kind === 'over' && state.message}
      {!isOver && 'This conversation is archived. '}
      {row && !isOver && mayPost.value && (
        <LinkButton onClick={() => label(row, { archived: false })}>Move it out of the archive</LinkButton>
      )}
    </p>
  );
}

function KeptPosts({ place }: { readonly place: string }) {
  const kept = outbox.value.filter(
    ({ conversation, state }) => conversation === place && state !== 'sending',
  );
  if (kept.length === 0) return null;
  return (
    <ul class="kept-posts text-small as-thread" aria-label="Not sent yet">
      {kept.map(({ post, state, reason }) => (
        <li key={post.id} class={`breaks ${state}`}>
          <p dir="auto">{shortLine(post.content, 300)}</p>
          <ChosenFiles of={postOf(post.id)} />
          <p class="muted">
            {state === 'waiting' ? 'Waits to be sent' : 'Not sent'}
            {reason && `: ${reason}`}
            {state === 'refused' && <LinkButton onClick={() => sendAgain(post.id)}>Send again</LinkButton>}
            <LinkButton onClick={() => discard(post.id)}>Discard</LinkButton>
          </p>
        </li>
      ))}
    </ul>
  );
}

function Header() {
  const here = useShown();
  const isBegun = useIsBegun();
  const at = route.value;
  if (!here || at.page !== 'conversation') return null;
  const { id, thread } = here;
  return (
    <header class="head abreast">
      <BackLink />
      <h2 title={id}>
        <bdi>{titleOf(id) ?? thread.title ?? id}</bdi>
      </h2>
      <Tabs
        label="View"
        tabs={[
          [linkTo.conversation(id), 'Thread', at.view === 'thread'],
          [linkTo.timeline(id), 'Timeline', at.view === 'timeline'],
        ]}
      />
      {isBegun && (
        <div class="controls">
          <Settings />
          <StopButton />
          <ConversationMenu id={id} />
        </div>
      )}
    </header>
  );
}

function Settings() {
  const here = useShown();
  if (!here) return null;
  const { floor } = here.thread;
  const { slugs, isAnswer } = recipientsHere('', here.thread);
  const [next = ''] = slugs;
  const choices = ['chat', 'agent', ...workflows.value.map((workflow) => `run ${workflow.id}`)];
  return (
    <Menu
      class="quiet one-line"
      title="Phase and mode: who answers"
      face={`${floor.phase} · ${floor.mode}`}
      items={() => (
        <div class="settings stacked-2">
          <Choice
            name="Phase"
            value={floor.phase}
            options={phases.value.map(({ phase, description }) => [phase, phase, description] as const)}
            onChoose={(phase) => requests.phase(here.id, { phase, ...sender() })}
          />
          <Choice
            name="Mode"
            value={floor.mode === 'run' ? `run ${floor.run?.workflowId ?? ''}`.trim() : floor.mode}
            options={choices}
            onChoose={(chosen) => {
              const [mode = 'agent', workflow] = chosen.split(' ');
              return requests.mode(here.id, {
                mode: mode as Mode,
                ...(workflow && { workflow }),
                ...sender(),
              });
            }}
          />
          <p>
            <bdi>{nameOf(next)}</bdi> answers a message that names no agent, because{' '}
            {whyItAnswers(next, isAnswer, floor, agents.value)}.
          </p>
        </div>
      )}
    />
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly value: string;
  readonly options: ComponentProps<typeof Select<string>>['options'];
  readonly onChoose: (value: string) => Promise<unknown>;
}

/** The log says when it is changed. */
function Choice({ name, value, options, onChoose }: ChoiceProps) {
  const label = <span class="muted">{name}</span>;
  if (!isOperator.value)
    return (
      <span
        class="setting text-small inline"
        title={refused(`not change the ${name.toLowerCase()}`, 'operate')}
      >
        {label} {value}
      </span>
    );
  const isKnown = options.some((option) => [option].flat()[0] === value);
  return (
    <label class="setting text-small inline">
      {label}
      <Select
        value={value}
        options={isKnown ? options : [value, ...options]}
        onChoose={(chosen) => void attempt(() => onChoose(chosen))}
      />
    </label>
  );
}

/** Of more agents, those that did nothing here are behind a number. */
const MOST_SHOWN = 5;

function People() {
  const here = useShown();
  if (!here) return null;
  const isStopped = isWhollyStopped(here.thread);
  const people = [...participants.value.values()].filter((one) => !one.isAgent);
  const { floor, authors, hires } = here.thread;
  const isInvolved = ({ slug }: { readonly slug: string }) =>
    authors.has(slug) ||
    hires.has(slug) ||
    floor.activeAgent === slug ||
    here.thread.agents.has(slug) ||
    (!isStopped && here.thread.stateOf(slug).isStopped);
  const isLarge = team.value.length > MOST_SHOWN;
  const shown = team.value.filter((agent) => !isLarge || isInvolved(agent));
  const rest = team.value.filter((agent) => !shown.includes(agent));
  const chip = ({ slug }: { readonly slug: string }) => (
    <li key={slug}>
      <AgentChip
        slug={slug}
        id={here.id}
        state={here.thread.stateOf(slug)}
        isOneOfAll={isStopped}
        hasFloor={floor.activeAgent === slug}
      />
    </li>
  );
  return (
    <ul class="people wraps" aria-label="Participants">
      {isStopped && <li class="chip muted text-small inline">All agents are stopped</li>}
      {shown.map(chip)}
      {rest.length > 0 && (
        <li>
          <details class="rest">
            <summary class="chip text-small inline" aria-label={`${rest.length} other agents`}>
              +{rest.length}
            </summary>
            <ul class="wraps">{rest.map(chip)}</ul>
          </details>
        </li>
      )}
      {people.map(({ id }) => (
        <li key={id}>
          <span class="chip text-small inline" title={id}>
            <Avatar id={id} size="small" />
            <bdi>{nameOf(id)}</bdi>
          </span>
        </li>
      ))}
    </ul>
  );
}

interface ChipProps {
  readonly slug: string;
  readonly id: string;
  readonly state: AgentState;
  readonly hasFloor: boolean;
  /** The head says once that all are stopped. */
  readonly isOneOfAll: boolean;
}

function AgentChip({ slug, id, state, hasFloor, isOneOfAll }: ChipProps) {
  const name = participants.value.get(slug)?.name ?? slug;
  const { status, isStopped } = state;
  const isAbsent = absentAgents.value.has(slug);
  const word = isStopped
    ? !isOneOfAll && 'stopped'
    : isAbsent
      ? 'not connected'
      : (WORDS[status] ?? (hasFloor && 'has the floor'));
  const chip = (
    <>
      <Avatar id={slug} size="small" />
      <bdi>{name}</bdi>
      {word && <span class={isAbsent && !isStopped ? 'absent' : 'muted'}>{word}</span>}
      {status === 'running' && !isAbsent && <span class="pulse" aria-hidden="true" />}
    </>
  );
  const look = `chip text-small inline ${isStopped ? 'stopped' : status}`;
  if (!mayPost.value) return <span class={look}>{chip}</span>;
  return (
    <Menu
      class={look}
      face={chip}
      items={(then) => {
        const attempted = (action: () => Promise<unknown>) => then(() => attempt(action));
        const to = { agent: slug, ...sender() };
        return (
          <>
            <Button onClick={then(() => writeTo(slug))}>Write to @{slug}</Button>
            {isOperator.value && (
              <>
                <Button onClick={attempted(() => requests.mode(id, { mode: 'agent', ...to }))}>
                  Give the floor
                </Button>
                <Button onClick={attempted(() => requests[isStopped ? 'resume' : 'stop'](id, to))}>
                  {isStopped ? 'Resume' : 'Stop'}
                </Button>
              </>
            )}
          </>
        );
      }}
    />
  );
}

const WORDS = { running: 'at work', waiting: 'waits', idle: null } as const;
