import {
  type Account,
  ANSWER_PATIENCE,
  accountsOf,
  createSubjects,
  inboxPrefixOf,
  type Permissions,
  permissionsOf,
  type Subjects,
  type User,
} from '../../bus/index.ts';
import { loadNatsUsers, type NatsUser, type NatsUsers } from '../../config/index.ts';
/**
 * Renders the configuration of a nats-server with least-privilege users. `isNsc`: as nsc commands, for a server with JWT
 * users. Throws `CONFIG_INVALID`.
 */
export async function natsConfig(file: string, isNsc = false): Promise<string> {
  const users = await loadNatsUsers(file);
  return isNsc ? renderNscCommands(tenantsOf(users)) : renderNatsConfig(users);
}

function renderNatsConfig(users: NatsUsers): string {
  const lines = [
    '# Made by `parley nats-config`. Each user sets its inbox prefix: --nats-inbox-prefix, or inboxPrefix.',
    ...(users.server ? renderServer(users.server) : []),
    'accounts {',
    ...tenantsOf(users)
      .flatMap(renderTenant)
      .map((line) => `  ${line}`),
    '}',
  ];
  return lines.join('\n');
}

type ServerFile = NonNullable<NatsUsers['server']>;

function renderServer({ listen, store, disk, sync, tls }: ServerFile): string[] {
  const jetstream = [
    ...(store === undefined ? [] : [`store_dir: ${quote(store)}`]),
    ...(disk === undefined ? [] : [`max_file: ${disk}`]),
    ...(sync === undefined ? [] : [`sync_interval: ${quote(sync)}`]),
  ];
  return [
    `listen: ${quote(listen)}`,
    'max_payload: 1MB',
    '# A hung client is disconnected after 10 s, one that reads too slowly after 5 s.',
    'ping_interval: "5s"',
    'ping_max: 2',
    'write_deadline: "5s"',
    ...(sync === undefined
      ? ['# From 2.10 on set sync: always, unless losing the last minutes to a power cut is fine.']
      : []),
    `jetstream { ${jetstream.join(', ')} }`,
    ...(tls ? [renderTls(tls)] : []),
  ];
}

function renderTls({ cert, key, ca, verify }: NonNullable<ServerFile['tls']>): string {
  const files = [`cert_file: ${quote(cert)}`, `key_file: ${quote(key)}`];
  if (ca !== undefined) files.push(`ca_file: ${quote(ca)}`);
  return `tls { ${files.join(', ')}, verify: ${verify} }`;
}

function renderTenant({ name, disk, subjects, accounts, described }: NatsTenant): string[] {
  const jetstream = disk === undefined ? 'enabled' : `{ max_file: ${disk} }`;
  return accounts.flatMap((account) => [
    `${quote(account.name)} {`,
    ...(account.name === name ? [`  jetstream: ${jetstream}`] : []),
    ...block(
      'users',
      account.users.flatMap((user) => renderUser(user, described[user.name], permissionsOf(subjects, user))),
    ),
    ...block('exports', account.exports.map(renderExport)),
    ...block('imports', account.imports.map(renderImport)),
    '}',
  ]);
}

function block(name: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`  ${name}: [`, ...lines.map((line) => `    ${line}`), '  ]'];
}

function renderExport({ kind, subject, isAnsweredByMany }: Account['exports'][number]): string {
  const type = isAnsweredByMany ? 'stream' : 'singleton';
  const answers =
    kind === 'service' ? `, response_type: ${type}, response_threshold: ${quote(ANSWER_PATIENCE)}` : '';
  return `{ ${kind}: ${quote(subject)}${answers} }`;
}

function renderImport({ kind, subject, from }: Account['imports'][number]): string {
  return `{ ${kind}: { account: ${quote(from)}, subject: ${quote(subject)} } }`;
}

