import {
  type CallersCall,
  contentOf,
  type Entry,
  KEPT_FILE,
  type MessageEntry,
  quotedLines,
  wireCallId,
} from '../../conversation/index.ts';
import { cut } from '../../kernel/index.ts';
import { callerCallId, callWithId, digest, openCallsOf } from '../client-ids.ts';
import { refusedField } from '../fields.ts';
import { type SentPart, withoutAddresses } from '../files.ts';
import type { GatewayPort } from '../port.ts';
import { ask, conversationRows, orElse, type Row, readLog, readTail } from '../progress/ask.ts';
import { approvalNotice, lastResult, Reply } from './reply.ts';
import { type ChatRequest, digestOf, type Past, plainText } from './request.ts';

/**
 * Finds the conversation of a request. It is derived from the logs, so a restart changes nothing.
 *
 * PICK-1  The one that the client names: the header, or `metadata.conversation`.
 * PICK-2  Else one that began with the same words of the same caller, and whose newest exchange is the end of the
 *         request's history. Its id begins with a digest of both, so other callers' are never read. A seal in the id
 *         proves that `/v1` made it for this caller: conversations that others begin under ids like it take no place.
 * PICK-3  Else a new one, which begins with the history of the request.
 * PICK-4  The same request is a repetition, posted once, if it has the idempotency key of the first one. Without a key it has
 *         the same instructions, schema and tools, too, and: the client says that it is a retry; it has a history, and the
 *         first one is being answered; or the first one failed in the last minutes: clients repeat what fails. Later it is a
 *         new attempt in the same conversation.
 * PICK-5  Daemons that share the work do not wait for one another. What may be a repetition has ids that follow from the
 *         request and from the log before it: where two daemons place it at the same time, the log takes it once.
 * PICK-6  Only posts of this caller count, in every log: an id can be read and used by others, and so can `meta.chat`.
 * PICK-7  The instructions of the caller are part of a post unless its post before came with the same ones.
 * PICK-9  Results belong to the conversation of this caller in which calls with these ids were made, whatever else the request's
 *         history says.
 * PICK-8  A message with files is compared by a digest that includes those of their bytes: what was sent before is neither
 *         stored nor fetched again.
 */

export interface Picked {
  readonly conversation: string;
  /** The id of the post; one that is in the log is repeated. */
  readonly id: string;
  /** The post: that of the caller, and its instructions (PICK-7). */
  readonly parts: readonly SentPart[];
  readonly meta: ChatMeta;
  /** What the conversation is to begin with. */
  readonly seed: readonly Past[];
  /** Open calls of this caller, which it leaves with this message, and their results in the request. */
  readonly unanswered: readonly AnsweredCall[];
}

/** A call of a tool that the caller brought. */
export interface AnsweredCall {
  readonly asked: MessageEntry;
  readonly position: number;
  /** Absent: the request has no result of it. */
  readonly parts?: readonly SentPart[] | undefined;
}

/** What a post keeps about its request. */
export interface ChatMeta {
  readonly model: string;
  readonly caller: string;
  /** Digest of the history that it came with. */
  readonly history: string;
  readonly key?: string;
  /** Digest of the caller's instructions. */
  readonly instructions?: string;
  /** Digest of the schema and the tools that the request brought, if any. */
  readonly form?: string;
  /** Length of the caller's own text, if the content has instructions after it. */
  readonly length?: number;
  /** PICK-8: of a message with files. */
  readonly asked?: string;
}

/** Maximum of candidate conversations that are read, newest first. */
const MOST_CANDIDATES = 100;
/** The most conversations that a request without a history may repeat. */
const MOST_REPEATED = 5;
const SEAL_LENGTH = 16;
/** PICK-4. Clients give up before: the most patient ones repeat for two minutes. */
const REPEATED_MS = 300_000;

export interface Asked extends ChatRequest {
  readonly newId: () => string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Agents that have a schema for their answers. */
  readonly typed: ReadonlySet<string>;
}

/** PICK-9. Where results belong: the calls in their order. Throws if no conversation of this caller has all of them. */
export async function pickCalls(daemon: GatewayPort, request: ChatRequest) {
  const { conversation, results } = request;
  const found = conversation === null ? (await conversationsOf(daemon, request)).reverse() : [];
  for (const id of conversation === null ? found.map((row) => row.id) : [conversation]) {
    const tail = (await tailOf(daemon, id)) ?? [];
    const calls = results.map((result) => callWithId(result.id, tail));
    if (calls.every((call) => call !== null)) return { conversation: id, calls };
  }
  const ids = results.map(({ id }) => cut(id, 80)).join(', ');
  throw refusedField(
    results[0]?.where ?? '',
    `no call ${ids} was made in a conversation that begins as this one: send the messages as they were answered, or end with a message of the user`,
  );
}

