import { describe, expect, it } from 'vitest';
import { parseTraceparent, traceparentOf } from '../../../src/kernel/index.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('a traceparent', () => {
  it('is read, and written as version 00 of a recorded span', () => {
    const context = { traceId: TRACE, spanId: SPAN };
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual(context);
    expect(parseTraceparent(`cc-${TRACE}-${SPAN}-03`)).toEqual(context); // of a later version
    expect(traceparentOf(context)).toBe(`00-${TRACE}-${SPAN}-01`);
  });

  it.each([
    ['its span is not recorded', `00-${TRACE}-${SPAN}-00`],
    ['its version is invalid', `ff-${TRACE}-${SPAN}-01`],
    ['its trace id is zero', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['its span id is zero', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['it has upper-case digits', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['it is longer', `00-${TRACE}-${SPAN}-01-more`],
    ['it is empty', ''],
  ])('is no parent if %s', (_, text) => {
    expect(parseTraceparent(text)).toBeNull();
  });
});
