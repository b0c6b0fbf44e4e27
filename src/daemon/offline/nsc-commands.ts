import {
  type Account,
  ANSWER_PATIENCE,
  accountsOf,
  createSubjects,
  permissionsOf,
  type Subjects,
  type User,
} from '../../bus/index.ts';
import type { NatsUser, NatsUsers } from '../../config/index.ts';

/** The accounts and users of `nats-config.ts` as nsc commands. nsc creates the nkey of a user that has none. */
export function renderNscCommands(tenants: readonly NatsTenant[]): string {
  return [
    '#!/bin/sh -eu',
    '# Made by `parley nats-config --nsc`. Each user sets its inbox prefix: --nats-inbox-prefix, or inboxPrefix.',
    `id() { nsc describe account "$1" --field sub | tr -d '"'; }`,
    ...tenants.flatMap(renderTenant),
  ].join('\n');
}

function renderTenant(tenant: NatsTenant): string[] {
  const { name, disk, accounts } = tenant;
  const storage = disk === undefined ? '-1' : disk.replace(/B$/, '');
  return [
    ...accounts.map((account) => `nsc add account ${account.name}`),
    `nsc edit account ${name} --js-disk-storage ${storage} --js-streams -1 --js-consumer -1`,
    ...accounts.flatMap((account) => account.exports.map((one) => renderExport(account, one))),
    ...accounts.flatMap((account) => account.imports.map((one) => renderImport(account, one))),
    ...accounts.flatMap((account) => renderUsers(tenant, account)),
  ];
}

function renderUsers({ subjects, described }: NatsTenant, account: Account): string[] {
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

function renderExport(
  account: Account,
  { kind, subject, isAnsweredByMany }: Account['exports'][number],
): string {
  const type = isAnsweredByMany ? 'Stream' : 'Singleton';
  const answers =
    kind === 'service' ? ` --service --response-type ${type} --response-threshold ${ANSWER_PATIENCE}` : '';
  return `nsc add export --account ${account.name} --subject '${subject}'${answers}`;
}

function renderImport(account: Account, { kind, subject, from }: Account['imports'][number]): string {
  const service = kind === 'service' ? ' --service' : '';
  return `nsc add import --account ${account.name} --src-account "$(id ${from})" --remote-subject '${subject}'${service}`;
}

/** A tenant with its accounts, for both output formats. */
export interface NatsTenant {
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
