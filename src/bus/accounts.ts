import { type Access, accessOf, type User } from './permissions.ts';
import { ANY, type Subjects } from './subjects.ts';

/**
 * The accounts of one tenant (PERMISSIONS-4): the daemon's, which has the tenant's name and the streams, and one
 * for each other user. Agents of one slug share one, since each request goes to one of them.
 */

/** How long the server keeps the route of an answer between two accounts: an agent's call may wait for an approval. */
export const ANSWER_PATIENCE = '720h';

export interface Export {
  readonly kind: 'service' | 'stream';
  readonly subject: string;
  /** Of a service: several may answer one request. */
  readonly isAnsweredByMany: boolean;
}

export interface Import {
  readonly kind: 'service' | 'stream';
  readonly subject: string;
  /** Name of the account that exports it. */
  readonly from: string;
}

export interface Account {
  readonly name: string;
  readonly users: readonly User[];
  readonly exports: readonly Export[];
  readonly imports: readonly Import[];
}

/** The daemon's account comes first. */
export function accountsOf(tenant: string, subjects: Subjects, users: readonly User[]): Account[] {
  const guests = new Map<string, { readonly users: User[]; readonly access: Access }>();
  for (const user of users) {
    if (user.role === 'daemon') continue;
    const name = `${tenant}.${user.role}.${user.role === 'agent' ? user.slug : user.name}`;
    const known = guests.get(name) ?? { users: [], access: accessOf(subjects, user) };
    known.users.push(user);
    guests.set(name, known);
  }
  const each = [...guests].map(([name, guest]) => ({ name, ...guest }));
  const daemon: Account = {
    name: tenant,
    users: users.filter(({ role }) => role === 'daemon'),
    exports: daemonExports(subjects),
    imports: each.flatMap(({ name, access }) => access.serves.map(imported('service', name))),
  };
  const others = each.map(
    ({ name, users: own, access }): Account => ({
      name,
      users: own,
      exports: access.serves.map(service),
      imports: [
        ...access.sends.map(imported('service', tenant)),
        ...access.receives.map(imported('stream', tenant)),
      ],
    }),
  );
  return [daemon, ...others];
}

/** All that a user can be given. A user has what its account imports. No subject contains another. */
function daemonExports(subjects: Subjects): Export[] {
  const { prefix } = subjects;
  return [
    ...[subjects.in(ANY, ANY), `${prefix}.api.>`, subjects.turnReply(ANY, ANY)].map(service),
    { kind: 'service', subject: '$SRV.>', isAnsweredByMany: true },
    ...[
      subjects.log(ANY),
      subjects.live(ANY, ANY),
      subjects.audit(ANY),
      subjects.dead(ANY, ANY),
      subjects.turnControl(ANY, ANY),
    ].map((subject): Export => ({ kind: 'stream', subject, isAnsweredByMany: false })),
  ];
}

function service(subject: string): Export {
  return { kind: 'service', subject, isAnsweredByMany: false };
}

function imported(kind: Import['kind'], from: string) {
  return (subject: string): Import => ({ kind, subject, from });
}
