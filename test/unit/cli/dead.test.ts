import { describe, expect, it } from 'vitest';
import { deadLetterLines } from '../../../src/cli/commands/daemon/dead.ts';
import { createPalette } from '../../../src/cli/render/text.ts';
import { type DeadLetterSummary, ParleyError } from '../../../src/client/index.ts';
import { fakeDaemon, parley } from './support.ts';

const letter = (sequence: number, more: Partial<DeadLetterSummary> = {}): DeadLetterSummary => ({
  sequence,
  at: '2026-11-22T05:06:07.890Z',
  publisher: 'ci',
  conversation: 'demo',
  code: 'UNKNOWN_AGENT',
  reason: 'there is no agent "nobody"',
  size: 38,
  ...more,
});

/** Returns pages of two letters, as a daemon does. */
function office(letters: DeadLetterSummary[], retry: (sequence: number) => object = () => ({})) {
  const asked: object[] = [];
  const daemon = fakeDaemon({
    dead: ({ before = Number.POSITIVE_INFINITY, limit, ...filters }: { before?: number; limit: number }) => {
      asked.push(filters);
      const older = letters.filter(({ sequence }) => sequence < before);
      const page = older.slice(0, Math.min(2, limit));
      return { letters: page, next: older.length > page.length ? (page.at(-1)?.sequence ?? null) : null };
    },
    'dead-letter': ({ sequence }: { sequence: number }) => ({
      ...letter(sequence),
      original: 'words',
      hint: 'known agents: dev',
    }),
    'dead-retry': ({ sequence }: { sequence: number }) => ({
      ...{ conversation: 'demo', id: `m-${sequence}`, index: sequence + 10, duplicate: false, agents: [] },
      ...retry(sequence),
    }),
  });
  return { daemon, asked };
}

describe('dead ls', () => {
  it('`parley dead ls` prints a table, newest first, and reports that there are more', async () => {
    const { daemon } = office([
      letter(3, { reason: 'a\nb' }),
      letter(2, { code: 'RATE_LIMITED' }),
      letter(1),
    ]);
    const { out, err, code } = await parley(['dead', 'ls', '--limit', '2'], { daemon });
    expect(code).toBe(0);
    expect(out.split('\n')).toEqual([
      'NO  REFUSED              PUBLISHER  CONVERSATION  SIZE  CODE           REASON',
      '3   2026-11-22 05:06:07  ci         demo          38    UNKNOWN_AGENT  a…',
      '2   2026-11-22 05:06:07  ci         demo          38    RATE_LIMITED   there is no agent "nobody"',
      '',
    ]);
    expect(err).toContain('--limit 20');
    expect((await parley(['dead', 'ls'], { daemon })).out.split('\n')).toHaveLength(5);
  });

  it('`parley dead ls` passes on its filters, and reports an empty result', async () => {
    const { daemon, asked } = office([]);
    const args = ['dead', 'ls', '--publisher', 'ci', '--conversation', 'c', '--code', 'X'];
    expect(await parley(args, { daemon })).toMatchObject({ out: 'no dead letters\n', err: '' });
    expect(asked).toEqual([{ publisher: 'ci', conversation: 'c', code: 'X' }]);
    expect((await parley([...args, '--json'], { daemon })).out).toBe('');
  });
});

describe('dead show', () => {
  it('`parley dead show` prints one dead letter, for people and for programs', async () => {
    const { daemon } = office([]);
    expect((await parley(['dead', 'show', '7'], { daemon })).out.split('\n')).toEqual([
      '7  ci → demo  2026-11-22 05:06:07',
      'UNKNOWN_AGENT  there is no agent "nobody"',
      '  known agents: dev',
      '38 bytes',
      '',
      'words',
      '',
    ]);
    expect((await parley(['dead', 'show', '7', '--json'], { daemon })).json()).toMatchObject([
      { original: 'words' },
    ]);
  });

  it('`parley dead show` reports what was cut and where the whole post is, and escapes control characters', () => {
    const lines = deadLetterLines(
      {
        ...letter(7, { truncated: true, size: 200_000, id: 'm\u001b[2J' }),
        original: 'a\u001b]0;title\u0007b',
        ingress: { stream: 's', sequence: 40 },
      },
      createPalette(false),
    );
    expect(lines).toContain(
      'the beginning of 200000 bytes; the rest was cut, message 40 of the ingress stream',
    );
    expect(lines.join('')).not.toContain('\u001b');
  });
});

describe('dead retry', () => {
  const three = [letter(3), letter(2), letter(1)];

  it('`parley dead retry --all` posts the dead letters again, oldest first', async () => {
    const { daemon, asked } = office(three, (sequence) => ({ duplicate: sequence === 2 }));
    const { code, out, err } = await parley(['dead', 'retry', '--all', '--code', 'X'], { daemon });
    expect(code).toBe(0);
    expect(asked[0]).toEqual({ code: 'X' });
    expect(out).toBe('1: is now entry 11 of demo\n2: was entry 12 of demo\n3: is now entry 13 of demo\n');
    expect(err).toBe('3 posts accepted, 0 refused\n');
  });

  it('`parley dead retry --all` posts in the original order if the dead letters contain it', async () => {
    const place = (sequence: number, at: number, stream = 's') =>
      letter(sequence, { ingress: { stream, sequence: at } });
    const orders = [
      [place(3, 7), place(2, 9), place(1, 8)],
      [place(3, 7), place(2, 9), place(1, 8, 'other')],
    ].map(async (letters) =>
      (await parley(['dead', 'retry', '--all', '--json'], { daemon: office(letters).daemon })).json(),
    );
    const [one, several] = (await Promise.all(orders)) as { sequence: number }[][];
    expect(one?.map(({ sequence }) => sequence)).toEqual([3, 1, 2]);
    expect(several?.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  });

  it('`parley dead retry --all` continues after a refused one, and exits with an error', async () => {
    const { daemon } = office(three, (sequence) => {
      if (sequence === 2) throw new ParleyError('NOT_RETRYABLE', 'no JSON', { hint: 'correct it' });
      return {};
    });
    const outcome = await parley(['dead', 'retry', '2', '3', '1'], { daemon });
    expect(outcome).toMatchObject({
      code: 1,
      out: '1: is now entry 11 of demo\n3: is now entry 13 of demo\n',
    });
    expect(outcome.err).toContain('no JSON');
    expect((await parley(['dead', 'retry', '1', '2', '--json'], { daemon })).json()).toEqual([
      expect.objectContaining({ sequence: 1, index: 11 }),
      { sequence: 2, error: expect.objectContaining({ code: 'NOT_RETRYABLE' }) },
    ]);
    expect(await parley(['dead', 'retry', '2'], { daemon })).toMatchObject({ code: 1, out: '' });
  });

  it.each([
    [['dead', 'retry']],
    [['dead', 'retry', '1', '--all']],
    [['dead', 'retry', '1', '--code', 'X']],
    [['dead', 'retry', 'x']],
    [['dead', 'ls', '--publisher', 'a b']],
    [['dead', 'show', '0']],
  ])('%j is a usage error', async (args) => {
    expect((await parley(args, { daemon: office(three).daemon })).code).toBe(2);
  });
});
