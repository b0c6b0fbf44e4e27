import { CONVERSATION_VERBS } from './contract.ts';
import { ANY, type Subjects, streamsOf } from './subjects.ts';

/**
 * Who may do what on the server: for each kind of user the subjects that it needs, and no others. Pure.
 *
 * PERMISSIONS-1 A name in a subject is bound to its user: no user posts, answers or speaks as another.
 *    Nor does it post into a conversation that its list does not name.
 * PERMISSIONS-2 JetStream is the daemon's alone: its API reads every log and writes any.
 * PERMISSIONS-3 Answers arrive at `_INBOX.<user>.>`, so no user receives those of another.
 * PERMISSIONS-4 Each user but the daemon has an account of its own. What it may exchange with the daemon's account is imported there
 *    (`accessOf`), so the subject that it names for an answer, of the daemon or of the server, is one of its own account.
 */

export type User =
  | { readonly role: 'daemon'; readonly name: string }
  /** May use every verb, and follow everything. */
  | { readonly role: 'operator'; readonly name: string }
  /** Answers under its own name; posts into the conversations that are listed, or all, and follows them. */
  | {
      readonly role: 'publisher';
      readonly name: string;
      readonly conversations: readonly string[] | 'all';
    }
  /** An agent in another process. */
  | { readonly role: 'agent'; readonly name: string; readonly slug: string };

export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
  /** May answer each request that it receives, once and within a time limit. */
  readonly answers: boolean;
}

export function inboxPrefixOf(name: string): string {
  return `_INBOX.${name}`;
}

/** What a user and the daemon exchange, each subject as both know it (PERMISSIONS-4). */
interface Access {
  /** Requests and messages of the user to the daemon. */
  readonly sends: readonly string[];
  /** What the user may follow. */
  readonly receives: readonly string[];
  /** Requests of the daemon that the user answers. */
  readonly serves: readonly string[];
}

type Guest = Exclude<User, { readonly role: 'daemon' }>;

/** What the daemon publishes of conversations. */
function feedsOf(subjects: Subjects): string[] {
  return [subjects.log(ANY), subjects.live(ANY, ANY), subjects.audit(ANY), subjects.dead(ANY, ANY)];
}

function accessOf(subjects: Subjects, user: Guest): Access {
  switch (user.role) {
    case 'operator':
      return {
        sends: [`${subjects.prefix}.api.>`, '$SRV.>'],
        receives: feedsOf(subjects),
        serves: [],
      };
    case 'publisher': {
      const listed = user.conversations === 'all' ? [ANY] : user.conversations;
      return {
        sends: [
          ...listed.map((conversation) => subjects.in(user.name, conversation)),
          ...[...CONVERSATION_VERBS].flatMap((verb) => [
            ...listed.map((conversation) => subjects.api(verb, user.name, conversation)),
            ...(user.conversations === 'all' ? [subjects.api(verb, user.name)] : []),
          ]),
          ...[subjects.api('upload', user.name), subjects.api('answer', user.name)],
        ],
        receives: [
          subjects.dead(user.name, ANY),
          ...listed.map((conversation) => subjects.log(conversation)),
          ...listed.map((conversation) => subjects.live(conversation, ANY)),
        ],
        serves: [],
      };
    }
    case 'agent':
      return {
        // A file is read by its hash, which only the offers of its conversation tell.
        sends: [
          ...[subjects.turnReply(user.slug, ANY), subjects.api('upload', user.slug)],
          subjects.api('blob', user.slug, ANY),
        ],
        receives: [subjects.turnControl(user.slug, ANY)],
        serves: [subjects.turn(user.slug)],
      };
  }
}

export function permissionsOf(subjects: Subjects, user: User): Permissions {
  const inbox = `${inboxPrefixOf(user.name)}.>`;
  if (user.role === 'daemon') return daemonPermissions(subjects, inbox);
  const { sends, receives, serves } = accessOf(subjects, user);
  return {
    publish: sends,
    subscribe: [inbox, ...serves, ...receives],
    answers: serves.length > 0,
  };
}

function daemonPermissions(subjects: Subjects, inbox: string): Permissions {
  const { prefix } = subjects;
  return {
    publish: [
      subjects.in(ANY, ANY),
      ...feedsOf(subjects),
      subjects.settled,
      subjects.blob(ANY),
      `${prefix}.agent.*.*`,
      `${prefix}.agent.*.*.*`,
      `${prefix}.control.>`,
      `${prefix}.api.>`, // of the commands on this machine, which find its address in the data directory
      inbox, // of the commands on this machine, and of other daemons
      '_R_.>', // PERMISSIONS-4: by these the server carries answers into the accounts of users
      '$SRV.>',
      `$KV.${subjects.stateBucket}.>`,
      `$O.${subjects.outputBucket}.>`,
      '$JS.API.INFO',
      '$JS.API.STREAM.NAMES', // which stream holds a subject: of large outputs, when they are read
      ...streamsOf(subjects).flatMap(jetStreamOf),
      `$JS.API.STREAM.MSG.DELETE.${subjects.deadStream}`, // a refused post that was posted again
      `$JS.API.STREAM.MSG.DELETE.${subjects.ingressStream}`, // posts of a deleted conversation
      '$JS.FC.>',
    ],
    subscribe: [
      inbox,
      `${prefix}.api.>`,
      `${prefix}.agent.*.reply.*`,
      `${prefix}.control.>`,
      subjects.log(ANY), // where daemons share logs, each one follows the appends of all
      subjects.live(ANY, ANY),
      '$SRV.>',
    ],
    answers: false,
  };
}

/** Everything about one stream but its deletion, its snapshots and its place in a cluster. */
function jetStreamOf(stream: string): string[] {
  const api = '$JS.API';
  return [
    ...['INFO', 'CREATE', 'UPDATE', 'PURGE', 'MSG.GET'].map((verb) => `${api}.STREAM.${verb}.${stream}`),
    `${api}.DIRECT.GET.${stream}`,
    `${api}.DIRECT.GET.${stream}.>`,
    `${api}.CONSUMER.CREATE.${stream}`,
    `${api}.CONSUMER.CREATE.${stream}.>`,
    ...['DURABLE.CREATE', 'INFO', 'DELETE', 'MSG.NEXT'].map((verb) => `${api}.CONSUMER.${verb}.${stream}.*`),
    `$JS.ACK.${stream}.>`,
  ];
}

/** How long the server keeps the route of an answer between two accounts: an agent's call may wait for an approval. */
export const ANSWER_PATIENCE = '720h';

interface Export {
  readonly kind: 'service' | 'stream';
  readonly subject: string;
  /** True of a service whose requests several may answer. */
  readonly isAnsweredByMany: boolean;
}

/** `from`: name of the account that exports it. */
type Import = Pick<Export, 'kind' | 'subject'> & { readonly from: string };

export interface Account {
  readonly name: string;
  readonly users: readonly User[];
  readonly exports: readonly Export[];
  readonly imports: readonly Import[];
}

/**
 * The accounts of one tenant (PERMISSIONS-4): first the daemon's, which has the tenant's name and the streams, then one
 * for each other user. Agents of one slug share one, since each request goes to one of them.
 */
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
    ...[...feedsOf(subjects), subjects.turnControl(ANY, ANY)].map(stream),
  ];
}

function service(subject: string): Export {
  return { kind: 'service', subject, isAnsweredByMany: false };
}

function stream(subject: string): Export {
  return { kind: 'stream', subject, isAnsweredByMany: false };
}

function imported(kind: Import['kind'], from: string) {
  return (subject: string): Import => ({ kind, subject, from });
}
