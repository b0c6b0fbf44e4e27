/** The header `traceparent` of W3C Trace Context: which span of another program caused this message. */

/** Ids in lower-case hex: 32 and 16 digits. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
}

export const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]([0-9a-f])$/;
const NO_ID = /^0+$/;

/** Null: invalid, or the other program does not record its span, so that it cannot be a parent. */
export function parseTraceparent(text: string): TraceContext | null {
  const [, traceId = '', spanId = '', flags = '0'] = TRACEPARENT.exec(text) ?? [];
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  return isSampled && !NO_ID.test(traceId) && !NO_ID.test(spanId) ? { traceId, spanId } : null;
}

export function traceparentOf({ traceId, spanId }: TraceContext): string {
  return `00-${traceId}-${spanId}-01`;
}
