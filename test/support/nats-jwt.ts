import { randomUUID } from 'node:crypto';
import { connect, credsAuthenticator, nkeys } from 'nats';
import type { Account, Permissions } from '../../src/bus/index.ts';

/**
 * An operator whose accounts and users a nats-server knows by JWTs alone (`operator:` in its configuration). Issues what
 * `nsc` issues, with keys for one test. The claims, version 2: https://github.com/nats-io/jwt
 */
export interface JwtOperator {
  /** With JetStream, and without exports or imports. */
  account(name: string): JwtAccount;
  /** The accounts of one tenant, by name; the first one has JetStream. */
  accounts(described: readonly Account[]): ReadonlyMap<string, JwtAccount>;
  /** Lines of a server's configuration: the operator, and every account that was made before. */
  config(): string;
}

export interface JwtAccount {
  /** Content of a `.creds` file. */
  user(name: string, permissions: Permissions, key?: UserKey, options?: JwtUserOptions): string;
  /**
   * Revokes everything that was issued to these users, on a running server, as `nsc push` does. A user of the account must
   * have connected before: else the server ignores the update and keeps the claims of its start.
   */
  revoke(url: string, ...users: readonly UserKey[]): Promise<void>;
}

interface JwtUserOptions {
  readonly expires?: Date;
}

/** An nkey pair of a user. */
export interface UserKey {
  readonly publicKey: string;
  readonly seed: string;
}

interface KeyPair {
  getPublicKey(): string;
  getSeed(): Uint8Array;
  sign(input: Uint8Array): Uint8Array;
}

export function createUserKey(): UserKey {
  return userKey(nkeys.createUser());
}

export function createJwtOperator(): JwtOperator {
  const operator: KeyPair = nkeys.createOperator();
  const preload = new Map<string, string>();
  const make = (
    name: string,
    limits: object,
    more: object = {},
    account: KeyPair = nkeys.createAccount(),
  ) => {
    const claims = (news: object = {}) =>
      sign(operator, account.getPublicKey(), name, { type: 'account', limits, ...more, ...news });
    preload.set(account.getPublicKey(), claims());
    return { account, claims };
  };
  const system = make('SYS', UNLIMITED); // Without JetStream, as the server requires.
  const everything: Permissions = { publish: ['>'], subscribe: ['>'], answers: false };
  const systemUser = credsAuthenticator(
    Buffer.from(credentials(system.account, 'system', everything, createUserKey(), {})),
  );
  const usable = ({ account, claims }: ReturnType<typeof make>): JwtAccount => ({
    user: (userName, permissions, key = createUserKey(), options = {}) =>
      credentials(account, userName, permissions, key, options),
    async revoke(url, ...users) {
      const now = Math.floor(Date.now() / 1_000);
      const revocations = Object.fromEntries(users.map(({ publicKey }) => [publicKey, now]));
      const connection = await connect({ servers: url, authenticator: systemUser });
      const subject = `$SYS.REQ.ACCOUNT.${account.getPublicKey()}.CLAIMS.UPDATE`;
      const answer = await connection.request(subject, claims({ revocations }), { timeout: 10_000 });
      await connection.close();
      if (answer.json<{ data?: { code?: number } }>().data?.code !== 200) throw new Error(answer.string());
    },
  });
  return {
    account: (name) => usable(make(name, { ...UNLIMITED, ...JETSTREAM })),
    accounts(described) {
      const keys = new Map(described.map(({ name }) => [name, nkeys.createAccount() as KeyPair]));
      return new Map(
        described.map((one, place) => {
          const limits = { ...UNLIMITED, ...(place === 0 && JETSTREAM) };
          return [one.name, usable(make(one.name, limits, exchangesOf(one, keys), keys.get(one.name)))];
        }),
      );
    },
    config: () =>
      [
        `operator: ${sign(operator, operator.getPublicKey(), 'operator', {
          type: 'operator',
          system_account: system.account.getPublicKey(),
        })}`,
        'resolver: MEMORY',
        'max_control_line: 16KB', // The JWT of a daemon is longer than the default of 4 KB.
        'resolver_preload {',
        ...[...preload].map(([key, jwt]) => `  ${key}: ${jwt}`),
        '}',
      ].join('\n'),
  };
}

const UNLIMITED = {
  subs: -1,
  data: -1,
  payload: -1,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
};

/** The values of `nsc edit account` in docs/guides/security.md: no memory. */
const JETSTREAM = {
  mem_storage: 0,
  disk_storage: 1024 ** 3,
  streams: -1,
  consumer: -1,
  mem_max_stream_bytes: -1,
  disk_max_stream_bytes: -1,
  max_ack_pending: -1,
};

/** The claims of `nsc add export` and `nsc add import` in docs/guides/security.md. */
function exchangesOf({ exports, imports }: Account, keys: ReadonlyMap<string, KeyPair>): object {
  return {
    exports: exports.map(({ kind, subject, isAnsweredByMany }) => ({
      name: subject,
      subject,
      type: kind,
      ...(kind === 'service' && {
        response_type: isAnsweredByMany ? 'Stream' : 'Singleton',
        response_threshold: 720 * 3_600 * 1e9, // ns
      }),
    })),
    imports: imports.map(({ kind, subject, from }) => ({
      name: subject,
      subject,
      type: kind,
      account: keys.get(from)?.getPublicKey(),
    })),
  };
}

const RESPONSES = { max: 1, ttl: 60_000_000_000 }; // ns

function credentials(
  account: KeyPair,
  name: string,
  { publish, subscribe, answers }: Permissions,
  { publicKey, seed }: UserKey,
  { expires }: JwtUserOptions,
): string {
  const limits = { subs: -1, data: -1, payload: -1 };
  const nats = {
    type: 'user',
    ...limits,
    pub: { allow: publish },
    sub: { allow: subscribe },
    ...(answers && { resp: RESPONSES }),
  };
  return [
    '-----BEGIN NATS USER JWT-----',
    sign(account, publicKey, name, nats, expires),
    '------END NATS USER JWT------',
    '',
    '-----BEGIN USER NKEY SEED-----',
    seed,
    '------END USER NKEY SEED------',
    '',
  ].join('\n');
}

function sign(issuer: KeyPair, subject: string, name: string, nats: object, expires?: Date): string {
  const claims = {
    jti: randomUUID(),
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    sub: subject,
    name,
    ...(expires && { exp: Math.floor(expires.getTime() / 1_000) }),
    nats: { ...nats, version: 2 },
  };
  const signed = [{ typ: 'JWT', alg: 'ed25519-nkey' }, claims].map(encode).join('.');
  const signature = Buffer.from(issuer.sign(Buffer.from(signed))).toString('base64url');
  return `${signed}.${signature}`;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

function userKey(pair: KeyPair): UserKey {
  return { publicKey: pair.getPublicKey(), seed: new TextDecoder().decode(pair.getSeed()) };
}
