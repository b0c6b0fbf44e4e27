import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { createSubjects, permissionsOf, type User } from '../../src/bus/index.ts';
import { type NatsConnection, type NatsOptions, openNats } from '../../src/bus/nats/index.ts';
import { type ClientOptions, connect, type ParleyClient } from '../../src/client/index.ts';
import { loadNatsUsers } from '../../src/config/index.ts';
import { natsConfig, tenantsOf } from '../../src/daemon/offline/nats-config.ts';
import { createJwtOperator, createUserKey, type UserKey } from './nats-jwt.ts';
import { startNatsServer, type TestNatsServer } from './nats-server.ts';
import { openProject, type Project, type ProjectOptions } from './project.ts';
import { hasLongTests } from './runs.ts';

/** bcrypt of `<name>-pw`, with the lowest cost. */
export const HASHES: Record<string, string> = {
  daemon: '$2b$05$OqYf59qOieyemJBcDoK4o.F8PGb2Rp/.mWzzxZESkJ5KnwFOgBQM.',
  alice: '$2b$05$APeRjghrTeblf/4MurCAR.Um7JPj5dWT6/1URxUjnqFrzUSC9dQzK',
  bob: '$2b$05$6jmTa9CbjpeS06XQ3wp.leXT7qjWniHwRtfeXGYpS2aQd0ECVOtV2',
  ops: '$2b$05$5kFR6J8IDHDG1etb4g992uRGkbIldI2Z2Ip8Hbadq1.lWC6ao2T1O',
  critic: '$2b$05$UMCbhcLlPwOY6qGXL7pgwehDokghj7vfMbu0.rlq2LbZqZ2kLE.ku',
};

/** How a server authenticates its users. */
export type UserKind = 'password' | 'nkey' | 'jwt';

/** Users of a server, and their credentials. */
export interface ServerUsers {
  /** Lines of the server's configuration. */
  readonly config: string;
  options(name: string, url: string): NatsOptions;
  /** The same as options of a command of Parley. */
  flags(name: string, url: string): string[];
}

/** `tenants`: roles of users by name, as in `users.yaml`. The last part of a name selects its password. */
export async function describeUsers(
  directory: string,
  kind: UserKind,
  tenants: Readonly<Record<string, Readonly<Record<string, object>>>>,
): Promise<ServerUsers> {
  const keys = new Map<string, UserKey>();
  const described = mapValues(tenants, (users) => ({
    users: mapValues(users, (user, name) => {
      const key = createUserKey();
      keys.set(name, key);
      return {
        ...user,
        ...(kind === 'password' ? { password: HASHES[plain(name)] } : { nkey: key.publicKey }),
      };
    }),
  }));
  const file = join(directory, 'users.yaml');
  await writeFile(file, JSON.stringify({ tenants: described }));
  const secret = (name: string) => join(directory, `${name}.secret`);
  for (const [name, { seed }] of keys)
    await writeFile(secret(name), kind === 'password' ? `${plain(name)}-pw` : seed);
  const config = kind === 'jwt' ? await issueCredentials(file, keys, secret) : await natsConfig(file);

  const own = (name: string): Partial<NatsOptions> => {
    if (kind === 'password') return { user: name, passwordFile: secret(name) };
    return kind === 'nkey' ? { nkey: secret(name) } : { credentials: secret(name) };
  };
  const options = (name: string, url: string) => ({ url, ...own(name), inboxPrefix: `_INBOX.${name}` });
  return {
    config,
    options,
    flags: (name, url) => flagsOf(options(name, url)),
  };
}

/** Issues credentials for the description that `parley nats-config` reads, with the same mapping from roles to subjects. */
async function issueCredentials(
  file: string,
  keys: ReadonlyMap<string, UserKey>,
  path: (name: string) => string,
): Promise<string> {
  const operator = createJwtOperator();
  for (const { accounts: described, subjects } of tenantsOf(await loadNatsUsers(file))) {
    const accounts = operator.accounts(described);
    for (const account of described)
      for (const user of account.users) {
        const issued = accounts.get(account.name);
        const permissions = permissionsOf(subjects, user);
        await writeFile(path(user.name), issued?.user(user.name, permissions, keys.get(user.name)) ?? '');
      }
  }
  return operator.config();
}

function flagsOf({ url, user, passwordFile, nkey, credentials, inboxPrefix }: NatsOptions): string[] {
  return Object.entries({
    '--nats': String(url),
    '--nats-user': user,
    '--nats-password-file': passwordFile,
    '--nats-nkey': nkey,
    '--nats-credentials': credentials,
    '--nats-inbox-prefix': inboxPrefix,
  }).flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
}

function plain(name: string): string {
  return name.slice(name.lastIndexOf('-') + 1);
}

function mapValues<From, To>(
  values: Readonly<Record<string, From>>,
  map: (value: From, name: string) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value, name)]));
}

/** Where a server has these users: in an account each, or, in long tests, also all in one. `root`: of a project. */
export const accountKinds = (users: readonly User[]) =>
  (
    [
      ['an account for each user', (root: string) => inOwnAccounts(root, users)],
      ['one account', async () => inOneAccount(users)],
    ] as const
  ).slice(0, hasLongTests ? 2 : 1);

