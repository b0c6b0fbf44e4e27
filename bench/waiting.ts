import { EMPTY_STATE, type Entry, evolve } from '../src/conversation/index.ts';
import { interleave, median, ratioOf, report, rounded } from './support/report.ts';

/**
 * Folding posts that wait for one busy agent: what one post costs where 50,000 wait, against 1,000. Then the same posts
 * taken one by one, each by a turn of its own.
 *
 *     npx tsx bench/waiting.ts [many] [few] [rounds]
 */

const [many = '50000', few = '1000', rounds = '7'] = process.argv.slice(2);
const createdAt = '2026-01-01T00:00:00.000Z';
const person = { kind: 'person', id: 'alice', name: 'Alice' } as const;
const agent = { kind: 'agent', id: 'pm', name: 'PM' } as const;

function posts(count: number): Entry[] {
  return Array.from({ length: count }, (_, index) => {
    const common = { index, id: `m${index}`, createdAt, author: person, role: 'user', content: 'x' } as const;
    return { ...common, type: 'message', to: ['pm'], delivery: 'queue' };
  });
}

function turns(count: number): Entry[] {
  return Array.from({ length: count }, (_, number): Entry[] => {
    const index = count + 2 * number;
    const common = { createdAt, author: agent, agent: 'pm', turnId: `t${number}` } as const;
    return [
      { ...common, index, id: `s${number}`, type: 'turn-started', trigger: [number], upTo: index, hops: 0 },
      {
        ...common,
        index: index + 1,
        id: `e${number}`,
        type: 'turn-ended',
        outcome: 'completed',
        lastProcessedMessageIndex: number + 1,
      },
    ];
  }).flat();
}

for (const [what, more] of [
  ['waiting', () => []],
  ['waiting, then taken', turns],
] as const) {
  /** Microseconds for each post, over about as many posts however many wait at a time. */
  const contestant = (count: number) => {
    const entries = [...posts(count), ...more(count)];
    const repeats = Math.max(1, Math.round(Number(many) / count));
    return async () => {
      const started = performance.now();
      for (let n = 0; n < repeats; n++) entries.reduce(evolve, EMPTY_STATE);
      return ((performance.now() - started) * 1_000) / (count * repeats);
    };
  };
  const contestants = { many: contestant(Number(many)), few: contestant(Number(few)) };
  const measured = await interleave(contestants, Number(rounds), 2);
  report(what, {
    entries: Number(many),
    ratio: ratioOf(measured.many, measured.few),
    wanted: '<= 3',
    microsecondsEach: rounded(median(measured.many)),
    microsecondsEachOfFew: rounded(median(measured.few)),
  });
}
