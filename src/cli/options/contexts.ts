import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ParleyError } from '../../client/index.ts';
import { messageOf } from '../../kernel/index.ts';
import type { Io } from '../io.ts';
import type { GlobalOptions } from './options.ts';
import { KEPT } from './taken-options.ts';

/**
 * Named servers, in `contexts.json` of the user's configuration folder. A context has the options that find a server: files with
 * passwords, tokens and keys by their paths, and no secret itself.
 */

type Place = Pick<Io, 'env' | 'workingDirectory'>;

interface Contexts {
  /** The one that is used when nothing else names a daemon. */
  readonly selected?: string | null;
  readonly contexts: Readonly<Record<string, GlobalOptions>>;
}

/** The configuration folder of the user; null: there is none. */
function folderOf({ env }: Place): string | null {
  if (env.XDG_CONFIG_HOME) return join(env.XDG_CONFIG_HOME, 'parley');
  return env.HOME ? join(env.HOME, '.config', 'parley') : null;
}

async function contextNamed(name: string | null, folder: string): Promise<GlobalOptions> {
  const path = join(folder, 'contexts.json');
  const text = await readFile(path, 'utf8').catch(() => '{ "contexts": {} }');
  try {
    const { selected = null, contexts }: Contexts = JSON.parse(text);
    const wanted = name ?? selected;
    if (wanted === null) return {};
    if (!Object.hasOwn(contexts, wanted)) {
      const known = Object.keys(contexts).join(', ') || 'none';
      throw new ParleyError('USAGE', `there is no context ${wanted}`, { hint: `known in ${path}: ${known}` });
    }
    const given = Object.entries(contexts[wanted] ?? {});
    const wrong = given.find(([key, value]) => !KEPT.has(key) || key === 'data' || typeof value !== 'string');
    if (wrong) throw new Error(`${wanted}.${wrong[0]} is no option that a context keeps`);
    const isPath = /File$|Credentials$|Nkey$|Tls/;
    return Object.fromEntries(
      given.map(([key, value]) => [key, isPath.test(key) ? resolve(folder, value) : value]),
    );
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    throw new ParleyError('CONFIG_INVALID', `${path}: ${messageOf(error)}`, {
      hint: 'correct or delete that file: docs/reference/cli.md',
    });
  }
}

/** The options, completed by the context in use: --context, PARLEY_CONTEXT, or the selected one if nothing else names a daemon. */
export async function withContext(options: GlobalOptions, io: Place): Promise<GlobalOptions> {
  const { env } = io;
  const isNamed = options.nats !== undefined || options.data !== undefined;
  if (options.context !== undefined && isNamed)
    throw new ParleyError('USAGE', '--context names the server, and so does --nats or --data', {
      hint: 'give one of them',
    });
  const isElsewhere = isNamed || [env.PARLEY_NATS_URL, env.PARLEY_NATS, env.PARLEY_DATA].some(Boolean);
  const folder = folderOf(io);
  if (isElsewhere && options.context === undefined) return options;
  if (folder === null && options.context === undefined) return options;
  return {
    ...(await contextNamed(options.context ?? (env.PARLEY_CONTEXT || null), folder ?? '')),
    ...options,
  };
}
