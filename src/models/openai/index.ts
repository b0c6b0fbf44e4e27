/**
 * Chat completions of OpenAI and compatible providers.
 *
 * model.ts           one attempt: request, timeout, size limit, outcome
 * client.ts          the HTTP client and the checks of baseURL, key and headers
 * answer-reader.ts   the body of an answer: events or one document (event-stream, think-tag, tool-calls, json)
 * faults.ts          HTTP errors as codes; network-faults.ts: network errors
 */
export { createOpenAiModel, type OpenAiModelOptions } from './model.ts';