export async function pick(daemon: GatewayPort, request: Asked): Promise<Picked> {
  const { conversation, history, key, newId } = request;
  const at = (place: string, tail: readonly Entry[], seed: readonly Past[]): Picked => {
    const post = repeatedIn(tail, request) ?? newPost(place, tail, request);
    return { conversation: place, ...post, seed, unanswered: unansweredIn(tail, request) };
  };
  if (conversation !== null) {
    const tail = await tailOf(daemon, conversation);
    const isNew = tail === null || tail.every(({ type }) => type === 'claim');
    return isNew ? at(conversation, [], history) : at(conversation, tail, []);
  }
  const found = await conversationsOf(daemon, request);
  if (beginsChat(request)) {
    const recent = found.filter(({ updatedAt }) => isRecent(updatedAt, request)).slice(-MOST_REPEATED);
    for (const candidate of recent.reverse()) {
      const tail = await tailOf(daemon, candidate.id);
      if (tail !== null && repeatedIn(tail, request)) return at(candidate.id, tail, []);
    }
    return at(sealed(request, newId()), [], history);
  }
  const named = key === null ? [] : [sealed(request, key)];
  for (const candidate of new Set([...named, ...found.map(({ id }) => id).reverse()])) {
    const tail = await tailOf(daemon, candidate);
    if (tail === null) continue;
    if (repeatedIn(tail, request) || isContinuedBy(tail, request)) return at(candidate, tail, []);
  }
  if (key !== null) {
    const place = sealed(request, key);
    return at(place, (await tailOf(daemon, place)) ?? [], history);
  }
  const own = `${digest([request.model, digestOf(history), request.asked])}-`;
  const tried = found.map(({ id }) => restOf(request, id)).filter((rest) => rest.startsWith(own));
  for (let attempt = Math.max(0, ...tried.map((rest) => Number(rest.slice(own.length)))); ; attempt++) {
    const place = sealed(request, `${own}${attempt}`);
    const tail = (await tailOf(daemon, place)) ?? [];
    if (tail.every(isBeforeAnyPost)) return at(place, [], history);
    if (repeatedIn(tail, request)) return at(place, tail, []);
  }
}

function unansweredIn(tail: readonly Entry[], { author, results }: ChatRequest): AnsweredCall[] {
  return openCallsOf(author, tail).map(({ asked, place: { position } }) => {
    const id = callerCallId(asked, position);
    return { asked, position, parts: results.find((result) => result.id === id)?.parts };
  });
}

type PostOf = Pick<Picked, 'id' | 'parts' | 'meta'>;

function newPost(conversation: string, tail: readonly Entry[], request: Asked): PostOf {
  const { model, caller, history, key, instructions, parts, asked, author } = request;
  const digests = digestsOf(request);
  const digested = digests.instructions;
  const before = tail[newestPlace(tail, request, null)];
  const isNew = digested !== undefined && (before && metaOf(before, request)?.instructions) !== digested;
  const quoted = ['', `Instructions of ${author}:`, ...quotedLines(instructions)].join('\n');
  const hasFiles = parts.some(({ type }) => type !== 'text');
  const own = contentOf(parts.filter((part) => part.type === 'text'));
  return {
    id: postId(conversation, tail, request),
    parts: isNew ? [...parts, { type: 'text', text: quoted }] : parts,
    meta: {
      model,
      caller,
      history: digestOf(history),
      ...(key !== null && { key }),
      ...digests,
      ...(isNew && { length: own.length }),
      ...(hasFiles && { asked: digest(plainText(asked)) }),
    },
  };
}

function digestsOf({ instructions, schema, brought }: ChatRequest): Pick<ChatMeta, 'instructions' | 'form'> {
  return {
    ...(instructions !== '' && { instructions: digest(instructions) }),
    ...((schema || brought.tools) && { form: digest([schema ?? null, brought]) }),
  };
}

/** PICK-5. The same text after an answer or a failure is another post. */
function postId(conversation: string, tail: readonly Entry[], request: Asked): string {
  if (beginsChat(request)) return `chat-${request.newId()}`;
  const { key, model, caller, history, asked, instructions, schema } = request;
  const before = tail[newestPlace(tail, request, key)]?.id ?? tail[0]?.index ?? 0;
  return `chat-${digest([conversation, before, key, model, caller, digestOf(history), asked, instructions, ...(schema ? [schema] : [])])}`;
}

