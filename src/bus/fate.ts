/**
 * What a post of the ingress stream is when it is read again: after a crash, by another daemon, or by `--replay`. The table of
 * states and events is in docs/spec/wire.md ("The fate of a post"). In this order, the first that holds counts:
 *
 * - `deleted`, `inLog`: known to its conversation, so when it is delivered (`daemon/conversations/workers.ts`, `fateOf`).
 * - `elsewhere`: the record of settled posts, read when reading begins (`settled.ts`). It is not delivered.
 * - `refused`: the dead letters, read once when reading begins (`nats/ingress/refused-posts.ts`). It is not delivered, except that
 *   a replay decides again on a post with a letter of its own, which then gets no other one.
 * - `new`: all others.
 */
export type Fate =
  | { readonly kind: 'new' }
  | { readonly kind: 'inLog' }
  | { readonly kind: 'refused'; readonly letter: Letter }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'elsewhere' };

/** A letter of the post alone, or one that names it among others. */
export type Letter = 'own' | 'shared';
