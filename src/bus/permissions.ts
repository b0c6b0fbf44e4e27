import { ANY, type Subjects, streamsOf } from './subjects.ts';

/**
 * Who may do what on the server: for each kind of user the subjects that it needs, and no others. Pure.
 *
 * U1 A name in a subject is bound to its user: nobody posts, answers or speaks as another.
 * U2 JetStream is the daemon's alone: whoever may use its API reads every log and writes any.
 * U3 Answers come to `_INBOX.<user>.>`, so that nobody hears another's. Only the daemon answers into all of them.
 */

export type User =
  | { readonly role: 'daemon'; readonly name: string }
  /** May use every verb, and follow everything. */
  | { readonly role: 'operator'; readonly name: string }
  /** Posts and answers under its own name; follows the conversations that are listed, or all. */
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
  /** May answer each request that it hears, once and soon. */
  readonly answers: boolean;
}

export function inboxPrefixOf(name: string): string {
  return `_INBOX.${name}`;
}

export function permissionsOf(subjects: Subjects, user: User): Permissions {
  const inbox = `${inboxPrefixOf(user.name)}.>`;
  switch (user.role) {
    case 'daemon':
      return daemonPermissions(subjects, inbox);
    case 'operator':
      return {
        publish: [`${subjects.prefix}.api.>`, '$SRV.>'],
        subscribe: [
          inbox,
          subjects.log(ANY),
          subjects.live(ANY, ANY),
          subjects.audit(ANY),
          subjects.dead(ANY, ANY),
        ],
        answers: false,
      };
    case 'publisher': {
      const followed = user.conversations === 'all' ? [ANY] : user.conversations;
      return {
        publish: [
          subjects.in(user.name, ANY),
          subjects.api('post', user.name),
          subjects.api('answer', user.name),
        ],
        subscribe: [
          inbox,
          subjects.dead(user.name, ANY),
          ...followed.map((conversation) => subjects.log(conversation)),
          ...followed.map((conversation) => subjects.live(conversation, ANY)),
        ],
        answers: false,
      };
    }
    case 'agent':
      return {
        publish: [subjects.turnReply(user.slug, ANY), subjects.live(ANY, user.slug)],
        subscribe: [inbox, subjects.turn(user.slug), subjects.turnControl(user.slug, ANY)],
        answers: true, // to the offer of a turn, which comes from the daemon's inbox
      };
  }
}

function daemonPermissions(subjects: Subjects, inbox: string): Permissions {
  const { prefix } = subjects;
  return {
    publish: [
      subjects.in(ANY, ANY),
      subjects.log(ANY),
      subjects.live(ANY, ANY),
      subjects.audit(ANY),
      subjects.dead(ANY, ANY),
      subjects.settled,
      `${prefix}.agent.*.*`,
      `${prefix}.agent.*.*.*`,
      `${prefix}.control.>`,
      `${prefix}.api.>`, // of the commands beside it, which find its address in the data directory
      '_INBOX.>', // U3
      '$SRV.>',
      `$KV.${subjects.stateBucket}.>`,
      `$O.${subjects.outputBucket}.>`,
      '$JS.API.INFO',
      '$JS.API.STREAM.NAMES', // which stream holds a subject: of large outputs, when they are read
      ...streamsOf(subjects).flatMap(jetStreamOf),
      `$JS.API.STREAM.MSG.DELETE.${subjects.deadStream}`, // a refused post that was posted again
      `$JS.API.STREAM.MSG.DELETE.${subjects.ingressStream}`, // settled posts, where several daemons read them
      '$JS.FC.>',
    ],
    subscribe: [
      inbox,
      `${prefix}.api.>`,
      `${prefix}.agent.*.reply.*`,
      `${prefix}.control.>`,
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
    ...['INFO', 'CREATE', 'UPDATE', 'PURGE'].map((verb) => `${api}.STREAM.${verb}.${stream}`),
    `${api}.STREAM.MSG.GET.${stream}`,
    `${api}.DIRECT.GET.${stream}`,
    `${api}.DIRECT.GET.${stream}.>`,
    `${api}.CONSUMER.CREATE.${stream}`,
    `${api}.CONSUMER.CREATE.${stream}.>`,
    `${api}.CONSUMER.DURABLE.CREATE.${stream}.*`,
    `${api}.CONSUMER.INFO.${stream}.*`,
    `${api}.CONSUMER.DELETE.${stream}.*`,
    `${api}.CONSUMER.MSG.NEXT.${stream}.*`,
    `$JS.ACK.${stream}.>`,
  ];
}
