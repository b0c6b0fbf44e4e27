/**
 * Helpers without a domain word that at least two folders use. Imports no other folder.
 *
 *   errors, schema-fault      errors for people; what is wrong with a value
 *   json, text, hidden        checks and display of untrusted text
 *   json-schema               schemas of strangers, values checked against them; imported directly
 *   public-address            ranges of IP addresses, requests to addresses that were checked; imported directly
 *   linear-pattern            regular expressions of operators and strangers
 *   time, ids                 clocks, time limits, cancellation, order of work and release, ids (injected, so that the core is pure), hashes
 *   log                       the log of the program, and the secret values that it hides
 *   package                   the folder and the version of this package
 *   paging, tally             lists in messages of a limited size; counts, lists and the newest by key
 *   files                     directories, disk space, files of one owner, permissions
 *   nats-names, nats-streams  server lists; streams and what the server answers
 *   one-time-code             comparison of secrets; proof of knowledge of a key, accepted once
 *   traceparent               the trace context that messages carry
 */

export * from './errors.ts';
export * from './files.ts';
export * from './hidden.ts';
export * from './ids.ts';
export * from './json.ts';
export * from './linear-pattern.ts';
export * from './log.ts';
export * from './nats-names.ts';
export * from './nats-streams.ts';
export * from './one-time-code.ts';
export * from './package.ts';
export * from './paging.ts';
export * from './schema-fault.ts';
export * from './tally.ts';
export * from './text.ts';
export * from './time.ts';
export * from './traceparent.ts';
