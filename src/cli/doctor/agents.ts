import type { AgentSummary } from '../../client/index.ts';
import type { Config } from '../../config/index.ts';
import type { Context } from '../context.ts';
import { withDaemon } from '../find-daemon.ts';
import type { Check } from './check.ts';

/** The agents that live in other processes: whether one is there. Only a running daemon knows. */
export async function agentChecks(context: Context, config: Config): Promise<Check[]> {
  const remote = config.agents.filter(({ runtime }) => runtime === 'bus');
  if (remote.length === 0) return [];
  const seen = await askDaemon(context);
  return remote.map(({ slug }) => agentCheck(slug, seen));
}

async function askDaemon(context: Context): Promise<readonly AgentSummary[] | null> {
  try {
    return await withDaemon(context, async (client) => (await client.request('agents', {})).agents);
  } catch {
    return null; // the check of the daemon says why
  }
}

function agentCheck(slug: string, seen: readonly AgentSummary[] | null): Check {
  const name = `agent ${slug} (runtime: bus)`;
  if (seen === null) return { name, status: 'ok', message: 'not asked: no daemon runs' };
  const found = seen.find((one) => one.slug === slug);
  if (!found) {
    const fix = 'restart the daemon: it runs with another configuration';
    return { name, status: 'warn', message: 'the running daemon does not know it', fix };
  }
  if (found.status !== 'not connected') return { name, status: 'ok', message: 'connected' };
  return {
    name,
    status: 'fail',
    message: 'not connected: its turns fail with AGENT_NOT_CONNECTED',
    fix: `start the process that is ${slug}, or check which server and subject prefix it uses`,
  };
}
