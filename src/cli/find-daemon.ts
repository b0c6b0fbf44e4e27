import {
  type ClientOptions,
  type ConnectionFile,
  type ParleyClient,
  ParleyError,
  readConnectionFile,
} from '../client/index.ts';
import { type NatsServer, resolveDaemonAddress, revealed } from '../config/index.ts';
import type { Context } from './context.ts';
import { configFlags } from './options/options.ts';

/** Finds a running daemon: `--nats`, or PARLEY_NATS_URL, or the address file of `up` in the data directory. */

export async function daemonAddress(context: Context): Promise<ClientOptions> {
  const { io, options } = context;
  const flags = configFlags(options);
  const { env, workingDirectory } = io;
  const { nats, data, subjectPrefix } = resolveDaemonAddress({ env, flags, workingDirectory });
  const prefix = options.prefix ?? subjectPrefix ?? undefined;
  if (nats) return { ...natsOptions(nats), ...(prefix === undefined ? {} : { prefix }) };
  const left = await readConnectionFile(data);
  if (left) return { ...asNamed(context, left), prefix: prefix ?? left.prefix };
  throw new ParleyError('DAEMON_NOT_RUNNING', `no running daemon found: ${data} has no address file`, {
    hint: 'start a daemon with `parley up`, or give its server with --nats URL',
  });
}

/** Server URLs without logins, separated by commas, and the options to connect. */
export interface Servers {
  readonly shown: string;
  readonly options: ClientOptions;
}

/** The external servers of the daemon of this data directory; null: no address file, or a managed server. */
export async function joinedServers(context: Context): Promise<Servers | null> {
  const { io, options } = context;
  const flags = configFlags(options);
  const { nats, data } = resolveDaemonAddress({ env: io.env, flags, workingDirectory: io.workingDirectory });
  const left = nats ? null : await readConnectionFile(data);
  if (!left || left.managed) return null;
  const prefix = options.prefix ?? left.prefix;
  return { shown: namedServer(context, left).url, options: { ...asNamed(context, left), prefix } };
}

function namedServer({ io, options }: Context, left: ConnectionFile): NatsServer {
  const flags = configFlags(options);
  const { env, workingDirectory } = io;
  const { nats } = resolveDaemonAddress({ env, flags, workingDirectory, found: left.url });
  return nats as NatsServer;
}

/** The server in the address file of `up`. Credentials given to this command replace those in the file. */
function asNamed(context: Context, left: ConnectionFile): ClientOptions {
  const named = natsOptions(namedServer(context, left));
  const { user, token, tokenFile, credentials, nkey, ...rest } = named;
  const { pid: _, managed: __, ...daemons } = left;
  if (user ?? token ?? tokenFile ?? credentials ?? nkey) {
    const { tls } = daemons;
    return { ...(tls && { tls }), ...rest, user, token, tokenFile, credentials, nkey };
  }
  return daemons;
}

/** The server and its credentials in the client's format. */
export function natsOptions(server: NatsServer): ClientOptions {
  return revealed(server);
}

/** Connects, runs the work, and always closes the connection. */
export async function withDaemon<T>(
  context: Context,
  work: (client: ParleyClient) => Promise<T>,
): Promise<T> {
  const address = await daemonAddress(context);
  const client = await open(context, address);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** Reports an unreachable server as a daemon that does not run. */
async function open(context: Context, address: ClientOptions): Promise<ParleyClient> {
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

/** The data directory, for commands that need no daemon: `--data`, or PARLEY_DATA, or `data` in the working directory. */
export function dataDirectoryOf({ io, options }: Context): string {
  const flags = configFlags(options);
  return resolveDaemonAddress({ env: io.env, flags, workingDirectory: io.workingDirectory }).data;
}
