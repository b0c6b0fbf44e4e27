import type { Entry } from '../../conversation/index.ts';
import type { GatewayPort } from '../port.ts';
import { type Act, readLog } from './ask.ts';

interface Turns {
  readonly conversation: string;
  /** The index of the post. */
  readonly index: number;
  /** Agents whose turns are open. */
  readonly busy: readonly string[];
}

/**
 * Ends the turns of a post. Its agents are stopped until `ended` resolves, then resumed. If another caller has stopped one of them
 * meanwhile, it stays stopped: the resume names the stop that it reverts.
 */
export async function cancelTurns(
  daemon: GatewayPort,
  act: Act,
  { conversation, index, busy }: Turns,
  ended: () => Promise<void>,
): Promise<void> {
  const before = await readLog(daemon, conversation, index);
  await Promise.all(busy.map((agent) => act('stop', { conversation, agent })));
  await ended();
  const since = await readLog(daemon, conversation, index + before.length);
  await Promise.all(
    busy.map(async (agent) => {
      const [own, ...others] = since.filter((entry) => isStopOf(entry, agent));
      if (own && others.length === 0) await act('resume', { conversation, agent, stop: own.index });
    }),
  );
}

function isStopOf(entry: Entry, agent: string): boolean {
  return entry.type === 'agent-stopped' && (entry.agent === null || entry.agent === agent);
}
