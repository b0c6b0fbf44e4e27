import { createSubjects, inboxPrefixOf, type Permissions, permissionsOf, type User } from '../bus/index.ts';
import { loadNatsUsers, type NatsUser, type NatsUsers } from '../config/index.ts';

/** The configuration of a nats-server whose users may do what they need and nothing else. */

export async function natsConfig(file: string): Promise<string> {
  return renderNatsConfig(await loadNatsUsers(file));
}

export function renderNatsConfig({ server, tenants }: NatsUsers): string {
  const accounts = Object.entries(tenants).flatMap(([name, tenant]) => renderTenant(name, tenant));
  const lines = [
    '# Made by `parley nats-config`. Each user sets its inbox prefix: --nats-inbox-prefix, or inboxPrefix.',
    ...(server ? renderServer(server) : []),
    'accounts {',
    ...accounts.map((line) => `  ${line}`),
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
    '# A hung client is let go after 10 s, one that reads too slowly after 5 s.',
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

function renderTenant(account: string, { prefix, disk, users }: NatsUsers['tenants'][string]): string[] {
  const subjects = createSubjects(prefix);
  const jetstream = disk === undefined ? 'enabled' : `{ max_file: ${disk} }`;
  return [
    `${quote(account)} {`,
    `  jetstream: ${jetstream}`,
    '  users: [',
    ...Object.entries(users).flatMap(([name, user]) => {
      const permissions = permissionsOf(subjects, userOf(name, user));
      return renderUser(name, user, permissions).map((line) => `    ${line}`);
    }),
    '  ]',
    '}',
  ];
}

/** The user of the bus that a described one is, whatever the server knows it by. */
export function userOf(name: string, { role, conversations = [], slug = name }: NatsUser): User {
  if (role === 'publisher') return { role, name, conversations };
  if (role === 'agent') return { role, name, slug };
  return { role, name };
}

function renderUser(name: string, { role, password, nkey }: NatsUser, permissions: Permissions): string[] {
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