/** The request cannot repeat or continue another one: each is a new message. */
function beginsChat({ history, key, isRetry }: ChatRequest): boolean {
  return history.length === 0 && key === null && !isRetry;
}

function isBeforeAnyPost(entry: Entry): boolean {
  return entry.type === 'claim' || (entry.type === 'message' && entry.meta?.seeded === true);
}

/** The id prefix of conversations that start with the same text of the same caller. */
export function prefixOf({ caller, secret, history, asked }: ChatRequest): string {
  const first = history.find(({ role }) => role === 'user')?.content ?? asked;
  return `chat-${digest([secret, caller, plainText(first)])}-`;
}

/** PICK-2. Others cannot compute it: they lack the secret. */
function sealed(request: ChatRequest, rest: string): string {
  const prefix = prefixOf(request);
  return `${prefix}${digest([request.secret, prefix, rest]).slice(0, SEAL_LENGTH)}-${rest}`;
}

function restOf(request: ChatRequest, id: string): string {
  return id.slice(prefixOf(request).length + SEAL_LENGTH + 1);
}

function isRecent(time: string, { now }: Asked): boolean {
  return Date.parse(time) > now - REPEATED_MS;
}

/** The newest ones with the seal, in the order of their last change. */
async function conversationsOf(daemon: GatewayPort, request: ChatRequest): Promise<Row[]> {
  const found = await rowsOf(daemon, prefixOf(request));
  return found.filter(({ id }) => id === sealed(request, restOf(request, id))).slice(-MOST_CANDIDATES);
}

/** The conversations whose ids begin so, in the order of their last change. */
async function rowsOf(daemon: GatewayPort, prefix: string): Promise<Row[]> {
  const found: Row[] = [];
  for await (const row of conversationRows(daemon, prefix)) {
    if (!row.id.startsWith(prefix)) break;
    found.push(row);
  }
  return found.sort((one, other) => (one.updatedAt < other.updatedAt ? -1 : 1));
}

/** Whether one of these entries is the post of this request (PICK-4). */
export function isRepeated(entries: readonly Entry[], request: Asked): boolean {
  return repeatedIn(entries, request) !== null;
}

/** The conversation whose id begins so and which has the post of this request from an index on; null: none (PICK-4). */
export async function repeatedAmong(
  daemon: GatewayPort,
  { prefix, from }: { readonly prefix: string; readonly from: number },
  request: Asked,
): Promise<string | null> {
  const recent = (await rowsOf(daemon, prefix)).filter(({ updatedAt }) => isRecent(updatedAt, request));
  for (const { id } of recent.slice(-MOST_REPEATED).reverse())
    if (isRepeated(await orElse(readLog(daemon, id, from), []), request)) return id;
  return null;
}

/** Null: there is no such conversation. */
async function tailOf(daemon: GatewayPort, conversation: string): Promise<Entry[] | null> {
  const page = await orElse(ask(daemon, 'entries', { conversation, from: 0, limit: 1 }), null);
  return page && orElse(readTail(daemon, conversation, page.length), null);
}

function repeatedIn(tail: readonly Entry[], request: Asked): PostOf | null {
  const exchange = newestExchange(tail, request, request.key);
  if (!exchange) return null;
  const { post, meta, isOver, failed } = exchange;
  if (!isAsked(exchange, request.asked) || meta.model !== request.model) return null;
  const known = {
    id: post.id,
    parts: post.parts ?? [{ type: 'text' as const, text: post.content ?? '' }],
    meta,
  };
  if (meta.key !== undefined && meta.key === request.key) return known;
  if (request.key !== null || meta.history !== digestOf(request.history)) return null;
  const { instructions, form } = digestsOf(request);
  if (meta.instructions !== instructions || meta.form !== form) return null;
  const ended = tail.findLast(({ type }) => type === 'turn-ended')?.createdAt ?? post.createdAt;
  if (request.isRetry || (failed && isRecent(ended, request))) return known;
  return !isOver && request.history.length > 0 ? known : null;
}

