import { readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { anyCharacter } from '../../support/characters.ts';
import { runs } from '../../support/runs.ts';
import { entry, faultyFiles, systemError, withDirectory } from './support.ts';

/** One event between two checks of a log. */
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      batches: fc.array(
        fc.array(fc.string({ unit: anyCharacter, maxLength: 40 }), { minLength: 1, maxLength: 4 }),
        {
          minLength: 1,
          maxLength: 4,
        },
      ),
      fault: fc.constantFrom('none', 'short', 'none', 'write', 'sync'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('cut' as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
);

describe('any sequence of appends, faults, reopenings and cuts', () => {
  it(
    'PERSISTENCE-PORT-1, PERSISTENCE-PORT-3: the log is a prefix of the acknowledged batches, each of them whole',
    { timeout: 120_000 },
    () =>
      fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) =>
          withDirectory(async (directory) => {
            const { files, faults } = faultyFiles();
            const path = join(directory, 'conversations', 'demo', 'log.jsonl');
            const store = await openFileStore(directory, { files });
            try {
              let { log } = await store.open('demo');
              let acknowledged: Entry[][] = [];
              for (const each of steps) {
                if (each.kind === 'append') {
                  if (each.fault === 'short') faults.write.push(3, 1, 20);
                  if (each.fault === 'write')
                    faults.write.push({ error: systemError('ENOSPC'), partial: 30 });
                  if (each.fault === 'sync') faults.sync.push(systemError('EIO'));
                  const appends = each.batches.map((contents) => {
                    const from = log.length;
                    const entries = contents.map((content, position) => entry(from + position, content));
                    return log.append(from, entries).then(() => entries);
                  });
                  const outcomes = await Promise.allSettled(appends);
                  for (const outcome of outcomes) {
                    if (outcome.status === 'fulfilled') acknowledged.push(outcome.value);
                  }
                  faults.write.length = 0;
                } else {
                  await log.close();
                  if (each.kind === 'cut' && acknowledged.length > 0) {
                    const size = (await readFile(path)).length;
                    await truncate(path, Math.floor(size * each.share));
                  }
                  const opened = await store.open('demo');
                  const whole = prefixOf(acknowledged, opened.entries.length);
                  expect(opened.entries).toEqual(whole.flat());
                  if (each.kind === 'reopen') expect(whole).toHaveLength(acknowledged.length);
                  acknowledged = whole;
                  log = opened.log;
                }
                expect(await log.read(0)).toEqual(acknowledged.flat());
                expect(log.length).toBe(acknowledged.flat().length);
              }
            } finally {
              await store.close();
            }
          }),
        ),
        { numRuns: runs(20) },
      ),
  );
});

/** The batches of the first `length` entries, if one ends there. */
function prefixOf(batches: Entry[][], length: number): Entry[][] {
  const whole: Entry[][] = [];
  while (whole.flat().length < length) {
    const next = batches[whole.length];
    if (next === undefined) break;
    whole.push(next);
  }
  return whole;
}
