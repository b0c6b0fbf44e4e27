import { type Entry, filesOf, isOfAPerson, type MessageEntry } from '../../../conversation/index.ts';
import { asError, ParleyError } from '../../../kernel/index.ts';
import { conversationOf, digest } from '../../client-ids.ts';
import { type Application, daemonOf, type Request } from '../../context.ts';
import { refusedField } from '../../fields.ts';
import { type AddressOf, addressOf, baseOf } from '../../files.ts';
import { requireAuthor } from '../../guard/access.ts';
import { actingFor, ask, orElse, readLog, readTail } from '../../progress/ask.ts';
import { ANYBODY, isRepeated, repeatedAmong } from '../pick.ts';
import {
  ANONYMOUS,
  agentOf,
  answer,
  type Earlier,
  readSent,
  replyTo,
  type Starter,
  stopReply,
  type TypedRequest,
} from '../start.ts';
import { type ResponseMeta, type ResponseRequest, readResponseRequest } from './request.ts';
import {
  NOTHING_YET,
  type Outcome,
  outcomeIn,
  outcomeOf,
  type ResponseFacts,
  responseFrames,
  responseOf,
} from './response.ts';

/**
 * `/v1/responses` and `/v1/conversations`.
 *
 * RESPONSE-STORED-1 A response is a post and its reply: its id has the place of the post in its conversation. It is read from the log, so it
 *    outlives the daemon, and a client that is gone can retrieve it.
 * RESPONSE-STORED-2 `previous_response_id` continues the conversation at that answer. If its caller, or the one of that response, has
 *    posted there since, a copy of the conversation up to that answer is continued; messages of others are read in place. A repeated
 *    request (PICK-4) is no such post: it finds the conversation, or the copy, that has it.
 * RESPONSE-STORED-3 A response in the background is answered at once; its turns run like all others.
 */

export function addResponsesRoutes(app: Application, starter: Starter): void {
  app.post('/v1/responses', async (context) => {
    const request = readResponseRequest(...(await readSent(context)));
    const chat = { ...request.chat, meta: { response: request.meta } };
    const started = await starter.start(context, chat, earlierOf(context, request));
    const facts: ResponseFacts = {
      id: idOf(started.conversation, started.index),
      conversation: started.conversation,
      model: started.model,
      created: Math.floor(Date.now() / 1_000),
      meta: request.meta,
    };
    if (chat.stream || !request.meta.background)
      return answer(context, started, {
        isStream: chat.stream,
        frames: (said, onFault) => responseFrames(facts, said, onFault),
        async whole(reply) {
          const outcome = await outcomeOf(reply);
          if (outcome.end?.kind === 'failed') throw asError(outcome.end.refusal);
          return responseOf(facts, outcome);
        },
      });
    started.leave();
    return context.json(responseOf(facts, NOTHING_YET));
  });
  app.get('/v1/responses/:id', async (context) => {
    if (context.req.query('stream') === 'true')
      throw refusedField('stream', 'a stored response is read whole: read it again until it is complete');
    const { facts, outcome } = await stored(context);
    return context.json(responseOf(facts, outcome));
  });
  app.get('/v1/responses/:id/input_items', async (context) => {
    const { post, facts } = await stored(context);
    return context.json(listOf([itemOf(post, placed(context, facts.conversation))], false));
  });
  app.post('/v1/responses/:id/cancel', async (context) => {
    const { post, facts, outcome } = await stored(context);
    if (outcome.end) return context.json(responseOf(facts, outcome));
    requireAuthor(context.var.identity, post.author.id);
    const { conversation } = facts;
    await stopReply(await postedIn(context, conversation, post));
    const after = await stored(context);
    return context.json(responseOf(after.facts, after.outcome));
  });
  app.get('/v1/conversations/:id', async (context) => {
    const { conversation: id, first } = await conversationIn(context);
    const created = first ? Math.floor(Date.parse(first.createdAt) / 1_000) : 0;
    return context.json({ id, object: 'conversation', created_at: created, metadata: {} });
  });
  app.get('/v1/conversations/:id/items', async (context) => {
    const { conversation } = await conversationIn(context);
    return context.json(await itemsOf(context, conversation));
  });
  app.get('/v1/conversations/:id/items/:item', async (context) => {
    const { conversation } = await conversationIn(context);
    const id = context.req.param('item');
    const place = placeIn(id);
    const from = place?.conversation === conversation ? place.index : null;
    const [entry] = from === null ? [] : await readLog(daemonOf(context), conversation, from, from + 1);
    if (entry && isShown(entry)) return context.json(itemOf(entry, placed(context, conversation)));
    throw new ParleyError('NOT_FOUND', `there is no item ${JSON.stringify(id.slice(0, 200))}`, {
      hint: 'the items of a conversation are its messages: list them',
    });
  });
}

