/**
 * Chat completions of OpenAI and compatible providers.
 *
 * model.ts           one attempt: request, abort, timeout, size limit, outcome
 * http-post.ts       sends it
 * endpoint.ts        URL and headers of all requests, made by the package `openai`; the checks of baseURL, key and headers
 * answer-reader.ts   the body of an answer: events or one document (think-tag, tool-calls);
 *                    opaque-fields.ts: what only its model understands
 * faults.ts          errors of the provider and the network as codes
 */
export { createOpenAiModel, type OpenAiModelOptions } from './model.ts';
