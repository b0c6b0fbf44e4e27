import { requests } from '../../api/requests.ts';
import type { AgentState } from '../../model/thread/thread.ts';
import { isWhollyStopped, nameOf, participants, team, useShown } from '../../state/conversation.ts';
import { writeTo } from '../../state/keys.ts';
import { attempt, isOperator, mayPost, sender } from '../../state/session.ts';
import { absentAgents } from '../../state/system.ts';
import { Button, Menu } from '../parts/controls.tsx';
import { Avatar } from '../parts/parts.tsx';

/** Of more agents, those that did nothing here are behind a number. */
const MOST_SHOWN = 5;

/** The participants and the state of each agent. */
export function People() {
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
    <ul class="people" aria-label="Participants">
      {isStopped && <li class="chip muted">All agents are stopped</li>}
      {shown.map(chip)}
      {rest.length > 0 && (
        <li>
          <details class="rest">
            <summary class="chip" aria-label={`${rest.length} other agents`}>
              +{rest.length}
            </summary>
            <ul>{rest.map(chip)}</ul>
          </details>
        </li>
      )}
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
  const look = `chip ${isStopped ? 'stopped' : status}`;
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

const WORDS: Readonly<Record<AgentState['status'], string | null>> = {
  running: 'at work',
  waiting: 'waits',
  idle: null,
};
