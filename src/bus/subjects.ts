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

interface Names {
  readonly publisher: string;
  readonly conversation: string;
}

export interface Subjects {
  readonly prefix: string;
  readonly ingressStream: string;
  readonly deadStream: string;
  /** One message: which posts are settled (`settled.ts`). */
  readonly settledStream: string;
  readonly settled: string;
  /** The streams of the jetstream store: the logs, and the records of tool calls. */
  readonly logStream: string;
  readonly auditStream: string;
  /** The content of files, in pieces. */
  readonly blobStream: string;
  /** Buckets of the jetstream store: small documents, large outputs. */
  readonly stateBucket: string;
  readonly outputBucket: string;
  readonly service: string;
  in(publisher: string, conversation: string): string;
  log(conversation: string): string;
  live(conversation: string, agent: string): string;
  dead(publisher: string, conversation: string): string;
  api(endpoint: string, publisher?: string, conversation?: string): string;
  audit(conversation: string): string;
  blob(content: string): string;
  /** Between daemons that share the work. */
  control(daemon: string, verb: string): string;
  turn(agent: string): string;
  /** To the daemon from the agent that took an offer, and the other way. */
  turnReply(agent: string, offer: string): string;
  turnControl(agent: string, offer: string): string;
  /** The publisher and conversation of an ingress subject, not validated; null for another subject. */
  parseIn(subject: string): Names | null;
  /** The same of a dead letter's subject. */
  parseDead(subject: string): Names | null;
}

const PREFIX_PATTERN = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

function token(value: string, pattern: RegExp, what: string): string {
  if (value === ANY || pattern.test(value)) return value;
  throw new ParleyError('INVALID_NAME', `${what} ${JSON.stringify(value)} is not allowed in a subject`, {
    hint: `use 1 to 128 letters, digits, _ or - (${pattern.source})`,
  });
}

export function createSubjects(prefix = 'parley'): Subjects {
  if (!PREFIX_PATTERN.test(prefix)) {
    throw new ParleyError('CONFIG_INVALID', `subjectPrefix ${JSON.stringify(prefix)} is not a subject`, {
      hint: 'use letters, digits, _ and -, with dots between tokens',
    });
  }
  const stream = prefix.toUpperCase().replaceAll('.', '_');
  const conversationToken = (value: string) => token(value, NAME_PATTERN, 'conversation id');
  const publisherToken = (value: string) => token(value, NAME_PATTERN, 'publisher');
  const agentToken = (value: string) => token(value, SLUG_PATTERN, 'agent slug');
  const offerToken = (value: string) => token(value, NAME_PATTERN, 'offer');
  const inPrefix = `${prefix}.in.`;
  const deadPrefix = `${prefix}.dead.`;
  return {
    prefix,
    ingressStream: `${stream}_IN`,
    deadStream: `${stream}_DEAD`,
    settledStream: `${stream}_SETTLED`,
    settled: `${prefix}.settled`,
    logStream: `${stream}_LOG`,
    auditStream: `${stream}_AUDIT`,
    blobStream: `${stream}_BLOBS`,
    stateBucket: `${stream}_STATE`,
    outputBucket: `${stream}_OUTPUT`,
    service: prefix.replaceAll('.', '_'),
    in: (publisher, conversation) =>
      `${inPrefix}${publisherToken(publisher)}.${conversationToken(conversation)}`,
    log: (conversation) => `${prefix}.log.${conversationToken(conversation)}`,
    live: (conversation, agent) => `${prefix}.live.${conversationToken(conversation)}.${agentToken(agent)}`,
    dead: (publisher, conversation) =>
      `${deadPrefix}${publisherToken(publisher)}.${conversationToken(conversation)}`,
    api: (endpoint, publisher, conversation) =>
      [
        `${prefix}.api.${endpoint}`,
        ...(publisher ? [publisherToken(publisher)] : []),
        ...(publisher && conversation ? [conversationToken(conversation)] : []),
      ].join('.'),
    audit: (conversation) => `${prefix}.audit.${conversationToken(conversation)}`,
    blob: (content) => `${prefix}.blob.${token(content, NAME_PATTERN, 'name of content')}`,
    control: (daemon, verb) => `${prefix}.control.${token(daemon, NAME_PATTERN, 'daemon')}.${verb}`,
    turn: (agent) => `${prefix}.agent.${agentToken(agent)}.turn`,
    turnReply: (agent, offer) => `${prefix}.agent.${agentToken(agent)}.reply.${offerToken(offer)}`,
    turnControl: (agent, offer) => `${prefix}.agent.${agentToken(agent)}.control.${offerToken(offer)}`,
    parseIn: (subject) => namesAfter(inPrefix, subject),
    parseDead: (subject) => namesAfter(deadPrefix, subject),
  };
}

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

function namesAfter(prefix: string, subject: string): Names | null {
  if (!subject.startsWith(prefix)) return null;
  const [publisher, conversation, ...rest] = subject.slice(prefix.length).split('.');
  return publisher && conversation && rest.length === 0 ? { publisher, conversation } : null;
}