/** A number of base 36, and the conversation. */
const idOf = (conversation: string, index: number): string => `resp_${index.toString(36)}_${conversation}`;

function placeIn(id: string): { readonly conversation: string; readonly index: number } | null {
  const [, index, conversation] = /^(?:resp|msg)_([0-9a-z]{1,9})_([\w-]{1,128})$/.exec(id) ?? [];
  return index && conversation ? { conversation, index: Number.parseInt(index, 36) } : null;
}

interface Stored {
  readonly post: MessageEntry;
  readonly facts: ResponseFacts;
  readonly outcome: Outcome;
  /** The entries from the post to the end of its reply. */
  readonly length: number;
  readonly later: readonly Entry[];
}

function notFound(id: string): ParleyError {
  return new ParleyError('NOT_FOUND', `there is no response ${JSON.stringify(id.slice(0, 200))}`, {
    hint: 'a response is in the log of its conversation, until that is deleted',
  });
}

/** RESPONSE-STORED-1 */
async function stored(context: Request, id = context.req.param('id') ?? ''): Promise<Stored> {
  const place = placeIn(id);
  if (!place) throw notFound(id);
  const { conversation, index } = place;
  const entries = await orElse(readLog(daemonOf(context), conversation, index), []);
  const [post] = entries;
  if (post?.type !== 'message' || post.author.kind !== 'person') throw notFound(id);
  if (post.role !== 'user' && post.role !== 'tool') throw notFound(id);
  const { response = {} } = (post.meta ?? {}) as { response?: ResponseMeta };
  const posted = await postedIn(context, conversation, post);
  const reply = await replyTo(posted);
  const { said, length } = reply.replay(entries);
  const created = Math.floor(Date.parse(post.createdAt) / 1_000);
  const facts = { id, conversation, model: posted.agent ?? ANYBODY, created, meta: response };
  return { post, facts, outcome: outcomeIn(said), length, later: entries.slice(length) };
}

function modelIn({ meta }: MessageEntry): string {
  return typeof meta?.model === 'string' ? meta.model : ANYBODY;
}

/** A post, or the result of a call: then the turn of that call continues, and the model is that of its caller's post before. */
async function postedIn(context: Request, conversation: string, post: MessageEntry) {
  const { index, to: agents = [], call, turnId = '', agentId = '', author } = post;
  const place = { context, conversation, index };
  if (!call) return { ...place, agents, agent: agentOf(modelIn(post)) };
  const before = await readTail(daemonOf(context), conversation, index);
  const asked = before.filter(isOfAPerson).findLast((one) => one.author.id === author.id);
  const agent = asked ? agentOf(modelIn(asked)) : agentId;
  return { ...place, agents: [], agent, turns: [{ turnId, agent: agentId }] };
}

/** The conversation that the request names by an earlier response (RESPONSE-STORED-2). */
function earlierOf(context: Request, { previous }: ResponseRequest): Earlier | undefined {
  if (previous === null) return undefined;
  const place = placeIn(previous);
  if (!place) throw notFound(previous);
  return {
    conversation: place.conversation,
    find: (request) => continuationOf(context, previous, request),
  };
}

