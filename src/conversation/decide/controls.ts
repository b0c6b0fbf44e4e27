import { type Refusal, refusal } from '../../kernel/index.ts';
import { SYSTEM_AUTHOR } from '../log/entry.ts';
import { agentState, type ConversationState, isParticipant, isStopped } from '../state/state.ts';
import type { CommandOf, Outcome, Reply } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { addDismissed, addHired, isHiredAlready } from './hiring.ts';
import { endRunOfRemoved, knownWorkflows, startRun, unknownWorkflow } from './runs.ts';
import { titleOf } from './turn-entries.ts';
import { abortDismissed, abortTurn, endTurn, endTurnsOfRemovedAgents, startTurns } from './turns.ts';

/** Commands of people: title, phase, mode, hire and dismiss, stop and resume. */

const DONE: Reply = { kind: 'done' };

/** The title and the place in lists. What is so already adds no entry. */
export function label(builder: DecisionBuilder, command: CommandOf<'label'>): Outcome {
  const { state } = builder;
  const title = (command.title ?? titleOf(builder) ?? '').replace(/\s+/gu, ' ').trim();
  const archived = command.archived ?? state.archived;
  if (title === '') {
    const hint = 'give a title with the same request';
    return refusal('NO_TITLE', 'this conversation has no title yet', hint);
  }
  if (title === state.title && archived === state.archived) return DONE;
  builder.add({ type: 'title-set', author: command.by, title, ...(archived && { archived }) });
  return DONE;
}

/** The cost of a title that comes too late is recorded with the title that stays. */
export function titleWritten(builder: DecisionBuilder, command: CommandOf<'title-written'>): Outcome {
  const { title: current, archived } = builder.state;
  if (current === null) return DONE;
  const title = current === command.instead ? command.title : current;
  const { usage, model } = command;
  const more = { ...(usage && { usage }), ...(model !== undefined && { model }) };
  builder.add({
    type: 'title-set',
    author: SYSTEM_AUTHOR,
    title,
    writtenBy: 'model',
    ...more,
    ...(archived && { archived }),
  });
  return DONE;
}

/** What the person said already adds no entry. */
export function feedback(builder: DecisionBuilder, { on, value, note, by }: CommandOf<'feedback'>): Outcome {
  const { entries } = builder.context;
  const answer = entries[on];
  if (answer?.type !== 'message' || answer.role !== 'assistant' || answer.author.kind !== 'agent') {
    const message = `entry ${on} is no answer of an agent`;
    return refusal('NO_SUCH_ENTRY', message, 'give the index of an answer');
  }
  const said = entries.findLast(
    (entry) => entry.type === 'feedback' && entry.on === on && entry.author.id === by.id,
  );
  const before = said?.type === 'feedback' ? said : { value: 'none', note: undefined };
  if (before.value === value && before.note === note) return DONE;
  builder.add({ type: 'feedback', author: by, on, value, ...(note !== undefined && { note }) });
  return DONE;
}

/** A person may force any known phase; the entry records that. */
export function setPhase(builder: DecisionBuilder, command: CommandOf<'set-phase'>): Outcome {
  const { phases } = builder.context;
  if (!Object.hasOwn(phases, command.phase)) {
    const known = Object.keys(phases).join(', ');
    return refusal('UNKNOWN_PHASE', `there is no phase ${command.phase}`, `phases: ${known}`);
  }
  const from = builder.state.phase;
  const legal = from === command.phase || phases[from]?.next.includes(command.phase);
  builder.add({
    type: 'phase-entered',
    author: command.by,
    from,
    to: command.phase,
    by: command.by.name,
    reason: command.reason,
    forced: legal ? undefined : true,
  });
  return DONE;
}

/** Mode run begins a run of the named workflow; leaving the mode ends the run. */
export function setMode(builder: DecisionBuilder, command: CommandOf<'set-mode'>): Outcome {
  const { workflows } = builder.context;
  const unknown = unknownAgent(builder, command.agent ?? null);
  if (unknown) return unknown;
  const workflow = command.workflow === undefined ? undefined : workflows.get(command.workflow);
  if ((command.mode === 'run' || command.workflow !== undefined) && !workflow) {
    return command.workflow === undefined
      ? refusal('UNKNOWN_WORKFLOW', 'mode run needs a workflow', knownWorkflows(workflows))
      : unknownWorkflow(command.workflow, workflows);
  }
  if (command.mode !== 'run' && (command.workflow ?? command.input) !== undefined)
    return notARun(command.mode);
  const { run, mode } = builder.state;
  const { by } = command;
  if (run)
    builder.add({
      type: 'run-ended',
      author: by,
      runId: run.runId,
      workflowId: run.workflowId,
      outcome: 'left',
    });
  const activeAgent = command.agent;
  builder.add({ type: 'mode-entered', author: by, from: mode, to: command.mode, by: by.name, activeAgent });
  if (command.mode === 'run' && workflow) {
    const to = startRun(builder, workflow, by);
    const { input: content } = command;
    if (content !== undefined && to.length > 0) {
      const { mode: entered, phase } = builder.state;
      const message = { role: 'user', author: by, content, to, delivery: 'queue' } as const;
      builder.add({ type: 'message', ...message, mode: entered, phase });
    }
  }
  startTurns(builder);
  return DONE;
}