function isContinuedBy(tail: readonly Entry[], request: Asked): boolean {
  const { history } = request;
  const exchange = newestExchange(tail, request);
  if (!exchange) return false;
  const { meta, texts, failed } = exchange;
  if (failed && meta.history === digestOf(history)) return true; // a failed exchange is ignored
  const place = history.findLastIndex(({ role }) => role === 'user');
  const asked = history[place];
  if (!asked || !isAsked(exchange, asked.content ?? '')) return false;
  if (meta.history !== digestOf(history.slice(0, place))) return false;
  const got = history
    .slice(place + 1)
    .flatMap(({ role, content }) => (role === 'assistant' && content ? [withoutAddresses(content)] : []));
  const words = joined(got);
  const known = joined(texts);
  // Of a large answer the log has the beginning. An approval may have been answered since: the log continues.
  const ends = [...noticesIn(tail), ...(KEPT_FILE.exec(known) ?? [])];
  return words === known || ends.some((end) => words.endsWith(end));
}

/** Clients differ in the spaces around a text, and in what they make of none. */
function joined(texts: readonly string[]): string {
  return texts.map(plainText).filter(Boolean).join('\n\n');
}

/** PICK-8 */
function isAsked({ meta, asked }: Exchange, text: string): boolean {
  if (meta.asked !== undefined) return meta.asked === digest(plainText(text));
  return plainText(asked) === plainText(text);
}

interface Exchange {
  readonly post: MessageEntry;
  readonly meta: ChatMeta;
  /** The caller's own text. */
  readonly asked: string;
  /** The answer: the text of each reply. */
  readonly texts: readonly string[];
  readonly isOver: boolean;
  readonly failed: boolean;
}

/** The newest post of this caller, or the one with this key, and what was answered. */
function newestExchange(tail: readonly Entry[], caller: Asked, key: string | null = null): Exchange | null {
  const place = newestPlace(tail, caller, key);
  const post = tail[place];
  const meta = post && metaOf(post, caller);
  if (post?.type !== 'message' || !meta) return key === null ? null : newestExchange(tail, caller);
  const agent = meta.model === ANYBODY ? null : meta.model;
  const asked = (post.content ?? '').slice(0, meta.length);
  return { post, meta, asked, ...answered(tail, place, agent, caller.typed) };
}

type Answered = Pick<Exchange, 'texts' | 'isOver' | 'failed'>;

/** The replies to the post or result at a place, and then to the results of their calls, as a client got them. */
function answered(
  tail: readonly Entry[],
  place: number,
  agent: string | null,
  typed: ReadonlySet<string>,
): Answered {
  const entries = tail.slice(place);
  const [first] = entries;
  if (first?.type !== 'message') return { texts: [], isOver: false, failed: false };
  const { index, to = [], call } = first;
  const notBefore = lastResult(entries) ?? index;
  const given = entries.slice(0, notBefore - index + 1).filter((entry) => entry.type === 'message');
  const turns = given.map(({ turnId = '', agentId = '' }) => ({ turnId, agent: agentId }));
  const reply = new Reply(index, call ? [] : to, agent, tail.slice(0, place), {
    typed,
    notBefore,
    ...(call && { turns }),
  });
  const { said } = reply.replay(entries);
  const text = said.map((one) => (one.kind === 'text' ? one.text : '')).join('');
  const failed = said.some(({ kind }) => kind === 'failed');
  const calls = said.flatMap((one) => (one.kind === 'calls' ? one.calls : []));
  const next = tail.findIndex((entry) => calls.some((one) => isResultOf(entry, one)));
  const rest: Answered =
    next < 0 ? { texts: [], isOver: reply.isOver, failed } : answered(tail, next, agent, typed);
  return { ...rest, texts: [text, ...rest.texts] };
}

function isResultOf(entry: Entry, { place }: CallersCall): boolean {
  if (entry.type !== 'message' || !entry.call) return false;
  return wireCallId(entry.call) === wireCallId(place);
}

function newestPlace(tail: readonly Entry[], caller: ChatRequest, key: string | null): number {
  return tail.findLastIndex((entry) => {
    const meta = metaOf(entry, caller);
    return meta !== null && (key === null || meta.key === key);
  });
}

/** The model name for any agent. */
export const ANYBODY = 'parley';

function metaOf(entry: Entry, { author, caller }: ChatRequest): ChatMeta | null {
  if (entry.type !== 'message' || entry.author.kind !== 'person' || entry.author.id !== author) return null;
  const meta = entry.meta?.chat;
  const isChat = meta !== null && typeof meta === 'object' && 'history' in meta;
  return isChat && (meta as ChatMeta).caller === caller ? (meta as ChatMeta) : null;
}

function noticesIn(tail: readonly Entry[]): string[] {
  return tail.flatMap((entry) =>
    entry.type === 'approval-requested' && entry.grant === undefined ? [approvalNotice(entry)] : [],
  );
}
