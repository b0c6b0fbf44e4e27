import { z } from 'zod';
import {
  type ClientTool,
  clientToolsSchema,
  contentOf,
  deliveryModeSchema,
  filePartSchema,
  isPersonName,
  NAME_PATTERN,
  type Part,
  type Post,
  SLUG_PATTERN,
  textPartSchema,
  toolChoiceSchema,
  UNKNOWN_TYPE,
} from '../conversation/index.ts';
import {
  crowdFault,
  cut,
  decodeUtf8,
  fieldFault,
  hasLoneSurrogate,
  hasVisible,
  infinityAt,
  isShallow,
  jsonFault,
  MAX_DEPTH,
  parseTraceparent,
  type Refusal,
  refusal,
  shown,
  TRACEPARENT,
} from '../kernel/index.ts';

/**
 * Decodes a delivery to a post, or to a refusal. Never throws.
 *
 * POST-1 A body is JSON if its first non-space character is `{`, else it is the content itself.
 * POST-2 Only `content` is required; an unknown field is refused by its name, never ignored.
 * POST-3 An accepted post can be written as JSON and as UTF-8 again without loss.
 * POST-4 No name of an author can break the line or the brackets of an attribution (L17).
 * POST-5 Neither a refusal nor the time it takes grows with the body.
 */

/** UTF-16 units of the name of a file, and parts of one post. */
export const MOST_OF_A_NAME = 255;
const MOST_PARTS = 64;

type PostSource = Pick<
  Delivery,
  'body' | 'messageId' | 'fallbackId' | 'publisher' | 'conversation' | 'traceparent'
> & {
  /** False: the publisher alone vouches for the author's name; default: true. */
  readonly isNameBound?: boolean | undefined;
};

/** A file as a publisher names it. What is stored of it replaces every other field (PARTS-3): until then it is unknown. */
const postedFile = filePartSchema
  .partial({ mediaType: true, size: true })
  .extend({ name: z.string().max(MOST_OF_A_NAME).optional() })
  .strict();
const postedPart = z.discriminatedUnion('type', [textPartSchema.strict(), postedFile]);
export type PostedPart = Readonly<z.infer<typeof postedPart>>;
export type PostedFile = Readonly<z.infer<typeof postedFile>>;

export const postedParts = z.array(postedPart).max(MOST_PARTS);
export const postedFiles = z.array(postedFile).max(MOST_PARTS);

/** A post with the names in its subject. The id of the author is `<publisher>`, or `<publisher>/<name>` for a given name. */
export interface AddressedPost extends Post {
  readonly publisher: string;
  readonly conversation: string;
}

export type DecodedPost =
  | { readonly ok: true; readonly post: AddressedPost }
  | { readonly ok: false; readonly refusal: Refusal };

const PRINTABLE = /^[^\p{Cc}\p{Cf}\p{Surrogate}\p{Zl}\p{Zp}]+$/u;

function printable(longest: number) {
  return z.string().refine((text) => PRINTABLE.test(text) && [...text].length <= longest, {
    error: `expected 1 to ${longest} printable characters`,
  });
}

/** ASCII: it may become a header. */
export const sessionShape = z
  .string()
  .regex(/^[\x20-\x7e]{1,256}$/, { error: 'expected 1 to 256 printable ASCII characters' });

/** Agents that one post may name. */
const MOST_RECIPIENTS = 64;
/** Unknown fields that a refusal names. */
const MOST_NAMED = 8;

export const slugShape = z
  .string()
  .regex(SLUG_PATTERN, { error: 'expected the slug of an agent, which is lower case' });

