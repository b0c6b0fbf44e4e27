/**
 * Chat completions of OpenAI and compatible providers.
 *
 * model.ts           one attempt: request, abort, timeout, size limit, outcome
 * http-post.ts       sends it
 * client.ts          the package's client, which makes URL and headers, and the checks of baseURL, key and headers
 * answer-reader.ts   the body of an answer: events or one document (think-tag, tool-calls, json);
 *                    opaque-fields.ts: what only its model understands
 * faults.ts          HTTP errors as codes; network-faults.ts: network errors
 */
export { createOpenAiModel, type OpenAiModelOptions } from './model.ts';
