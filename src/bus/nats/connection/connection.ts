import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { type Authenticator, type ConnectionOptions, connect, Events, type NatsConnection } from 'nats';
import {
  errnoOf,
  linkedAbort,
  messageOf,
  ParleyError,
  percentDecoded,
  sleep,
  splitUrls,
  UNRESOLVED,
  urlWithoutSecrets,
  within,
} from '../../../kernel/index.ts';
import type { BusLog } from '../../port.ts';
import {
  authenticatorOf,
  type CredentialFiles,
  CredentialMonitor,
  monitorCredentials,
  refusedCredentials,
  secretIn,
  userJwt,
} from './credentials.ts';
import './client-patches.ts';

/**
 * Connects to a server, or to one of several, for the daemon, its commands and the client library.
 *
 * NATS-CONNECTION-1 It reconnects without a time limit (the client's default gives up after 20 s), also to a server that now
 *    refuses the credentials: they may be renewed in their file, or a revocation may be undone. Only a refusal of the first
 *    connection is final.
 * NATS-CONNECTION-2 A dead peer is detected within 10 s (`pingInterval` 5 s, twice).
 * NATS-CONNECTION-3 Servers are dialled in the order in which they are named. An error names each server and its failure.
 */

/** Server addresses and credentials. */
export interface NatsOptions extends CredentialFiles {
  /** One server or several, as a list or with commas. Each URL may include user and password. */
  readonly url: string | readonly string[];
  readonly user?: string;
  readonly password?: string;
  /** Path of a file with the password; a line break at its end is ignored. */
  readonly passwordFile?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  /** Paths of PEM files. With them, or with a `tls://` URL, nothing is sent to a server without TLS. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** The prefix of reply subjects (default `_INBOX`), for a user with rights to no other. */
  readonly inboxPrefix?: string;
  /** Shown by `nats server report connections`. */
  readonly name?: string;
  /** The server is a managed one on loopback: refuse a program of another user on its port. */
  readonly managed?: true;
  /** Retry the first connection too (the daemon); otherwise the first failure is final (a command). */
  readonly waitForServer?: boolean;
  /** Receives no message that it publishes itself. */
  readonly noEcho?: boolean;
}

const NO_SERVER_HINT =
  'check that a nats-server is running there, or leave out --nats: then the daemon starts its own';

const UNKNOWN_HOST_HINT =
  'correct --nats (PARLEY_NATS, nats.server in parley.yaml), which names this host, or check the network and its DNS';

const NO_CERTIFICATE_HINT =
  'a server that requires a client certificate (--nats-tls-cert, --nats-tls-key) may close the connection without a message';

/** The default `max_control_line`, and the approximate length of the client's first line besides the JWT. */
const CONTROL_LINE = 4_096;
const AROUND_A_JWT = 400;

const WAIT_MS = 250;
const JITTER_MS = 100;
/** Longer, because the server logs each refusal. */
const REFUSED_WAIT_MS = 2_000;

export async function openNats(options: NatsOptions): Promise<NatsConnection> {
  const refusal = new CredentialMonitor();
  const [first, ...others] = namedServers(options.url);
  if (first === undefined) {
    throw new ParleyError('CONFIG_INVALID', 'no NATS server is given', {
      hint: 'give a URL such as nats://127.0.0.1:4222, or several with commas',
    });
  }
  const pool = new ServerPool([first, ...others]);
  const connectionOptions = commonOptions(options, pool, refusal);
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
    if (options.waitForServer !== true || isRefused) throw together(faults);
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
    hint: message.includes(UNRESOLVED) ? UNKNOWN_HOST_HINT : unreachableHint(options),
    cause: error,
  });
}

/** NATS-CONNECTION-3. The code and the hint are those of a server that answered, if one did. */
function together(faults: readonly ParleyError[]): ParleyError {
  const telling = faults.find(({ code }) => code !== 'NATS_UNREACHABLE') ?? faults[0];
  if (telling === undefined) throw new RangeError('no server was dialled');
  if (faults.length === 1) return telling;
  const each = faults.map(({ message }) => message).join('; ');
  return new ParleyError(telling.code, `none of the ${faults.length} NATS servers is usable: ${each}`, {
    ...(telling.hint !== undefined && { hint: telling.hint }),
    cause: telling,
  });
}