async function continuationOf(context: Request, previous: string, request: TypedRequest): Promise<string> {
  const { post, facts, outcome, length, later } = await stored(context, previous);
  if (!outcome.end)
    throw refusedField('previous_response_id', 'this response is not complete: retrieve it until it is');
  const { conversation } = facts;
  const { author, caller, key, isRetry } = request;
  const callers = [author, post.author.id];
  const hasGoneOn = later.some((entry) => isOfAPerson(entry) && callers.includes(entry.author.id));
  const { newId } = context.var.routes;
  const asked = { ...request, newId, now: Date.now() };
  if (!hasGoneOn || isRepeated(later, asked)) return conversation;
  const at = post.index + length - 1;
  const copies = `resp-${digest([conversation, post.index])}-`;
  const daemon = daemonOf(context);
  const known = isRetry ? await repeatedAmong(daemon, { prefix: copies, from: at + 1 }, asked) : null;
  if (known !== null) return known;
  const as = copies + (key === null ? newId() : digest([author, caller, key]));
  await actingFor(daemon, context.var.identity, ANONYMOUS)('fork', { conversation, as, at });
  return as;
}

async function conversationIn(context: Request) {
  const conversation = conversationOf(context.req.param('id') ?? '');
  const { entries } = await ask(daemonOf(context), 'entries', { conversation, from: 0, limit: 1 });
  return { conversation, first: entries[0] };
}

const MOST_ITEMS = 100;

/** The messages of people and agents, in pages: `limit` (20), `order` (desc), `after` the id of an item. */
async function itemsOf(context: Request, conversation: string): Promise<object> {
  const { limit = '20', order = 'desc', after } = context.req.query();
  const count = Number(limit);
  if (!Number.isInteger(count) || count < 1 || count > MOST_ITEMS)
    throw refusedField('limit', `expected 1 to ${MOST_ITEMS}`);
  if (order !== 'asc' && order !== 'desc') throw refusedField('order', 'expected asc or desc');
  const place = after === undefined ? null : placeIn(after);
  if (after !== undefined && place?.conversation !== conversation)
    throw refusedField('after', 'expected the id of an item of this conversation');
  const entries = await readLog(daemonOf(context), conversation, 0);
  const messages = entries.filter(isShown);
  const all = order === 'asc' ? messages : messages.reverse();
  const rest = place
    ? all.filter(({ index }) => (order === 'asc' ? index > place.index : index < place.index))
    : all;
  const at = placed(context, conversation);
  const page = rest.slice(0, count).map((entry) => itemOf(entry, at));
  return listOf(page, rest.length > count);
}

function isShown(entry: Entry): entry is MessageEntry {
  if (entry.type !== 'message' || !(entry.content || filesOf(entry).length > 0)) return false;
  return entry.role === 'user' || entry.role === 'assistant';
}

interface Item {
  readonly id: string;
}

interface Placed {
  readonly conversation: string;
  readonly address: AddressOf;
}

function placed(context: Request, conversation: string): Placed {
  return { conversation, address: addressOf(baseOf(context), conversation) };
}

/** A client may send it back as it is (GATEWAY-FILES-3). */
function itemOf(entry: MessageEntry, { conversation, address }: Placed): Item {
  const type = entry.role === 'user' ? 'input_text' : 'output_text';
  const text = { type, text: entry.content ?? '', ...(type === 'output_text' && { annotations: [] }) };
  const files = filesOf(entry).map((file) =>
    file.mediaType.startsWith('image/')
      ? { type: 'input_image', image_url: address(file), detail: 'auto' }
      : { type: 'input_file', filename: file.name ?? null, file_url: address(file) },
  );
  return {
    id: `msg_${entry.index.toString(36)}_${conversation}`,
    type: 'message',
    status: 'completed',
    role: entry.role,
    content: entry.content || files.length === 0 ? [text, ...files] : files,
  } as Item;
}

function listOf(data: readonly Item[], hasMore: boolean): object {
  const [first, last] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  return { object: 'list', data, first_id: first, last_id: last, has_more: hasMore };
}
