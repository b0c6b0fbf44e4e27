import { splitUrls } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import type { Servers } from '../find-daemon.ts';
import { failureOf } from '../render/failure.ts';
import type { Check } from './check.ts';

/** Each server that the daemon joins, by itself. One that cannot be used is a fault where no other can. */
export async function natsServersChecks(context: Context, { shown, options }: Servers): Promise<Check[]> {
  const urls = splitUrls(options.url);
  const { askJetStream } = await context.rooms.daemon();
  const checks = await Promise.all(
    splitUrls(shown).map(async (url, place): Promise<Check> => {
      const name = `server ${url}`;
      try {
        const untold = await askJetStream({ ...options, url: urls[place] ?? url, name: 'parley-doctor' });
        const message =
          untold === null ? 'reachable' : `reachable; cannot tell whether JetStream works: ${untold}`;
        return { name, status: 'ok', message };
      } catch (error) {
        const { message, hint } = failureOf(error);
        return { name, status: 'fail', message, ...(hint === undefined ? {} : { fix: hint }) };
      }
    }),
  );
  const isReachable = checks.some(({ status }) => status === 'ok');
  return checks.map((check) =>
    check.status === 'fail' && isReachable ? { ...check, status: 'warn' } : check,
  );
}
