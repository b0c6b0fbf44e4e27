import { readFileSync, statSync } from 'node:fs';
import { type Authenticator, type ConnectionOptions, connect, type NatsConnection } from 'nats';
import { messageOf, ParleyError, sleep } from '../../../kernel/index.ts';
import { CredentialMonitor, monitorCredentials, refusedCredentials } from './credential-monitor.ts';
import { authenticatorOf, type CredentialFiles, secretIn, userJwt } from './credentials.ts';
import { type NamedServer, namedServers, ServerPool } from './servers.ts';
import './received-headers.ts';

/**
 * One way to a server, or to one of several, for the daemon, its commands and the client library.
 *
 * CONNECTION-CONNECTION-1 Reconnects for as long as it takes (the client's default gives up after 20 s), also to a server that refuses who was let
 *    in before: credentials are renewed in their file, and a revocation is taken back. Only who waits for the first connection,
 *    too, is told of a refusal by the end of it.
 * CONNECTION-CONNECTION-2 A dead peer is noticed within 10 s (`pingInterval` 5 s, twice).
 * CONNECTION-CONNECTION-3 Servers are dialled in the order in which they were named. An error names each that was tried, and why it failed.
 */

/** How to reach and who to be. */
export interface NatsOptions extends CredentialFiles {
  /** One server or several, as a list or with commas. User and password may stand in each URL. */
  readonly url: string | readonly string[];
  readonly user?: string;
  readonly password?: string;
  /** Path of a file that holds the password; a line break at its end does not count. */
  readonly passwordFile?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  /** Paths of PEM files. With them, or with a `tls://` URL, nothing is sent to a server without TLS. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** What answers come to begins with this (default `_INBOX`): a server may leave a user nothing else. */
  readonly inboxPrefix?: string;
  /** Shown by `nats server report connections`. */
  readonly name?: string;
  /** The server is one that a daemon runs, on loopback: `nkey` is its owner's, and another user's program is none. */
  readonly managed?: true;
  /** Keep trying the first connection too (the daemon); else the first failure is final (a command). */
  readonly waitForServer?: boolean;
}

const NO_SERVER_HINT =
  'is a nats-server running there? start one, or leave out --nats: then the daemon brings its own';

const NO_CERTIFICATE_HINT =
  'one that wants a certificate (--nats-tls-cert, --nats-tls-key) says nothing to who shows none';

/** What a server takes by default as one line; and what the client's first line holds besides the JWT, about. */
const CONTROL_LINE = 4_096;
const AROUND_A_JWT = 400;

const WAIT_MS = 250;
const JITTER_MS = 100;
/** A server writes each refusal down. */
const REFUSED_WAIT_MS = 2_000;

export async function openNats(options: NatsOptions): Promise<NatsConnection> {
  const refusal = new CredentialMonitor();
  const [first, ...others] = namedServers(options.url);
  if (first === undefined) {
    throw new ParleyError('CONFIG_INVALID', 'no NATS server is named', {
      hint: 'give a URL such as nats://127.0.0.1:4222, or several with commas',
    });
  }
  const pool = new ServerPool([first, ...others]);
  const connectionOptions = await commonOptions(options, pool, refusal);
  for (;;) {
    const faults: ParleyError[] = [];
    for (const server of pool.servers) {
      pool.dials(server);
      try {
        const connection = await connect({ ...connectionOptions, servers: server.url });
        pool.connected(connection);
        monitorCredentials(connection, refusal);
        return connection;
      } catch (error) {
        faults.push(faultOf(error, server, options));
      }
    }
    const isRefused = faults.some(({ code }) => code === 'NATS_UNAUTHORIZED');
    if (options.waitForServer !== true || isRefused) throw together(faults); // CONNECTION-CONNECTION-1
    await sleep(WAIT_MS + Math.random() * JITTER_MS);
  }
}

function faultOf(error: unknown, { url: shown }: NamedServer, options: NatsOptions): ParleyError {
  if (error instanceof ParleyError) return error;
  const message = messageOf(error);
  if (/authorization|authentication/i.test(message)) return refusedCredentials(shown, options, error);
  const tls = tlsFault(message, shown, error);
  if (tls) return tls;
  return new ParleyError('NATS_UNREACHABLE', `cannot connect to NATS at ${shown}: ${message}`, {
    hint: unreachableHint(options),
    cause: error,
  });
}

/** C3. Of several faults the code and the hint are of the one that says most: a server that answered. */
function together(faults: readonly ParleyError[]): ParleyError {
  const telling = faults.find(({ code }) => code !== 'NATS_UNREACHABLE') ?? faults[0];
  if (telling === undefined) throw new RangeError('no server was dialled');
  if (faults.length === 1) return telling;
  const each = faults.map(({ message }) => message).join('; ');
  return new ParleyError(telling.code, `none of the ${faults.length} NATS servers can be used: ${each}`, {
    ...(telling.hint !== undefined && { hint: telling.hint }),
    cause: telling,
  });
}

/** Some servers say nothing to whom they do not understand, or nothing that the client hands on. */
function unreachableHint({ tls, credentials }: NatsOptions): string {
  const bytes = credentials === undefined ? 0 : userJwt(credentials).length;
  if (bytes + AROUND_A_JWT > CONTROL_LINE)
    return `${NO_SERVER_HINT}; the user JWT in ${credentials} has ${bytes} bytes, and with it the first line is longer than a server takes by default: set max_control_line of the server to 16KB`;
  return tls ? `${NO_SERVER_HINT}; ${NO_CERTIFICATE_HINT}` : NO_SERVER_HINT;
}

