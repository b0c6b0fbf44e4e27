import { useEffect, useRef } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import type { AgentState } from '../../model/thread/thread.ts';
import { isWhollyStopped, nameOf, participants, useThread } from '../../state/conversation.ts';
import { writeTo } from '../../state/keys.ts';
import { agents, attempt, isOperator, mayPost, sender } from '../../state/session.ts';
import { absentAgents } from '../../state/system.ts';
import { closeOnLeaving } from '../parts/menu.ts';
import { Avatar } from '../parts/parts.tsx';

/** The participants and the state of each agent. */
export function People() {
  const here = useThread();
  if (!here) return null;
  const isStopped = isWhollyStopped(here.thread);
  const people = [...participants.value.values()].filter((one) => !one.isAgent);
  return (
    <ul class="people" aria-label="Participants">
      {isStopped && <li class="chip muted">All agents are stopped</li>}
      {agents.value.map(({ slug }) => (
        <li key={slug}>
          <AgentChip
            slug={slug}
            id={here.id}
            state={here.thread.stateOf(slug)}
            isOneOfAll={isStopped}
            hasFloor={here.thread.floor.activeAgent === slug}
          />
        </li>
      ))}
      {people.map(({ id }) => (
        <li key={id}>
          <span class="chip" title={id}>
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
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => closeOnLeaving(menu.current), []);
  const name = participants.value.get(slug)?.name ?? slug;
  const act = (action: () => Promise<unknown>) => () => {
    menu.current?.removeAttribute('open');
    void attempt(action);
  };
  const { status, isStopped } = state;
  const isAbsent = absentAgents.value.has(slug);
  const word = isStopped
    ? isOneOfAll
      ? ''
      : 'stopped'
    : isAbsent
      ? 'not connected'
      : status === 'running'
        ? 'at work'
        : status === 'waiting'
          ? 'waits'
          : hasFloor
            ? 'has the floor'
            : '';
  const chip = (
    <>
      <Avatar id={slug} size="small" />
      <bdi>{name}</bdi>
      {word && <span class={isAbsent && !isStopped ? 'absent' : 'muted'}>{word}</span>}
      {status === 'running' && !isAbsent && <span class="pulse" aria-hidden="true" />}
    </>
  );
  const look = `chip ${isStopped ? 'stopped' : status}`;
  if (!mayPost.value) return <span class={look}>{chip}</span>;
  return (
    <details class="menu" ref={menu}>
      <summary class={look}>{chip}</summary>
      <div class="menu-list">
        <button
          type="button"
          onClick={() => {
            menu.current?.removeAttribute('open');
            writeTo(slug);
          }}
        >
          Write to @{slug}
        </button>
        {isOperator.value && (
          <>
            <button
              type="button"
              onClick={act(() => requests.mode(id, { mode: 'agent', agent: slug, ...sender() }))}
            >
              Give the floor
            </button>
            <button
              type="button"
              onClick={act(() => requests[isStopped ? 'resume' : 'stop'](id, { agent: slug, ...sender() }))}
            >
              {isStopped ? 'Resume' : 'Stop'}
            </button>
          </>
        )}
      </div>
    </details>
  );
}
