import { NAME_PATTERN, SLUG_PATTERN } from '../conversation/index.ts';
import { ParleyError } from '../kernel/index.ts';

/**
 * Every subject and stream name.
 *
 * SUBJECTS-1 A token is validated before it becomes part of a subject: an agent named `a.>` cannot subscribe to everything.
 */

/** Wildcard for subscriptions; the only value that is not a name. */
export const ANY = '*';
/** In place of a daemon's id: for every daemon. */
export const EVERY_DAEMON = '_all';

const PREFIX_PATTERN = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

function token(value: string, pattern: RegExp, what: string): string {
  if (value === ANY || pattern.test(value)) return value;
  throw new ParleyError('INVALID_NAME', `${what} ${JSON.stringify(value)} is not allowed in a subject`, {
    hint: `use 1 to 128 letters, digits, _ or - (${pattern.source})`,
  });
}

export function createSubjects(prefix = 'parley') {
  if (!PREFIX_PATTERN.test(prefix)) {
    throw new ParleyError('CONFIG_INVALID', `subjectPrefix ${JSON.stringify(prefix)} is not a subject`, {
      hint: 'use letters, digits, _ and -, with dots between tokens',
    });
  }
  const stream = prefix.toUpperCase().replaceAll('.', '_');
  const conversationOf = (value: string) => token(value, NAME_PATTERN, 'conversation id');
  const publisherOf = (value: string) => token(value, NAME_PATTERN, 'publisher');
  const agentOf = (value: string) => token(value, SLUG_PATTERN, 'agent slug');
  const offerOf = (value: string) => token(value, NAME_PATTERN, 'offer');
  const namesOf = (publisher: string, conversation: string) =>
    `${publisherOf(publisher)}.${conversationOf(conversation)}`;
  return {
    prefix,
    ingressStream: `${stream}_IN`,
    deadStream: `${stream}_DEAD`,
    /** One message: which posts are settled (`settled.ts`). */
    settledStream: `${stream}_SETTLED`,
    settled: `${prefix}.settled`,
    /** The streams of the jetstream store: the logs, and the records of tool calls. */
    logStream: `${stream}_LOG`,
    auditStream: `${stream}_AUDIT`,
    /** The content of files, in pieces. */
    blobStream: `${stream}_BLOBS`,
    /** Buckets of the jetstream store: small documents, large outputs. */
    stateBucket: `${stream}_STATE`,
    outputBucket: `${stream}_OUTPUT`,
    service: prefix.replaceAll('.', '_'),
    /** `parley.in.<publisher>.<conversation>`: the messages of people. */
    in: (publisher: string, conversation: string) => `${prefix}.in.${namesOf(publisher, conversation)}`,
    log: (conversation: string) => `${prefix}.log.${conversationOf(conversation)}`,
    live: (conversation: string, agent: string) =>
      `${prefix}.live.${conversationOf(conversation)}.${agentOf(agent)}`,
    dead: (publisher: string, conversation: string) => `${prefix}.dead.${namesOf(publisher, conversation)}`,
    api: (endpoint: string, publisher?: string, conversation?: string) =>
      [
        `${prefix}.api.${endpoint}`,
        ...(publisher ? [publisherOf(publisher)] : []),
        ...(publisher && conversation ? [conversationOf(conversation)] : []),
      ].join('.'),
    audit: (conversation: string) => `${prefix}.audit.${conversationOf(conversation)}`,
    blob: (content: string) => `${prefix}.blob.${token(content, NAME_PATTERN, 'name of content')}`,
    /** Between daemons that share the work. */
    control: (daemon: string, verb: string) =>
      `${prefix}.control.${token(daemon, NAME_PATTERN, 'daemon')}.${verb}`,
    turn: (agent: string) => `${prefix}.agent.${agentOf(agent)}.turn`,
    /** To the daemon from the agent that took an offer, and the other way. */
    turnReply: (agent: string, offer: string) => `${prefix}.agent.${agentOf(agent)}.reply.${offerOf(offer)}`,
    turnControl: (agent: string, offer: string) =>
      `${prefix}.agent.${agentOf(agent)}.control.${offerOf(offer)}`,
    /** The publisher and conversation of an ingress subject, not validated; null for another subject. */
    parseIn: (subject: string) => namesAfter(`${prefix}.in.`, subject),
    /** The same of a dead letter's subject. */
    parseDead: (subject: string) => namesAfter(`${prefix}.dead.`, subject),
  };
}
export type Subjects = ReturnType<typeof createSubjects>;

/**
 * Restricts the subjects to which the daemon answers. A requester chooses the reply subject, but the server checks the
 * daemon's rights there, not the requester's.
 *
 * REPLY-SUBJECT-1  Only inboxes get an answer, and `_R_.>`, by which the server forwards it into another account. Only accounts of
 *          their own (`parley nats-config`) keep users from naming each other's inboxes.
 * REPLY-SUBJECT-2  A request with another reply subject is not executed.
 */
export function mayAnswerTo(reply: string): boolean {
  return /^(_INBOX|_R_)\../.test(reply);
}

export const REPLY_HINT = 'use a reply subject below _INBOX., as client libraries do';

/** Every stream, those of the buckets included. */
export function streamsOf(subjects: Subjects): string[] {
  const { ingressStream, deadStream, settledStream, logStream, auditStream, blobStream } = subjects;
  const buckets = [`KV_${subjects.stateBucket}`, `OBJ_${subjects.outputBucket}`];
  return [ingressStream, deadStream, settledStream, logStream, auditStream, blobStream, ...buckets];
}

function namesAfter(prefix: string, subject: string) {
  if (!subject.startsWith(prefix)) return null;
  const [publisher, conversation, ...rest] = subject.slice(prefix.length).split('.');
  return publisher && conversation && rest.length === 0 ? { publisher, conversation } : null;
}