/** A posted message as JSON. */
export const postShape = z.strictObject({
  /** May be left out beside `parts` with a text. */
  content: z.string().default(''),
  parts: (postedParts as z.ZodType<readonly PostedPart[]>).optional(),
  id: printable(256).optional(),
  to: (z.array(slugShape).max(MOST_RECIPIENTS) as z.ZodType<readonly string[]>).optional(),
  delivery: deliveryModeSchema.optional(),
  workflow: printable(256).optional(),
  /** Tools that the sender answers itself: the agent may call them in the turn that this message starts. */
  tools: (clientToolsSchema as z.ZodType<readonly ClientTool[]>).optional(),
  toolChoice: toolChoiceSchema.optional(),
  parallelToolCalls: z.boolean().optional(),
  author: z.strictObject({ name: z.string() }).optional(),
  sessionId: sessionShape.optional(),
  claudeSessionId: sessionShape.optional(),
  replyTo: printable(256).optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
  /** The JSON Schema of the answer; the daemon checks it. */
  schema: z.record(z.string(), z.unknown()).optional(),
  includeInContext: z.boolean().optional(),
  isCollapsed: z.boolean().optional(),
  traceparent: z
    .string()
    .regex(TRACEPARENT, { error: 'expected a traceparent such as 00-<32 hex digits>-<16 hex digits>-01' })
    .optional(),
});
type PostShape = z.infer<typeof postShape>;

const KNOWN: ReadonlySet<string> = new Set(Object.keys(postShape.shape));
const FIELDS = [...KNOWN].join(', ');
const FIELD_HINT = 'correct the field, or leave it out; docs/spec/wire.md lists the fields of a post';
const idShape = printable(256);

export function isLegalId(id: string): boolean {
  return idShape.safeParse(id).success;
}

type Step<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal };

function no(code: string, message: string, hint?: string): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: refusal(code, message, hint) };
}

export function decodePost(delivery: PostSource): DecodedPost {
  const name = legalNames(delivery.publisher, delivery.conversation);
  if (name) return { ok: false, refusal: name };
  const shape = decodeBody(delivery.body);
  return shape.ok ? toPost(delivery, shape.value) : shape;
}

function legalNames(publisher: string, conversation: string): Refusal | null {
  const illegal = !NAME_PATTERN.test(publisher)
    ? `publisher ${shown(publisher)}`
    : !NAME_PATTERN.test(conversation)
      ? `conversation id ${shown(conversation)}`
      : null;
  if (!illegal) return null;
  return refusal('INVALID_NAME', `${illegal} is not allowed`, 'use 1 to 128 letters, digits, _ or -');
}

function decodeBody(body: Uint8Array): Step<PostShape> {
  const text = decodeUtf8(body);
  if (text === null)
    return no('INVALID_UTF8', 'the body is not valid UTF-8', 'encode text and JSON as UTF-8');
  if (!/^[ \t\n\r]*\{/.test(text)) return { ok: true, value: { content: text } };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return no(
      'MALFORMED_JSON',
      `the body begins with { but is not JSON: ${jsonFault(error)}`,
      'to post text that begins with {, send it as {"content":"…"}',
    );
  }
  if (!isShallow(value)) {
    return no('INVALID_FIELD', `the body is nested deeper than ${MAX_DEPTH} levels`, 'flatten `meta`');
  }
  const crowded = refuseCrowd(value as Record<string, unknown>);
  if (crowded) return { ok: false, refusal: crowded };
  const fault = crowdFault(body);
  if (fault) return no('INVALID_FIELD', `the body ${fault}`, 'send fewer fields in `meta`');
  const lossy = metaFault((value as { meta?: unknown }).meta);
  if (lossy) return { ok: false, refusal: lossy };
  const { content, parts } = value as Partial<PostShape>;
  if (content === undefined && parts === undefined)
    return no('EMPTY_CONTENT', 'the field content is missing', 'send {"content":"…"}');
  const parsed = postShape.safeParse(value);
  return parsed.success
    ? { ok: true, value: parsed.data }
    : { ok: false, refusal: refusalOf(parsed.error, value) };
}

