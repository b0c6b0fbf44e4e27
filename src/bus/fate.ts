/**
 * What a post of the ingress stream is when it is read again: after a crash, by another daemon, or by `--replay`. The table of
 * states and events is in docs/spec/wire.md ("The fate of a post"). In this order, the first that holds counts:
 *
 * - `deleted`, `inLog`: known to its conversation, so when it is delivered (`daemon/conversations/workers.ts`, `fateOf`).
 * - `elsewhere`: the record of settled posts, read when reading begins (`settled.ts`). It is not delivered.
 * - `new`: all others. One that was refused is decided on again.
 */
export type Fate = 'new' | 'inLog' | 'deleted' | 'elsewhere';
