import { computed, effect, signal } from '@preact/signals';
import { whileVisible } from '../api/browser.ts';
import { requests } from '../api/requests.ts';
import type { AgentCard, DeadLetter, McpServer, Status } from '../model/answers.ts';
import { awayProblem, type Problem, problemsOf } from '../model/system.ts';
import { route } from './route.ts';
import { isAway } from './session.ts';

/** The state of the daemons and of the team, read now and then while the page is visible. */

export interface System {
  readonly status: Status;
  readonly agents: readonly AgentCard[];
  readonly servers: readonly McpServer[];
  readonly letters: readonly DeadLetter[];
}

export const DAYS = 14;
export const MOST_LETTERS = 20;

const EVERY_MS = 15_000;
const ON_PAGE_MS = 4_000;

/** The newest answers; null: none yet. */
export const system = signal<System | null>(null);
const status = signal<Status | null>(null);

/** Agents in other processes whose program is not connected, as far as it is known. */
export const absentAgents = computed<ReadonlySet<string>>(
  () => new Set(status.value?.agents.flatMap(({ agent, connected }) => (connected ? [] : [agent]))),
);

export const problems = computed<readonly Problem[]>(() => {
  if (isAway.value) return [awayProblem(system.value?.status.at ?? null, Date.now())];
  return status.value === null ? [] : problemsOf(status.value);
});

export async function refresh(): Promise<void> {
  const [now, { agents }, { servers }, { letters }] = await Promise.all([
    requests.status(DAYS),
    requests.agents(),
    requests.tools(),
    requests.deadLetters(MOST_LETTERS),
  ]);
  status.value = now;
  system.value = { status: now, agents, servers, letters };
}

/**
 * Runs until the returned function is called. Everything is read once also on another page: it is the last state that is known
 * when the daemon does not answer later.
 */
export function keepSystem(): () => void {
  void refresh().catch(() => undefined);
  return effect(() => {
    const isOnPage = route.value.page === 'system';
    const look = async () => {
      if (isOnPage) await refresh();
      else status.value = await requests.status();
    };
    const tryToLook = () => look().catch(() => undefined); // the page shows that the daemon is away
    return whileVisible(tryToLook, isOnPage ? ON_PAGE_MS : EVERY_MS);
  });
}