/** Some servers close the connection without a reason, or with one that the client does not report. */
function unreachableHint({ tls, credentials }: NatsOptions): string {
  const bytes = credentials === undefined ? 0 : userJwt(credentials).length;
  if (bytes + AROUND_A_JWT > CONTROL_LINE)
    return `${NO_SERVER_HINT}; the user JWT in ${credentials} has ${bytes} bytes, which exceeds the default line limit of nats-server: set max_control_line of the server to 16KB`;
  return tls ? `${NO_SERVER_HINT}; ${NO_CERTIFICATE_HINT}` : NO_SERVER_HINT;
}

function commonOptions(
  options: NatsOptions,
  pool: ServerPool,
  refusal: CredentialMonitor,
): ConnectionOptions {
  const { passwordFile, tokenFile } = options;
  const password = options.password ?? (passwordFile && secretIn(passwordFile, 'password file'));
  const ofFiles = guarded(authenticatorOf(options), options, pool);
  const login = pool.authenticator({
    ...(options.user !== undefined && { user: options.user }),
    ...(password !== undefined && { password }),
  });
  return {
    name: options.name ?? 'parley',
    token: options.token ?? (tokenFile && secretIn(tokenFile, 'token file')),
    authenticator: ofFiles ? [ofFiles, login] : login,
    tls: tlsOptions(options, pool),
    inboxPrefix: options.inboxPrefix,
    noEcho: options.noEcho ?? false,
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: options.waitForServer !== true,
    noRandomize: true,
    reconnectDelayHandler: () => (refusal.isRefused ? REFUSED_WAIT_MS : WAIT_MS) + Math.random() * JITTER_MS,
    timeout: 5_000,
    pingInterval: 5_000,
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

/** Reads the files here, so that an error names the wrong path. */
function tlsOptions({ tls }: NatsOptions, pool: ServerPool): ConnectionOptions['tls'] {
  if (!tls) return pool.servers.some(({ url }) => /^(tls|wss):/.test(url)) ? pool.tlsOptions() : undefined;
  return Object.assign(
    pool.tlsOptions(),
    tls.ca && { ca: secretIn(tls.ca, 'file of certificate authorities') },
    tls.cert && { cert: secretIn(tls.cert, 'certificate') },
    tls.key && { key: secretIn(tls.key, 'key of the certificate') },
  );
}

const TLS_HINT =
  "check that --nats-tls-ca is the authority that signed the server's certificate, and that the URL has the name in the certificate";

/** Reports a certificate problem as such, and not as an unreachable server. */
function tlsFault(message: string, shown: string, cause: unknown): ParleyError | null {
  const failed = (text: string, hint: string) =>
    new ParleyError('NATS_TLS_FAILED', `no secure connection to NATS at ${shown}: ${text}`, { hint, cause });
  if (/'tls' is not available|^tls$|server_option/i.test(message) || errnoOf(cause) === 'SERVER_OPT_NA')
    return failed(
      'the server offers no TLS',
      'enable TLS on the server, or leave out tls:// and --nats-tls-…',
    );
  if (/alert|handshake|ECONNRESET/i.test(message) && /ssl|tls/i.test(message))
    return failed(message, 'the server may require a certificate: --nats-tls-cert and --nats-tls-key');
  if (/certificate|altname|self.signed|issuer|ssl|tls/i.test(message)) return failed(message, TLS_HINT);
  return null;
}

/**
 * Refuses a program of another user on the port of a managed server that died: a fake server could inject requests, which
 * the daemon would execute. So nothing is sent or subscribed there. Works on Linux only.
 * `refuse` ends the attempt; before the first connection it returns false, and this throws.
 */
function onlyToOwnServer(
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
      const message = `port ${port} is used by a program of another user, not by the managed nats-server`;
      throw new ParleyError('NATS_PORT_IN_USE', message, {
        hint: 'end that program, and start the daemon again',
      });
    }
    return login(nonce);
  };
}

