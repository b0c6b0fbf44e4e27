/**
 * Chat completions of OpenAI and compatible providers.
 *
 * model.ts           one attempt: request, abort, timeout, size limit, outcome
 * endpoint.ts        URL and headers of all requests, made by the package `openai`; sends a request
 * answer-reader.ts   the body of an answer: events or one document; tool-calls.ts: its calls; opaque-fields.ts: what only its
 *                    model understands
 * faults.ts          errors of the provider and the network as codes
 */
export { createOpenAiModel, type OpenAiModelOptions } from './model.ts';