function toPost(delivery: PostSource, shape: PostShape): DecodedPost {
  const message = messageOf(shape);
  if (!message.ok) return message;
  const id = postId(delivery, shape);
  if (!id.ok) return id;
  const session = sessionOf(shape);
  if (!session.ok) return session;
  const author = authorOf(delivery.publisher, shape.author?.name, delivery.isNameBound);
  if (!author.ok) return author;
  const {
    author: _,
    claudeSessionId: __,
    traceparent: named,
    to = [],
    delivery: mode = shape.schema ? 'queue' : 'steer',
    parts: ___,
    tools = [],
    toolChoice,
    parallelToolCalls: isParallel,
    ...rest
  } = shape;
  if (shape.schema && mode === 'steer' && shape.delivery !== undefined)
    return no(
      'INVALID_FIELD',
      'fields schema and delivery: a typed answer needs a turn of its own, and steer joins a running one',
      'leave delivery out, or use queue or interrupt',
    );
  const traceparent = named ?? delivery.traceparent ?? '';
  return {
    ok: true,
    post: {
      ...rest,
      ...message.value,
      id: id.value,
      delivery: mode,
      author: author.value,
      ...(to.length > 0 && { to: [...new Set(to)] }),
      ...(tools.length > 0 && { tools }),
      ...(tools.length > 0 && toolChoice !== undefined && { toolChoice }),
      ...(tools.length > 0 && isParallel === false && { parallelToolCalls: isParallel }),
      ...(session.value !== undefined && { sessionId: session.value }),
      ...(parseTraceparent(traceparent) && { traceparent }), // an invalid header is ignored, as W3C demands
      publisher: delivery.publisher,
      conversation: delivery.conversation,
    },
  };
}

/** The text of a post, and its parts if it has a file. */
function messageOf({ content, parts = [] }: PostShape): Step<Pick<AddressedPost, 'content' | 'parts'>> {
  const files = parts.filter((part) => part.type === 'file');
  const texts = contentOf(parts.filter((part) => part.type === 'text'));
  if (content !== '' && texts !== '' && content !== texts) {
    const message = 'fields content and parts: the texts of the parts differ from the content';
    return no('INVALID_FIELD', message, 'give the text as content, or in parts');
  }
  const text = content || texts;
  if (!hasVisible(text) && files.length === 0)
    return no('EMPTY_CONTENT', 'the content is empty', 'post at least one visible character, or a file');
  if ([text, ...files.map(({ name = '' }) => name)].some(hasLoneSurrogate)) {
    const message = 'field content or parts: holds half of a surrogate pair';
    return no('INVALID_FIELD', message, 'escape whole characters only');
  }
  if (files.length === 0) return { ok: true, value: { content: text } };
  const named = parts.map(partOf);
  const isBeside = texts === '' && text !== '';
  return { ok: true, value: { content: text, parts: isBeside ? [{ type: 'text', text }, ...named] : named } };
}

export function partOf(posted: PostedPart): Part {
  if (posted.type === 'text') return posted;
  const { sha256, name } = posted;
  return { type: 'file', sha256, ...(name && { name }), mediaType: UNKNOWN_TYPE, size: 0 };
}

/** The body's id, else the header's, else the fallback. An illegal header is refused: the sender relies on it. */
function postId({ messageId, fallbackId }: PostSource, shape: PostShape): Step<string> {
  if (shape.id !== undefined) return { ok: true, value: shape.id };
  if (messageId === null || messageId === '') return { ok: true, value: fallbackId };
  const parsed = idShape.safeParse(messageId);
  if (parsed.success) return { ok: true, value: parsed.data };
  return no(
    'INVALID_FIELD',
    `header Nats-Msg-Id: expected 1 to 256 printable characters, got ${shown(messageId)}`,
    'correct the header, or leave it out and give `id` in the body',
  );
}

function sessionOf({ sessionId, claudeSessionId }: PostShape): Step<string | undefined> {
  if (sessionId !== undefined && claudeSessionId !== undefined && sessionId !== claudeSessionId) {
    return no('INVALID_FIELD', 'fields sessionId and claudeSessionId differ', 'send sessionId alone');
  }
  return { ok: true, value: sessionId ?? claudeSessionId };
}

