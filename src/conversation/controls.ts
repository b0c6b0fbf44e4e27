import { refusal } from '../kernel/index.ts';
import type { Command, Reply } from './command.ts';
import type { Drafting } from './drafting.ts';
import { agentState, isStopped } from './state.ts';
import { startTurns } from './turns.ts';

/** What a person may switch: phase, mode, stop and resume. Each writes one entry; what it shows is in the log. */

type CommandOf<T extends Command['type']> = Extract<Command, { type: T }>;

const DONE: Reply = { kind: 'done' };

/** A person may force any known phase; the entry says so. */
export function setPhase(drafting: Drafting, command: CommandOf<'set-phase'>): Reply {
  const { phases } = drafting.context;
  if (!Object.hasOwn(phases, command.phase)) {
    const known = Object.keys(phases).join(', ');
    return {
      kind: 'refused',
      refusal: refusal('UNKNOWN_PHASE', `there is no phase ${command.phase}`, `phases: ${known}`),
    };
  }
  const from = drafting.state.phase;
  const legal = from === command.phase || phases[from]?.next.includes(command.phase);
  drafting.add({
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

export function setMode(drafting: Drafting, command: CommandOf<'set-mode'>): Reply {
  const { roster } = drafting.context;
  if (command.agent !== undefined && !roster.agents.has(command.agent)) {
    const known = [...roster.agents.keys()].join(', ');
    return {
      kind: 'refused',
      refusal: refusal('UNKNOWN_AGENT', `there is no agent ${command.agent}`, `known agents: ${known}`),
    };
  }
  drafting.add({
    type: 'mode-entered',
    author: command.by,
    from: drafting.state.mode,
    to: command.mode,
    by: command.by.name,
    activeAgent: command.agent,
  });
  return DONE;
}

/** Aborts what runs, keeps what was said, starts nothing until resumed. */
export function stop(drafting: Drafting, command: CommandOf<'stop'>): Reply {
  const unknown = unknownAgent(drafting, command.agent);
  if (unknown) return unknown;
  const key = drafting.add({
    type: 'agent-stopped',
    author: command.by,
    agent: command.agent,
    by: command.by.id,
  });
  const slugs = command.agent === null ? Object.keys(drafting.state.agents) : [command.agent];
  for (const agent of slugs) {
    const turn = agentState(drafting.state, agent).turn;
    if (turn?.status === 'running') drafting.effect({ type: 'abort-turn', agent, turnId: turn.turnId, key });
  }
  return DONE;
}

export function resume(drafting: Drafting, command: CommandOf<'resume'>): Reply {
  const unknown = unknownAgent(drafting, command.agent);
  if (unknown) return unknown;
  const { state } = drafting;
  const wasStopped =
    command.agent === null
      ? state.stopped || Object.keys(state.agents).some((slug) => isStopped(state, slug))
      : isStopped(state, command.agent);
  if (!wasStopped) return DONE;
  drafting.add({ type: 'agent-resumed', author: command.by, agent: command.agent, by: command.by.id });
  startTurns(drafting);
  return DONE;
}

function unknownAgent(drafting: Drafting, slug: string | null): Reply | null {
  const { agents } = drafting.context.roster;
  if (slug === null || agents.has(slug)) return null;
  const known = [...agents.keys()].join(', ');
  return {
    kind: 'refused',
    refusal: refusal('UNKNOWN_AGENT', `there is no agent ${slug}`, `known agents: ${known}`),
  };
}