async function commonOptions(
  options: NatsOptions,
  pool: ServerPool,
  refusal: CredentialMonitor,
): Promise<ConnectionOptions> {
  const password = options.password ?? (await secretIn(options.passwordFile, 'password file'));
  const ofFiles = guarded(authenticatorOf(options), options, pool);
  const login = pool.authenticator({
    ...(options.user !== undefined && { user: options.user }),
    ...(password !== undefined && { password }),
  });
  return {
    name: options.name ?? 'parley',
    token: options.token ?? (await secretIn(options.tokenFile, 'token file')),
    authenticator: ofFiles ? [ofFiles, login] : login,
    tls: await tlsOptions(options, pool),
    inboxPrefix: options.inboxPrefix,
    maxReconnectAttempts: -1, // CONNECTION-CONNECTION-1
    ignoreAuthErrorAbort: options.waitForServer !== true, // CONNECTION-CONNECTION-1
    noRandomize: true, // CONNECTION-CONNECTION-3
    reconnectDelayHandler: () => (refusal.isRefused ? REFUSED_WAIT_MS : WAIT_MS) + Math.random() * JITTER_MS,
    timeout: 5_000,
    pingInterval: 5_000, // CONNECTION-CONNECTION-2
    maxPingOut: 2,
  };
}

function guarded(
  login: Authenticator | undefined,
  { managed, nkey }: NatsOptions,
  pool: ServerPool,
): Authenticator | undefined {
  const port = Number(pool.servers[0]?.url.split(':').at(-1));
  if (login === undefined || !managed || nkey === undefined) return login;
  return onlyToOwnServer(nkey, port, () => pool.hangUp(), login);
}

/** Read here, so that a path that is wrong is told by its name. */
async function tlsOptions({ tls }: NatsOptions, pool: ServerPool): Promise<ConnectionOptions['tls']> {
  if (!tls) return pool.servers.some(({ url }) => /^(tls|wss):/.test(url)) ? pool.tlsOptions() : undefined;
  const [ca, cert, key] = await Promise.all([
    secretIn(tls.ca, 'file of certificate authorities'),
    secretIn(tls.cert, 'certificate'),
    secretIn(tls.key, 'key of the certificate'),
  ]);
  return Object.assign(pool.tlsOptions(), ca && { ca }, cert && { cert }, key && { key });
}

const TLS_HINT =
  "TLS: is --nats-tls-ca the authority that signed the server's certificate, and its name in the URL?";

/** What went wrong with certificates is told as such: nobody should look for a server that is down. */
function tlsFault(message: string, shown: string, cause: unknown): ParleyError | null {
  const failed = (text: string, hint: string) =>
    new ParleyError('NATS_TLS_FAILED', `no secure connection to NATS at ${shown}: ${text}`, { hint, cause });
  if (/'tls' is not available|^tls$|server_option/i.test(message) || codeOf(cause) === 'SERVER_OPT_NA')
    return failed(
      'the server offers no TLS',
      'have the server use TLS, or leave out tls:// and --nats-tls-…',
    );
  if (/alert|handshake|ECONNRESET/i.test(message) && /ssl|tls/i.test(message))
    return failed(message, 'the server may want a certificate: --nats-tls-cert and --nats-tls-key');
  if (/certificate|altname|self.signed|issuer|ssl|tls/i.test(message)) return failed(message, TLS_HINT);
  return null;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/**
 * Another user of this machine may take the port of a managed server that died. A server without users takes every login, and
 * what it passes on would be executed. So no login is sent, and nothing is subscribed, where the other end of a connection
 * is a program of another user. Only Linux tells.
 */

/** `refuse` ends the attempt; before the first connection it answers false, and this throws. */
export function onlyToOwnServer(
  seed: string,
  port: number,
  refuse: () => boolean,
  login: Authenticator,
): Authenticator {
  return (nonce) => {
    if (
      isForeign(port, [0, process.getuid?.() ?? 0, statSync(seed, { throwIfNoEntry: false })?.uid ?? 0]) &&
      !refuse()
    ) {
      const message = `the program on port ${port} belongs to another user; it is not the managed nats-server`;
      throw new ParleyError('NATS_PORT_IN_USE', message, {
        hint: 'end that program, and start the daemon again',
      });
    }
    return login(nonce);
  };
}

const ESTABLISHED = '01';
/** 127.0.0.1, and the same as an IPv6 address. */
const LOOPBACK = /^(0{16}FFFF0000)?0100007F:/;

/** Whether a connection that was made to this port of 127.0.0.1 belongs to another user than these. */
function isForeign(port: number, users: readonly number[]): boolean {
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap(linesOf).some((line) => {
    const [, local = '', , state, , , , user] = line.trim().split(/\s+/);
    const isHere = LOOPBACK.test(local) && Number.parseInt(local.split(':')[1] ?? '', 16) === port;
    return isHere && state === ESTABLISHED && !users.includes(Number(user));
  });
}

function linesOf(table: string): string[] {
  try {
    return readFileSync(table, 'utf8').split('\n').slice(1);
  } catch {
    return []; // not on this system
  }
}