const ESTABLISHED = '01';
/** 127.0.0.1, also as an IPv6 address. */
const LOOPBACK = /^(0{16}FFFF0000)?0100007F:/;

/** Whether the server side of a connection to this port of 127.0.0.1 belongs to none of these users. */
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

interface Login {
  readonly user?: string;
  readonly password?: string;
}

interface NamedServer {
  /** Without user and password. */
  readonly url: string;
  /** The login in its URL, or else in the first URL that has one. */
  readonly login: Login;
}

const SCHEME = /^[A-Za-z]+:\/\//;
function namedServers(url: string | readonly string[]): NamedServer[] {
  const urls = splitUrls(url);
  const logins = urls.map(loginIn);
  const shared = logins.find((login) => login !== null) ?? {};
  return urls.map((one, at) => ({ url: urlWithoutSecrets(one), login: logins[at] ?? shared }));
}

function loginIn(url: string): Login | null {
  const match = /^[A-Za-z]+:\/\/([^@/]*)@/.exec(url);
  if (!match) return null;
  const [user, password] = (match[1] ?? '').split(':').map(percentDecoded);
  return { ...(user && { user }), ...(password !== undefined && { password }) };
}

/** The part of the client's private server list that is used here. */
interface Pool {
  addServer(url: string): void;
  getServers(): { readonly src: string; tlsName: string }[];
  getCurrentServer(): { readonly src: string; readonly hostname: string };
}

interface Transport {
  readonly socket?: { destroy(): void };
}

interface Protocol {
  readonly servers: Pool;
  /** A new one for each attempt. */
  readonly transport: Transport;
}

/**
 * The servers of one connection: the configured ones, in their order.
 *
 * SERVERS-1  A server that is down at first stays in the list, so that the connection may fail over to it later. (The
 *            client removes it, so each is dialled alone and the others are added once one is connected.)
 * SERVERS-2  Each server gets its own login, and its certificate is compared with its own address.
 * SERVERS-3  A server that the cluster announces is tried after the configured ones, with the first login.
 */
class ServerPool {
  readonly servers: readonly NamedServer[];
  #dialled: NamedServer;
  #pool: Pool | null = null;
  #transport: (() => Transport) | null = null;

  constructor(servers: readonly [NamedServer, ...NamedServer[]]) {
    this.servers = servers;
    this.#dialled = servers[0];
  }

  dials(server: NamedServer): void {
    this.#dialled = server;
  }

  connected(connection: NatsConnection): void {
    // `nats` has no public access to its pool.
    const { protocol } = connection as unknown as { readonly protocol: Protocol };
    const pool = protocol.servers;
    this.#transport = () => protocol.transport;
    const first = this.servers.indexOf(this.#dialled);
    for (const { url } of [...this.servers.slice(first + 1), ...this.servers.slice(0, first)]) {
      pool.addServer(url);
      const added = pool.getServers().at(-1);
      if (added) added.tlsName = ''; // SERVERS-2: not the name of the connected server
    }
    this.#pool = pool;
  }

  /** Ends the current attempt to reconnect; false: there was no connection yet. */
  hangUp(): boolean {
    this.#transport?.().socket?.destroy();
    return this.#transport !== null;
  }

  /** SERVERS-2. `common` overrides the login of every server. */
  authenticator(common: Login): Authenticator {
    return () => {
      const user = common.user ?? this.#login.user;
      return user === undefined ? undefined : { user, pass: common.password ?? this.#login.password };
    };
  }

  /**
   * SERVERS-2: if the URL has an IP address, the certificate is compared with that; the client would use `localhost`.
   * The client reads `host` for each handshake and passes it to Node's TLS.
   */
  tlsOptions(): NonNullable<ConnectionOptions['tls']> {
    const host = () => this.#host;
    const options = {
      get host() {
        return host();
      },
    };
    return options as NonNullable<ConnectionOptions['tls']>;
  }

  get #login(): Login {
    const src = this.#pool?.getCurrentServer().src ?? this.#dialled.url;
    return (this.servers.find(({ url }) => url === src) ?? this.servers[0])?.login ?? {};
  }

  get #host(): string | undefined {
    const host = this.#pool?.getCurrentServer().hostname ?? hostOf(this.#dialled.url);
    return isIP(host) === 0 ? undefined : host;
  }
}