function notARun(mode: string): Refusal {
  const message = `mode ${mode} takes neither a workflow nor an input`;
  const hint = 'leave them out, or enter mode run';
  return refusal('INVALID_FIELD', message, hint);
}

/** HIRING-2: an operator may give any tool. */
export function hire(builder: DecisionBuilder, { agent, by }: CommandOf<'hire'>): Outcome {
  if (isHiredAlready(builder, agent)) return DONE;
  return addHired(builder, by, null, agent) ?? DONE;
}

/** HIRING-7 */
export function dismiss(builder: DecisionBuilder, { agent, reason, by }: CommandOf<'dismiss'>): Outcome {
  const refused = addDismissed(builder, by, null, { agent, reason });
  if (refused) return refused;
  abortDismissed(builder);
  startTurns(builder);
  return DONE;
}

/** Aborts running turns, keeps their partial text, and starts no turn until resumed. */
export function stop(builder: DecisionBuilder, command: CommandOf<'stop'>): Outcome {
  const unknown = unknownAgent(builder, command.agent);
  if (unknown) return unknown;
  const key = builder.add({
    type: 'agent-stopped',
    author: command.by,
    agent: command.agent,
    by: command.by.id,
  });
  const slugs = command.agent === null ? Object.keys(builder.state.agents) : [command.agent];
  for (const agent of slugs) {
    abortTurn(builder, agent, key);
  }
  return DONE;
}

export function resume(builder: DecisionBuilder, command: CommandOf<'resume'>): Outcome {
  const unknown = unknownAgent(builder, command.agent);
  if (unknown) return unknown;
  const { state } = builder;
  if (command.stop !== undefined && newestStop(builder, command.agent) !== command.stop) return DONE;
  const wasStopped =
    command.agent === null
      ? state.stopped || Object.keys(state.agents).some((slug) => needsResume(state, slug))
      : needsResume(state, command.agent);
  if (!wasStopped) return DONE;
  builder.add({ type: 'agent-resumed', author: command.by, agent: command.agent, by: command.by.id });
  startTurns(builder);
  return DONE;
}

/** The newest stop of this agent or of all agents. */
function newestStop({ context }: DecisionBuilder, slug: string | null): number | undefined {
  const stops = (agent: string | null) => slug === null || agent === null || agent === slug;
  return context.entries.findLast((entry) => entry.type === 'agent-stopped' && stops(entry.agent))?.index;
}

/** Stopped, or ended by a limit that may have been raised since. */
function needsResume(state: ConversationState, slug: string): boolean {
  return isStopped(state, slug) || agentState(state, slug).limitedBy !== null;
}

function unknownAgent(builder: DecisionBuilder, slug: string | null): Refusal | null {
  const { agents } = builder.roster;
  if (slug === null || agents.has(slug)) return null;
  const known = [...agents.keys()].join(', ');
  return refusal('UNKNOWN_AGENT', `there is no agent ${slug}`, `known agents: ${known}`);
}

/**
 * The configuration of the agents was replaced while the conversation is open.
 *
 * TEAM-CHANGE-1 One entry names the agents of this conversation that were added, changed or removed. Without one of them
 *               there is no entry.
 * TEAM-CHANGE-2 A running turn of a removed agent ends, as at a start without that agent: its calls get a result, its asker an
 *               answer. Any other running turn continues.
 */
export function changeTeam(builder: DecisionBuilder, { changes, by }: CommandOf<'change-team'>): Outcome {
  const agents = changes.filter(({ agent }) => isParticipant(builder.state, agent));
  if (agents.length > 0) builder.add({ type: 'team-changed', author: by, agents });
  endTurnsOfRemovedAgents(builder);
  endRunningTurns(builder, builder.state); // TEAM-CHANGE-2
  endRunOfRemoved(builder);
  startTurns(builder); // an agent that is back has waiting entries
  return DONE;
}

function endRunningTurns(builder: DecisionBuilder, { agents }: ConversationState): void {
  for (const [agent, { turn }] of Object.entries(agents)) {
    if (turn?.status !== 'running' || builder.roster.agents.has(agent)) continue;
    const { turnId } = turn;
    endTurn(builder, agent, 'aborted');
    builder.effect({ type: 'abort-turn', agent, turnId, key: builder.nextIndex - 1 });
  }
}
