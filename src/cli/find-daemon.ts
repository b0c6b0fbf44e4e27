import {
  type ClientOptions,
  type ConnectionFile,
  type ParleyClient,
  ParleyError,
  readConnectionFile,
} from '../client/index.ts';
import { type NatsServer, resolveDaemonAddress, revealed } from '../config/index.ts';
import type { Context } from './context.ts';
import { configFlags } from './options.ts';

/** Where a running daemon is: `--nats`, else PARLEY_NATS_URL, else what `up` left in the data directory. */

export async function daemonAddress(context: Context): Promise<ClientOptions> {
  const { io, options } = context;
  const flags = configFlags(options);
  const { nats, data } = resolveDaemonAddress({ env: io.env, flags, workingDirectory: io.workingDirectory });
  const prefix = options.prefix ?? (io.env.PARLEY_SUBJECT_PREFIX || undefined);
  if (nats) return { ...natsOptions(nats), ...(prefix === undefined ? {} : { prefix }) };
  const left = await readConnectionFile(data);
  if (left) return { ...asNamed(context, left), prefix: prefix ?? left.prefix };
  throw new ParleyError('DAEMON_NOT_RUNNING', `no daemon has left its address in ${data}`, {
    hint: 'start one with `parley up`, or name its server with --nats URL',
  });
}

/** Servers: their URLs without logins, separated by commas, and how to connect to them. */
export interface Servers {
  readonly shown: string;
  readonly options: ClientOptions;
}

/** The servers that the daemon of this data directory joined; null: no address was left, or not of joined servers. */
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
  const flags = { ...configFlags(options), nats: left.url };
  const { nats } = resolveDaemonAddress({ env: io.env, flags, workingDirectory: io.workingDirectory });
  return nats as NatsServer;
}

/** The server that `up` named, with its credentials, unless others are named here: those replace them. */
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

/** Who to be on a server, as the client takes it. */
export function natsOptions(server: NatsServer): ClientOptions {
  return revealed(server);
}

/** Connects, lets the command do its work, and closes whatever happens. */
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

/** A server that is gone means, for whoever relied on `up`, that the daemon is. */
async function open(context: Context, address: ClientOptions): Promise<ParleyClient> {
  try {
    return await context.rooms.connect({ ...address, name: 'parley-cli' });
  } catch (error) {
    if (!(error instanceof ParleyError) || error.code !== 'NATS_UNREACHABLE') throw error;
    throw new ParleyError('DAEMON_NOT_RUNNING', `no daemon is reachable: ${error.message}`, {
      hint: 'start one with `parley up`',
      cause: error,
    });
  }
}