/** The login of a user of such an account. */
export const loginOf = (url: string, name: string) => ({
  ...{ url, user: name, password: `${name}-pw`, inboxPrefix: `_INBOX.${name}` },
});

/** All users in one account, as an operator may have written it from the table of permissions. */
function inOneAccount(users: readonly User[]): string {
  const described = users.map((user) => {
    const { publish, subscribe } = permissionsOf(createSubjects(), user);
    const may = JSON.stringify([...publish, ...(user.role === 'daemon' ? ['_INBOX.>'] : [])]);
    const answers = user.role === 'agent' ? ', allow_responses: { max: 1, expires: "1m" }' : '';
    const permissions = `publish: { allow: ${may} }, subscribe: { allow: ${JSON.stringify(subscribe)} }${answers}`;
    return `{ user: ${user.name}, password: ${user.name}-pw, permissions: { ${permissions} } }`;
  });
  return `accounts { acme { jetstream: enabled, users: [${described.join(', ')}] } }`;
}

/** An account for each user, as `parley nats-config` writes it. */
async function inOwnAccounts(directory: string, users: readonly User[]): Promise<string> {
  const roles = users.map(({ name, ...user }) => [name, { ...user, slug: undefined }]);
  return (await describeUsers(directory, 'password', { acme: Object.fromEntries(roles) })).config;
}

/** Connections of one test. */
export interface Connections {
  connect(options: NatsOptions): Promise<NatsConnection>;
  /** All further messages on a subject. */
  listen(options: NatsOptions, subject: string): Promise<string[]>;
  /** The subjects, of those given, on which the server refuses this user's publishes and subscriptions. */
  refused(options: NatsOptions, publish: readonly string[], subscribe: readonly string[]): Promise<string[]>;
  close(): Promise<void>;
}

export function createConnections(): Connections {
  const open: NatsConnection[] = [];
  const connect = async (options: NatsOptions) => {
    const made = await openNats(options);
    open.push(made);
    return made;
  };
  return {
    connect,
    async listen(options, subject) {
      const made = await connect(options);
      const heard: string[] = [];
      made.subscribe(subject, {
        callback: (error, message) => void heard.push(error ? String(error) : message.string()),
      });
      await made.flush();
      return heard;
    },
    refused: async (options, publish, subscribe) => refusedOn(await connect(options), publish, subscribe),
    async close() {
      for (const one of open.splice(0)) await one.close();
    },
  };
}

async function refusedOn(
  made: NatsConnection,
  publish: readonly string[],
  subscribe: readonly string[],
): Promise<string[]> {
  const refused = new Set<string>();
  void (async () => {
    for await (const status of made.status()) {
      const context = status.permissionContext;
      if (context) refused.add(`${context.operation} ${context.subject}`);
    }
  })();
  for (const subject of publish) made.publish(subject, '');
  for (const subject of subscribe) made.subscribe(subject, { callback: () => undefined });
  await made.flush();
  await made.flush();
  await setImmediate();
  const isRefused = (operation: string) => (subject: string) => refused.has(`${operation} ${subject}`);
  return [...publish.filter(isRefused('publish')), ...subscribe.filter(isRefused('subscription'))];
}

/** A project whose daemon is one of the users of its nats-server, with connections of the others. */
export interface Guarded extends Project {
  readonly server: TestNatsServer;
  readonly users: ServerUsers;
  who(name: string): NatsOptions;
  /** Options of a command. */
  flags(name: string): string[];
  /** A bare connection. It is closed with the project, as those of `connections`. */
  connectAs(name: string): Promise<NatsConnection>;
  clientOf(name: string, requests?: ClientOptions['requests']): Promise<ParleyClient>;
  readonly connections: Connections;
}

/** `users`: roles by name, as in `users.yaml`. `args`: of the daemon. */
export async function startGuarded(
  options: ProjectOptions,
  users: Readonly<Record<string, object>>,
  ...args: readonly string[]
): Promise<Guarded> {
  const project = await openProject(options);
  const described = await describeUsers(project.root, 'password', { acme: users });
  const server = await startNatsServer({ config: described.config });
  project.defer(() => server.stop());
  const who = (name: string) => described.options(name, server.url);
  const flags = (name: string) => described.flags(name, server.url);
  await project.up(...args, ...flags('daemon'));
  const connections = createConnections();
  project.defer(() => connections.close());
  return Object.assign(project, {
    ...{ server, users: described, who, flags, connections },
    connectAs: (name: string) => connections.connect(who(name)),
    async clientOf(name: string, requests?: ClientOptions['requests']) {
      const client = await connect({ ...who(name), ...(requests && { requests }) });
      project.defer(() => client.close());
      return client;
    },
  });
}

/** An agent of the daemon, and one in another process. */
export const LEAD_AND_CRITIC = {
  lead: '---\nname: Lead\ndescription: leads\nphases: [chat]\n---\nLEAD',
  critic: '---\nname: Critic\ndescription: criticises\nruntime: bus\n---\nCRITIC',
};
