import type { AnswerOf, RequestOf, StreamPosition, Verb } from '../../bus/index.ts';
/** The form of the handlers of the request API. */

/** The caller, as far as the transport knows. */
export interface Caller {
  /** The publisher whose subject or token the request came by. */
  readonly sender: string | null;
  readonly isBound: boolean;
  /** PERSON-6: it has the rights of an operator. */
  readonly mayOperate: boolean;
  readonly upTo: StreamPosition | undefined;
  readonly origin: number | null | undefined;
  /** The trace context of the request. */
  readonly traceparent: string | undefined;
}

export type Handler<V extends Verb> = (
  request: RequestOf<V>,
  caller: Caller,
) => AnswerOf<V> | Promise<AnswerOf<V>>;

/** A verb of the contract without a handler does not compile. */
export type Handlers = { readonly [V in Verb]: Handler<V> };