function renderUser(
  { name, role }: User,
  { password, nkey }: Partial<NatsUser> = {},
  permissions: Permissions,
): string[] {
  const who =
    nkey === undefined ? `user: ${quote(name)}, password: ${quote(password ?? '')}` : `nkey: ${nkey}`;
  return [
    `# ${role} ${name}; inbox prefix ${inboxPrefixOf(name)}`,
    `{ ${who}, permissions: {`,
    `    publish: { allow: [${permissions.publish.map(quote).join(', ')}] }`,
    `    subscribe: { allow: [${permissions.subscribe.map(quote).join(', ')}] }`,
    ...(permissions.answers ? ['    allow_responses: { max: 1, expires: "1m" }'] : []),
    '} }',
  ];
}

/** The server's own escapes are a subset of JSON's. */
function quote(text: string): string {
  return JSON.stringify(text);
}

/** The same accounts and users as nsc commands. nsc creates the nkey of a user that has none. */
function renderNscCommands(tenants: readonly NatsTenant[]): string {
  return [
    '#!/bin/sh -eu',
    '# Made by `parley nats-config --nsc`. Each user sets its inbox prefix: --nats-inbox-prefix, or inboxPrefix.',
    `id() { nsc describe account "$1" --field sub | tr -d '"'; }`,
    ...tenants.flatMap(nscTenant),
  ].join('\n');
}

function nscTenant(tenant: NatsTenant): string[] {
  const { name, disk, accounts } = tenant;
  const storage = disk === undefined ? '-1' : disk.replace(/B$/, '');
  return [
    ...accounts.map((account) => `nsc add account ${account.name}`),
    `nsc edit account ${name} --js-disk-storage ${storage} --js-streams -1 --js-consumer -1`,
    ...accounts.flatMap((account) => account.exports.map((one) => nscExport(account, one))),
    ...accounts.flatMap((account) => account.imports.map((one) => nscImport(account, one))),
    ...accounts.flatMap((account) => nscUsers(tenant, account)),
  ];
}

function nscUsers({ subjects, described }: NatsTenant, account: Account): string[] {
  return account.users.map((user) => {
    const { publish, subscribe, answers } = permissionsOf(subjects, user);
    const nkey = described[user.name]?.nkey;
    return [
      `nsc add user --account ${account.name} ${user.name}`,
      ...(nkey === undefined ? [] : [`--public-key ${nkey}`]),
      `--allow-pub '${publish.join(',')}'`,
      `--allow-sub '${subscribe.join(',')}'`,
      ...(answers ? ['--allow-pub-response=1 --response-ttl 1m'] : []),
    ].join(' ');
  });
}

function nscExport(
  account: Account,
  { kind, subject, isAnsweredByMany }: Account['exports'][number],
): string {
  const type = isAnsweredByMany ? 'Stream' : 'Singleton';
  const answers =
    kind === 'service' ? ` --service --response-type ${type} --response-threshold ${ANSWER_PATIENCE}` : '';
  return `nsc add export --account ${account.name} --subject '${subject}'${answers}`;
}

function nscImport(account: Account, { kind, subject, from }: Account['imports'][number]): string {
  const service = kind === 'service' ? ' --service' : '';
  return `nsc add import --account ${account.name} --src-account "$(id ${from})" --remote-subject '${subject}'${service}`;
}

/** A tenant with its accounts, for both output formats. */
interface NatsTenant {
  readonly name: string;
  readonly disk: string | undefined;
  readonly subjects: Subjects;
  readonly accounts: readonly Account[];
  /** By the names of the users. */
  readonly described: Readonly<Record<string, NatsUser>>;
}

export function tenantsOf({ tenants }: NatsUsers): NatsTenant[] {
  return Object.entries(tenants).map(([name, { prefix, disk, users: described }]) => {
    const subjects = createSubjects(prefix);
    const users = Object.entries(described).map(([userName, user]) => userOf(userName, user));
    return { name, disk, subjects, accounts: accountsOf(name, subjects, users), described };
  });
}

/** Converts a described user to a user of the bus. */
function userOf(name: string, { role, conversations = [], slug = name }: NatsUser): User {
  if (role === 'publisher') return { role, name, conversations };
  if (role === 'agent') return { role, name, slug };
  return { role, name };
}