function hostOf(url: string): string {
  return /^\[?([^\]/]+?)\]?(?::\d+)?\/?$/.exec(url.replace(SCHEME, ''))?.[1] ?? '';
}

/** Limits the wait for a server that does not answer. */
const CLOSE_DEADLINE_MS = 2_000;

const REFUSED =
  'the NATS server refuses the credentials of this daemon (expired, revoked or changed); retrying, with the contents of their file each time';

const FORBIDDEN =
  'the NATS user of this daemon lacks a right: render the permissions again with `parley nats-config`, reload the server and restart the daemon';

/**
 * Whether the server is reachable. While it is not, the client drops messages without an error, and requests wait for their
 * whole timeout. So wait for the connection before a request.
 */
export interface ConnectionWatch {
  /** False from each loss of the connection to its return. */
  readonly isConnected: boolean;
  /** True at once or when the connection is back; false if that takes longer than `timeoutMs` or `signal` aborts. */
  connected(timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  /** Rejects as soon as the connection is lost, because no answer can arrive. Only for requests that change nothing. */
  whileConnected<T>(asking: Promise<T>): Promise<T>;
}

/** Reports every loss and return of the connection until it closes. */
export function watchConnection(
  connection: NatsConnection,
  log: BusLog,
  onLost: () => void,
): ConnectionWatch {
  let isUp = true;
  const refusal = new CredentialMonitor();
  const waiting = new Set<() => void>();
  const asking = new Set<() => void>();
  const follow = async () => {
    for await (const { type, data: server, permissionContext } of connection.status()) {
      const isRefusedNow = refusal.take({ type, data: server });
      if (type === Events.Disconnect) {
        if (isUp) log.warn({ server }, 'the connection to NATS was lost; reconnecting');
        isUp = false;
        for (const giveUp of asking) giveUp();
        onLost();
      } else if (type === Events.Reconnect) {
        isUp = true;
        log.info({ server }, 'the connection to NATS is restored');
        for (const wake of waiting) wake();
      } else if (isRefusedNow) {
        log.error({ reason: String(server) }, REFUSED);
      } else if (type === Events.Error && !refusal.isRefused) {
        const { operation, subject } = permissionContext ?? {};
        // The operation that publishes reports its own failure; a refused subscription receives nothing.
        const text = operation === 'subscription' ? FORBIDDEN : 'NATS reports an error';
        log.error({ reason: String(server), operation, subject }, text);
      }
    }
  };
  follow().catch((error: unknown) =>
    log.warn({ reason: messageOf(error) }, 'the NATS connection is no longer monitored'),
  );

  const connected = async (timeoutMs: number, signal?: AbortSignal) => {
    if (isUp || signal?.aborted) return isUp;
    const woken = linkedAbort(signal);
    waiting.add(woken.abort);
    await sleep(timeoutMs, woken.signal);
    waiting.delete(woken.abort);
    woken.unlink();
    return isUp;
  };
  const whileConnected = <T>(work: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const giveUp = () => reject(new Error('the connection was lost before the server answered'));
      asking.add(giveUp);
      work.then(resolve, reject).finally(() => asking.delete(giveUp));
    });
  return {
    get isConnected() {
      return isUp;
    },
    connected,
    whileConnected,
  };
}

/** Runs `last`, drains and closes, within one deadline. Does not reject. */
export async function closeConnection(
  connection: NatsConnection,
  last: () => Promise<void> = async () => undefined,
): Promise<void> {
  const drain = async () => {
    if (!connection.isClosed()) await connection.drain();
  };
  const work = last()
    .catch(() => undefined) // drained and closed all the same
    .then(drain);
  await within(CLOSE_DEADLINE_MS, work).catch(() => undefined); // closed next, however it ended
  await connection.close();
}
