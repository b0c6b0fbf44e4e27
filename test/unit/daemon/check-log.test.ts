import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { checkLog } from '../../support/check-log.ts';
import { Log } from '../agents/support.ts';

/** The checker must be able to fail, or the tests that trust it prove nothing. */
describe('the check of a log file', () => {
  const seal = (entry: object) => {
    const body = JSON.stringify(entry).slice(0, -1);
    return `${body},"sum":"${crc32(Buffer.from(body)).toString(16).padStart(8, '0')}"}`;
  };
  const text = (entries: readonly object[]) => `${entries.map(seal).join('\n')}\n`;
  function sound() {
    const log = new Log();
    log.answer('pm', log.start('pm', log.person('one')), 'two');
    log.answer('pm', log.start('pm', log.person('three')), 'four');
    return log.entries.map((entry) => ({ ...entry }) as Record<string, unknown>);
  }

  it('finds nothing in a sound one', () => {
    expect(checkLog(text(sound()))).toEqual([]);
  });

  it.each<[string, (entries: Record<string, unknown>[]) => void, RegExp]>([
    ['a gap', (entries) => void entries.splice(2, 1), /line 2 has index 3/],
    ['an id twice', (entries) => void Object.assign(entries[4] ?? {}, { id: 'id-0' }), /stands twice/],
    [
      'posts out of order',
      (entries) => {
        Object.assign(entries[0] ?? {}, { ingressSequence: 9 });
        Object.assign(entries[4] ?? {}, { ingressSequence: 3 });
      },
      /out of order/,
    ],
    ['a second end', (entries) => void entries.push({ ...entries[7], index: 8, id: 'x' }), /a second end/],
    [
      'a second answer',
      (entries) => void entries.push({ ...entries[6], index: 8, id: 'x' }),
      /a second answer/,
    ],
    [
      'a cursor that moves back',
      (entries) => void Object.assign(entries[7] ?? {}, { lastProcessedMessageIndex: 1 }),
      /moved back/,
    ],
    [
      'a cursor beyond',
      (entries) => void Object.assign(entries[7] ?? {}, { lastProcessedMessageIndex: 99 }),
      /beyond/,
    ],
    [
      'a trigger answered twice',
      (entries) => void Object.assign(entries[5] ?? {}, { trigger: [0] }),
      /triggered pm twice/,
    ],
    [
      'a trigger to come',
      (entries) => void Object.assign(entries[5] ?? {}, { trigger: [7] }),
      /a later trigger/,
    ],
  ])('finds %s', (_, spoil, fault) => {
    const entries = sound();
    spoil(entries);
    expect(checkLog(text(entries)).join('\n')).toMatch(fault);
  });

  it('finds a changed byte and an unfinished line', () => {
    const whole = text(sound());
    expect(checkLog(whole.replace('"three"', '"thref"')).join()).toMatch(/line 4: checksum/);
    expect(checkLog(whole.slice(0, -1)).join()).toMatch(/not finished/);
  });
});
