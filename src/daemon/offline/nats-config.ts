import {
  type Account,
  ANSWER_PATIENCE,
  inboxPrefixOf,
  type Permissions,
  permissionsOf,
  type User,
} from '../../bus/index.ts';
import { loadNatsUsers, type NatsUser, type NatsUsers } from '../../config/index.ts';
import { type NatsTenant, renderNscCommands, tenantsOf } from './nsc-commands.ts';

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
