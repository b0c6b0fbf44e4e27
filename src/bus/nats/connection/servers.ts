import { isIP } from 'node:net';
import type { Authenticator, ConnectionOptions, NatsConnection } from 'nats';
import { splitUrls, urlWithoutSecrets } from '../../../kernel/index.ts';

/**
 * The configured servers, in their order.
 *
 * SERVERS-1  A server that is down at first stays in the list, so that the connection may fail over to it later. (The
 *            client removes it, so each is dialled alone and the others are added once one is connected.)
 * SERVERS-2  Each server gets its own login, and its certificate is compared with its own address.
 * SERVERS-3  A server that the cluster announces is tried after the configured ones, with the first login.
 */

export interface Login {
  readonly user?: string;
  readonly password?: string;
}

export interface NamedServer {
  /** Without user and password. */
  readonly url: string;
  /** The login in its URL, or else in the first URL that has one. */
  readonly login: Login;
}

const SCHEME = /^[A-Za-z]+:\/\//;
export function namedServers(url: string | readonly string[]): NamedServer[] {
  const urls = splitUrls(url);
  const logins = urls.map(loginIn);
  const shared = logins.find((login) => login !== null) ?? {};
  return urls.map((one, at) => ({ url: urlWithoutSecrets(one), login: logins[at] ?? shared }));
}

function loginIn(url: string): Login | null {
  const match = /^[A-Za-z]+:\/\/([^@/]*)@/.exec(url);
  if (!match) return null;
  const [user, password] = (match[1] ?? '').split(':').map(decoded);
  return { ...(user && { user }), ...(password !== undefined && { password }) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
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

/** The servers of one connection. */
export class ServerPool {
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
