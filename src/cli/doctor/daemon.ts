import type { Context } from '../context.ts';
import { withDaemon } from '../find-daemon.ts';
import { plural } from '../render/text.ts';
import type { Check } from './check.ts';

/** A daemon that does not run is a warning, not a failure. */
export async function daemonCheck(context: Context): Promise<Check> {
  const name = 'daemon';
  try {
    return await withDaemon(context, async (client) => {
      const { agents } = await client.request('agents', {});
      return { name, status: 'ok', message: `answers on ${client.url}, ${plural(agents.length, 'agent')}` };
    });
  } catch (error) {
    const { code, message, hint } = context.failure(error);
    const status = code === 'DAEMON_NOT_RUNNING' ? 'warn' : 'fail';
    return { name, status, message, ...(hint === undefined ? {} : { fix: hint }) };
  }
}
