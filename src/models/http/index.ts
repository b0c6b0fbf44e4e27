/**
 * Models behind HTTP, in any dialect.
 *
 * model.ts      one attempt: request, abort, timeout, size limit, outcome
 * endpoint.ts   URL and headers of all requests, made by the package `openai`; sends a request
 */
export { createHttpModel, type HttpModelOptions } from './model.ts';
