import type { Application } from '../context.ts';
import { completionFrames, errorBody, type Refused, wholeCompletion } from './completions.ts';
import { readChatRequest } from './request.ts';
import { addResponsesRoutes } from './responses/routes.ts';
import { type AgentModel, answer, known, models, readSent, Starter } from './start.ts';

/** `/v1`: an agent as a model, for programs that speak OpenAI's protocols. */

export function addOpenAiRoutes(app: Application): void {
  const starter = new Starter();
  app.get('/v1/models', async (context) =>
    context.json({ object: 'list', data: (await models(context)).map(modelOf) }),
  );
  app.get('/v1/models/:model', async (context) =>
    context.json(modelOf(await known(context.req.param('model'), context))),
  );
  app.post('/v1/chat/completions', async (context) => {
    const request = readChatRequest(...(await readSent(context)));
    const started = await starter.start(context, request);
    const { id, model } = started;
    const completion = { id: `chatcmpl-${id}`, model, created: Math.floor(Date.now() / 1_000) };
    return answer(context, started, {
      isStream: request.stream,
      frames: (said, onFault) => completionFrames(completion, said, request.includeUsage, onFault),
      whole: (reply) => wholeCompletion(completion, reply),
    });
  });
  addResponsesRoutes(app, starter);
}

const modelOf = (model: AgentModel) => ({ ...model, object: 'model', created: 0, owned_by: 'parley' });

/**
 * An error in OpenAI's format. Clients repeat 408, 409, 429 and each 5xx by themselves, some of them six times: only what a
 * repetition can change has such a status (COMPLETIONS-1).
 */
export function openAiError(
  given: number,
  refused: Refused & { readonly retryAfter?: number | undefined },
): Response {
  const status = given === 409 ? 400 : given;
  const again = status === 429 || status === 503;
  return Response.json(
    { error: errorBody(refused, status) },
    {
      status,
      headers: again ? { 'retry-after': String(refused.retryAfter ?? 1) } : { 'x-should-retry': 'false' },
    },
  );
}
