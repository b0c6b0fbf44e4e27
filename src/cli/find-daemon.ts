import type { Command } from 'commander';
import {
  type ClientOptions,
  type ConnectionFile,
  type ParleyClient,
  ParleyError,
  readConnectionFile,
} from '../client/index.ts';
import { resolveDaemonAddress, revealed } from '../config/index.ts';
import type { Act, Context } from './context.ts';

/** Finds a running daemon: `--nats`, or PARLEY_NATS_URL, or the address file of `up` in the data directory. */

/** What flags and variables name. `found`: the server in the address file. */
export function addressOf({ io, options }: Context, found?: string) {
  const { env, workingDirectory } = io;
  return resolveDaemonAddress({
    env,
    flags: options,
    workingDirectory,
    ...(found !== undefined && { found }),
  });
}

/** The data directory, for commands that need no daemon: `--data`, or PARLEY_DATA, or `data` in the working directory. */
export const dataDirectoryOf = (context: Context): string => addressOf(context).data;

/** The address file of the daemon of this data directory. */
export async function requireConnectionFile(data: string, more = ''): Promise<ConnectionFile> {
  const left = await readConnectionFile(data);
  if (left) return left;
  throw new ParleyError('DAEMON_NOT_RUNNING', `no running daemon found: ${data} has no address file`, {
    hint: `start a daemon with \`parley up\`${more}`,
  });
}

export async function daemonAddress(context: Context): Promise<ClientOptions> {
  const { nats, data, subjectPrefix } = addressOf(context);
  const prefix = context.options.prefix ?? subjectPrefix ?? undefined;
  if (nats) return { ...revealed(nats), ...(prefix === undefined ? {} : { prefix }) };
  const left = await requireConnectionFile(data, ', or give its server with --nats URL');
  return { ...asNamed(context, left), prefix: prefix ?? left.prefix };
}

/** Server URLs without logins, separated by commas, and the options to connect. */
export interface Servers {
  readonly shown: string;
  readonly options: ClientOptions;
}

/** The external servers of the daemon of this data directory; null: no address file, or a managed server. */
export async function joinedServers(context: Context): Promise<Servers | null> {
  const { nats, data } = addressOf(context);
  const left = nats ? null : await readConnectionFile(data);
  if (!left || left.managed) return null;
  const prefix = context.options.prefix ?? left.prefix;
  const shown = addressOf(context, left.url).nats?.url ?? left.url;
  return { shown, options: { ...asNamed(context, left), prefix } };
}

/** The server in the address file of `up`. Credentials given to this command replace those in the file. */
function asNamed(context: Context, left: ConnectionFile): ClientOptions {
  const { pid: _, managed: __, ...daemons } = left;
  const { nats } = addressOf(context, left.url);
  if (!nats) return daemons;
  const { user, token, tokenFile, credentials, nkey, ...rest } = revealed(nats);
  if (user ?? token ?? tokenFile ?? credentials ?? nkey) {
    const { tls } = daemons;
    return { ...(tls && { tls }), ...rest, user, token, tokenFile, credentials, nkey };
  }
  return daemons;
}

/** The context of a command that is connected to a daemon. */
export interface Connected extends Context, Pick<ParleyClient, 'request'> {
  readonly client: ParleyClient;
}

/** Connects, runs the work, and always closes the connection. */
export async function withDaemon<T>(context: Context, work: (context: Connected) => Promise<T>): Promise<T> {
  const client = await openDaemon(context);
  try {
    return await work({ ...context, client, request: client.request.bind(client) });
  } finally {
    await client.close();
  }
}

/** Gives a command its work, which asks a daemon. */
export function ask<Given extends readonly unknown[]>(
  act: Act,
  command: Command,
  work: (context: Connected, ...given: Given) => Promise<unknown>,
): void {
  act(command, (context, ...given: Given) => withDaemon(context, (connected) => work(connected, ...given)));
}

/** Reports an unreachable server as a daemon that does not run. */
export async function openDaemon(context: Context): Promise<ParleyClient> {
  const address = await daemonAddress(context);
  try {
    return await context.dependencies.connect({ ...address, name: 'parley-cli' });
  } catch (error) {
    if (!(error instanceof ParleyError) || error.code !== 'NATS_UNREACHABLE') throw error;
    throw new ParleyError('DAEMON_NOT_RUNNING', `no daemon is reachable: ${error.message}`, {
      hint: 'start a daemon with `parley up`',
      cause: error,
    });
  }
}

/** Whether a server is named, or the daemon of this data directory keeps its conversations on one. */
export async function isOnServer(context: Context): Promise<boolean> {
  if (context.options.nats !== undefined) return true;
  return (await readConnectionFile(dataDirectoryOf(context)))?.store === 'jetstream';
}
