import { describe, expect, it } from 'vitest';
import { nanosecondsOf } from '../../../src/bus/nats/ingress/stored-posts.ts';
import { parseAckSubject } from '../../../src/bus/nats/ingress/stream-consumer.ts';
import { isAtLeast } from '../../../src/kernel/index.ts';

describe('the sequence and time of a message', () => {
  const place = { deliveries: 2, sequence: 12, consumerSequence: 3, time: 1795303627396687444n };

  it('sequence and time are parsed from both forms of the reply subject, to the nanosecond', () => {
    expect(parseAckSubject('$JS.ACK.PARLEY_IN.reader.2.12.3.1795303627396687444.0')).toEqual(place);
    expect(parseAckSubject('$JS.ACK.hub.ACC.PARLEY_IN.reader.2.12.3.1795303627396687444.0')).toEqual(place);
    expect(parseAckSubject('$JS.ACK._.ACC.PARLEY_IN.reader.2.12.3.1795303627396687444.0.random')).toEqual(
      place,
    );
  });

  it.each([undefined, '', '_INBOX.x', '$JS.ACK.a.b.1.x.3.4.0', '$JS.ACK.a.b'])(
    'the subject %j has no sequence',
    (reply) => {
      expect(parseAckSubject(reply)).toBeNull();
    },
  );

  it('sequence and time of a stored message are the same, although its time has no trailing zeros', () => {
    const seconds = BigInt(Date.parse('2026-11-21T23:27:07Z')) * 1_000_000n;
    expect(nanosecondsOf('2026-11-21T23:27:07.395702905Z')).toBe(seconds + 395_702_905n);
    expect(nanosecondsOf('2026-11-21T23:27:07.3957Z')).toBe(seconds + 395_700_000n);
    expect(nanosecondsOf('2026-11-21T23:27:07Z')).toBe(seconds);
    expect(nanosecondsOf('yesterday')).toBeNull();
  });

  it.each([
    ['2.9.10', false],
    ['2.10.9', false],
    ['2.10.27', true],
    ['2.10.28-RC.1', true],
    ['2.11.0', true],
    ['3.0.0', true],
  ])('the version %s is compared with 2.10.27', (version, answer) => {
    expect(isAtLeast(version, [2, 10, 27])).toBe(answer);
  });
});