/**
 * A publisher, or a person at it (PERSON-5), with the name that every display shows. Refuses with `INVALID_AUTHOR` (POST-4).
 */
export function authorOf(
  publisher: string,
  name: string | undefined,
  isNameBound = true,
): Step<Post['author']> {
  if (name === undefined) return { ok: true, value: { id: publisher, name: publisher } };
  if (isPersonName(name)) {
    const shownName = isNameBound || name === publisher ? name : `${publisher} as ${name}`;
    return { ok: true, value: { id: `${publisher}/${name}`, name: shownName } };
  }
  return no(
    'INVALID_AUTHOR',
    `author.name ${shown(name)} is not allowed`,
    'use 1 to 64 characters, one of them visible, without control characters, line breaks, [ or ], and no space at either end',
  );
}

/** POST-5: more fields than any post can have are refused by their number, before each is read. */
function refuseCrowd({ author, to, parts, ...rest }: Record<string, unknown>): Refusal | null {
  if (Object.keys(rest).length > KNOWN.size)
    return unknownFields(Object.keys(rest).filter((key) => !KNOWN.has(key)));
  const ofAuthor = author !== null && typeof author === 'object' ? Object.keys(author) : [];
  if (ofAuthor.length > MOST_NAMED) return unknownFields(ofAuthor.map((key) => `author.${key}`));
  if (Array.isArray(parts) && parts.length > MOST_PARTS) {
    const message = `field parts: expected at most ${MOST_PARTS} parts, got ${parts.length}`;
    return refusal('INVALID_FIELD', message, FIELD_HINT);
  }
  if (!Array.isArray(to) || to.length <= MOST_RECIPIENTS) return null;
  const message = `field to: expected at most ${MOST_RECIPIENTS} agents, got ${to.length}`;
  return refusal('INVALID_FIELD', message, FIELD_HINT);
}

function unknownFields(keys: readonly string[]): Refusal {
  const names = keys.slice(0, MOST_NAMED).map(shown).join(', ');
  const more = keys.length > MOST_NAMED ? ` and ${keys.length - MOST_NAMED} more` : '';
  const hint = `known fields are ${FIELDS} and author.name; \`meta\` takes anything`;
  return refusal('UNKNOWN_FIELD', `unknown field ${names}${more}`, hint);
}

function refusalOf(error: z.ZodError, value: unknown): Refusal {
  const issues = error.issues;
  const unknown = issues.find((issue) => issue.code === 'unrecognized_keys');
  if (unknown) return unknownFields(unknown.keys.map((key) => [...unknown.path, key].join('.')));
  const [issue] = issues;
  if (issue === undefined) return refusal('INVALID_FIELD', 'the body is no post', FIELD_HINT);
  return refusal('INVALID_FIELD', `field ${fieldFault(issue, value)}`, FIELD_HINT);
}

/** POST-3: what of `meta` JSON would lose. `meta`: before it is written as JSON again. */
export function metaFault(meta: unknown): Refusal | null {
  const infinite = infinityAt(meta, 'meta');
  if (infinite !== null) {
    const message = `field ${cut(infinite, 200)}: the number is too large for JSON`;
    return refusal('INVALID_FIELD', message, 'send a smaller number, or send it as a text');
  }
  if (typeof meta !== 'object' || meta === null || !Object.hasOwn(meta, '__proto__')) return null;
  return refusal('INVALID_FIELD', 'field meta.__proto__: this key cannot be kept', 'use another key');
}

/** A position in the ingress stream. `stream` is its creation time: a stream that is created again has another one. */
export interface StreamPosition {
  readonly stream: string;
  readonly sequence: number;
}

