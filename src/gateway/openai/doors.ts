import { ParleyError } from '../../kernel/index.ts';
import type { Application, DoorContext, Request } from '../context.ts';
import { jsonBody } from '../rest/doors.ts';
import { type Completion, createStream, errorBody, Whole } from './completions.ts';
import { converse } from './converse.ts';
import { type ChatRequest, readChatRequest } from './request.ts';

/**
 * `/v1`: an agent as a model, for programs that speak OpenAI's protocol.
 *
 * V1 A client that goes away ends nothing: the turn belongs to the conversation, others read it too. The same request
 *    again is answered from the log.
 */

/** The model that means: whoever's turn it is. */
const ANYBODY = 'parley';
const ANONYMOUS = 'openai';

export function addOpenAiDoors(app: Application, doors: DoorContext, heartbeatMs: number): void {
  app.get('/v1/models', async (context) =>
    context.json({ object: 'list', data: (await models(doors)).map(modelOf) }),
  );
  app.get('/v1/models/:model', async (context) =>
    context.json(modelOf(await known(context.req.param('model'), doors))),
  );
  app.post('/v1/chat/completions', (context) => complete(context, doors, heartbeatMs));
}

async function complete(context: Request, doors: DoorContext, heartbeatMs: number): Promise<Response> {
  const { identity } = context.var;
  const publisher = identity.publisher ?? ANONYMOUS;
  const header = context.req.header('x-parley-conversation');
  const request = readChatRequest(await jsonBody(context, doors), {
    header,
    publisher: identity.name === undefined ? publisher : `${publisher}/${identity.name}`,
  });
  const model = await known(request.model, doors);
  const agent = model === ANYBODY ? null : model;
  const who = { identity, publisher, agent };
  const completion: Completion = {
    id: `chatcmpl-${request.postId}`,
    model,
    created: Math.floor(Date.now() / 1_000),
  };
  context.header('x-parley-conversation', request.conversation);
  return request.stream
    ? stream(context, doors, request, who, completion, heartbeatMs)
    : whole(context, doors, request, who, completion);
}

type Who = Parameters<typeof converse>[2];

async function whole(
  context: Request,
  doors: DoorContext,
  request: ChatRequest,
  who: Who,
  completion: Completion,
): Promise<Response> {
  const answer = new Whole(completion);
  const stop = () => answer.fail(stopping());
  const leave = await converse(doors.door(), request, who, answer.onSaid);
  const gone = context.req.raw.signal;
  doors.closing.addEventListener('abort', stop);
  gone.addEventListener('abort', stop); // V1
  if (doors.closing.aborted || gone.aborted) stop();
  try {
    return context.json(await answer.done);
  } finally {
    leave();
    doors.closing.removeEventListener('abort', stop);
    gone.removeEventListener('abort', stop);
  }
}

async function stream(
  context: Request,
  doors: DoorContext,
  request: ChatRequest,
  who: Who,
  completion: Completion,
  heartbeatMs: number,
): Promise<Response> {
  let leave: () => void = () => undefined;
  const stop = () => answer.fail(stopping());
  const onClosed = () => {
    leave(); // V1
    doors.closing.removeEventListener('abort', stop);
  };
  const answer = createStream(completion, request.includeUsage, { heartbeatMs, onClosed });
  try {
    leave = await converse(doors.door(), request, who, answer.onSaid);
  } catch (error) {
    await answer.body.cancel(); // nothing was sent yet: it is refused as any request
    throw error;
  }
  doors.closing.addEventListener('abort', stop);
  if (doors.closing.aborted) stop();
  context.header('content-type', 'text/event-stream; charset=utf-8');
  return context.body(answer.body);
}

function stopping(): ParleyError {
  return new ParleyError('STOPPING', 'the daemon stops; the log will have the answer', {
    hint: 'ask again later',
  });
}

async function models(doors: DoorContext): Promise<string[]> {
  const answer = await doors.door().request({ endpoint: 'agents', publisher: null, body: {} });
  if (!answer.ok) throw new ParleyError(answer.refusal.code, answer.refusal.message, answer.refusal);
  const { agents } = answer.body as { agents: readonly { slug: string }[] };
  return [...new Set([ANYBODY, ...agents.map(({ slug }) => slug)])];
}

async function known(model: string, doors: DoorContext): Promise<string> {
  const all = await models(doors);
  if (all.includes(model)) return model;
  throw new ParleyError('MODEL_NOT_FOUND', `there is no model ${JSON.stringify(model)}`, {
    hint: `there are ${all.join(', ')}`,
  });
}

const modelOf = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'parley' });

/** An error as OpenAI's clients read it. */
export function openAiError(
  status: number,
  refused: { code: string; message: string; hint?: string | undefined },
): Response {
  const again = status === 429 || status === 503;
  return Response.json(
    { error: errorBody(refused, status) },
    { status, headers: again ? { 'retry-after': '1' } : { 'x-should-retry': 'false' } },
  );
}
