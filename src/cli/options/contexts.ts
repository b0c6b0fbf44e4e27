import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { NAME_PATTERN, ParleyError } from '../../client/index.ts';
import { makeDirectory, messageOf, replaceFile } from '../../kernel/index.ts';
import type { Io } from '../io.ts';
import type { GlobalOptions } from './options.ts';

/**
 * Named servers (`parley context`), in the configuration folder of the user. A context keeps the options that find a server:
 * files with passwords, tokens and keys by their paths, and no secret itself.
 */

const FILES = [
  'natsPasswordFile',
  'natsTokenFile',
  'natsCredentials',
  'natsNkey',
  'natsTlsCa',
  'natsTlsCert',
  'natsTlsKey',
] as const;
const TEXTS = ['nats', 'natsUser', 'natsInboxPrefix', 'prefix'] as const;
type Key = (typeof FILES)[number] | (typeof TEXTS)[number];
export type SavedContext = Readonly<Partial<Record<Key, string>>>;

export interface Contexts {
  /** The one that `parley context use` named. */
  readonly selected: string | null;
  readonly contexts: Readonly<Record<string, SavedContext>>;
}

type Place = Pick<Io, 'env' | 'workingDirectory'>;

/** Null: the user has no configuration folder. */
function folderOf({ env }: Place): string | null {
  if (env.XDG_CONFIG_HOME) return join(env.XDG_CONFIG_HOME, 'parley');
  return env.HOME ? join(env.HOME, '.config', 'parley') : null;
}

export async function readContexts(io: Place): Promise<Contexts> {
  const folder = folderOf(io);
  const path = join(folder ?? '', 'contexts.json');
  const text = folder === null ? null : await readFile(path, 'utf8').catch(() => null);
  if (text === null) return { selected: null, contexts: {} };
  try {
    const { selected = null, contexts }: Partial<Contexts> = JSON.parse(text);
    if (typeof contexts !== 'object' || contexts === null) throw new Error('it has no contexts');
    return { selected, contexts };
  } catch (error) {
    throw new ParleyError('CONFIG_INVALID', `${path}: ${messageOf(error)}`, {
      hint: 'correct or delete that file',
    });
  }
}

export async function writeContexts(io: Place, contexts: Contexts): Promise<void> {
  const folder = folderOf(io);
  if (folder === null)
    throw new ParleyError('USAGE', 'there is no configuration folder: HOME is not set', {
      hint: 'set HOME or XDG_CONFIG_HOME',
    });
  await makeDirectory(folder);
  await replaceFile(join(folder, 'contexts.json'), `${JSON.stringify(contexts, null, 2)}\n`);
}

/** What a context keeps of these options. Paths become absolute. */
export function contextOf(options: GlobalOptions, { workingDirectory }: Place): SavedContext {
  const given: SavedContext = {
    ...options,
    natsCredentials: options.natsCredentials ?? options.natsCreds,
    natsTlsCa: options.natsTlsCa ?? options.natsCa,
    natsTlsCert: options.natsTlsCert ?? options.natsCert,
    natsTlsKey: options.natsTlsKey ?? options.natsKey,
  };
  const texts = TEXTS.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]]));
  const files = FILES.flatMap((key) => {
    const path = given[key];
    return path === undefined ? [] : [[key, resolve(workingDirectory, path)]];
  });
  return Object.fromEntries([...texts, ...files]);
}

export function contextNamed({ contexts }: Contexts, name: string): SavedContext {
  const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (found) return found;
  const known = Object.keys(contexts).join(', ') || 'none';
  throw new ParleyError('USAGE', `there is no context ${name}`, {
    hint: `known: ${known}; \`parley context add NAME --nats URL\` adds one`,
  });
}

export function contextName(value: string): string {
  if (NAME_PATTERN.test(value)) return value;
  throw new ParleyError('USAGE', `${JSON.stringify(value)} is no name of a context`, {
    hint: 'give 1 to 128 letters, digits, _ or -',
  });
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
  if (isElsewhere && options.context === undefined) return options;
  const known = await readContexts(io);
  const name = options.context ?? (env.PARLEY_CONTEXT || known.selected);
  return name === null ? options : { ...contextNamed(known, name), ...options };
}