/** The raw message of a post. Decoded it is a `Post`; stored in the log, an `Entry`. */
export interface Delivery {
  readonly position: StreamPosition;
  /** When the stream stored it: milliseconds since the epoch, by the broker's clock. */
  readonly takenAt: number;
  /** A deterministic id for a post that names none: a redelivery has the same one. */
  readonly fallbackId: string;
  readonly publisher: string;
  readonly conversation: string;
  readonly body: Uint8Array;
  /** The header `Nats-Msg-Id`, if any. */
  readonly messageId: string | null;
  /** The header `traceparent`, if any. */
  readonly traceparent?: string | null;
  /** Milliseconds by which it is too early for its publisher's rate, as `onRead` decided; absent: not decided. */
  readonly waitMs?: number;
  /** A replay delivers it although it was refused, and gives it no second letter (`Fate`). */
  readonly hasLetter?: boolean;
}

/** A delivery when it is read, before it waits to be delivered. */
export interface DeliveryHead extends Omit<Delivery, 'body' | 'waitMs'> {
  /** Bytes of its body. */
  readonly bytes: number;
}

/** The decision on a post that was read. */
export type Reading =
  | { readonly kind: 'deliver'; readonly waitMs: number }
  /** Refused with others of its publisher, and settled when `kept` resolves; if it rejects the post stays unsettled. */
  | { readonly kind: 'refused'; readonly kept: Promise<void> };

/** Posts of one publisher that were refused together. */
export interface RefusedRuns {
  /** The creation time of the ingress stream, as in a `StreamPosition`. */
  readonly stream: string;
  readonly count: number;
  /** The size of their bodies; for unread ones an estimate. */
  readonly bytes: number;
  /** When the stream stored the first and the last of them: milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  /** First and last sequence of each run; all posts of this publisher in a run were refused. In ascending order. */
  readonly runs: readonly (readonly [number, number])[];
}

/** Posts of one publisher that were not read. Those of others between the first and the last sequence do not count. */
export interface UnreadPosts extends Omit<RefusedRuns, 'runs'> {
  readonly publisher: string;
  readonly first: number;
  readonly last: number;
}

/** Posts that need a person's decision, because they may have an answer that is in no log of this store (`settled.ts`). */
export interface OldPosts {
  /** The name of the ingress stream. */
  readonly name: string;
  readonly count: number;
  /** A start that skips up to here answers none of these. */
  readonly last: number;
  /** When the stream stored the first and the last, if nothing is known of them (SETTLED-7); null: a backup lacks them (SETTLED-9). */
  readonly time: { readonly from: number; readonly to: number } | null;
  /** The store that settled them; null: not known. */
  readonly by: string | null;
}

/** The last post that a store does not answer: the newest now, one by its sequence, or the newest of a time in milliseconds. */
export type SkipUntil =
  | { readonly kind: 'now' }
  | { readonly kind: 'sequence'; readonly sequence: number }
  | { readonly kind: 'time'; readonly time: number };

/** Posts that a store does not answer, although nothing is known to have settled them. */
export interface SkippedPosts {
  /** Reading continues after it. */
  readonly position: StreamPosition;
  /** By publisher. */
  readonly posts: ReadonlyMap<string, RefusedRuns>;
}

/**
 * What a post of the ingress stream is when it is read again: after a crash, by another daemon, or by `--replay`. The table of
 * states and events is in docs/spec/wire.md ("The fate of a post"). In this order, the first that holds counts:
 *
 * - `deleted`, `inLog`: known to its conversation, so when it is delivered (`daemon/conversations/workers.ts`, `fateInConversation`).
 * - `elsewhere`: the record of settled posts, read when reading begins (`settled.ts`). It is not delivered.
 * - `refused`: the dead letters, read once when reading begins (`refusedAfter` of `nats/ingress/dead-letters.ts`). It is not delivered, except that
 *   a replay decides again on a post with a letter of its own, which then gets no other one.
 * - `new`: all others.
 */
export type Fate =
  | { readonly kind: 'new' }
  | { readonly kind: 'inLog' }
  | { readonly kind: 'refused'; readonly letter: Letter }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'elsewhere' };

/** A letter of the post alone, or one that names it among others. */
export type Letter = 'own' | 'shared';
