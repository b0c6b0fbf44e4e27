/**
 * Models behind HTTP, in any dialect.
 *
 * model.ts   one attempt: request, abort, timeout, size limit, outcome; URL and headers are made by the package `openai`
 */
export { createHttpModel, type HttpModelOptions } from './model.ts';
