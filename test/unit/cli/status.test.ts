import { describe, expect, it } from 'vitest';
import { ageText, renderDetail, renderStatus } from '../../../src/cli/render/state.ts';
import { clockTime, createPalette } from '../../../src/cli/render/text.ts';

const NOW = Date.parse('2026-11-22T05:00:00.000Z');
const ago = (seconds: number) => new Date(NOW - seconds * 1_000).toISOString();
const none = { count: 0, first: [] };
type Status = Parameters<typeof renderStatus>[0];
const STATUS: Status = {
  ...{ at: ago(0), conversations: 3, running: none, limited: none, stopped: none, failed: none },
  waiting: {
    count: 22,
    first: [
      {
        ...{ conversation: 'photos', title: 'Re\u001b[2Jname', agent: 'dev', status: 'waiting' },
        ...{ since: ago(7_300), for: 'approval', of: 'shell' },
      },
    ],
  },
  ...{ deadLetters: 1, queue: { posts: 2, oldestAt: ago(4) } },
  daemons: [
    {
      ...{
        daemon: 'A',
        version: '1.2.3',
        startedAt: ago(90),
        store: 'jetstream',
        data: '/d',
        nats: 'nats://n',
        http: null,
      },
      ...{
        servers: [
          { server: 'files', state: 'failed', error: 'ENOENT\nmore' },
          { server: 'web', state: 'ready', leftOut: ['bad: its schema is invalid'] },
        ],
        owns: { count: 3, first: ['photos'] },
        backOff: [{ model: 'big', key: 2, code: 'RATE_LIMITED', failures: 2, until: ago(-60) }],
      },
    },
    { daemon: 'B', error: 'it did not answer in time' },
  ],
  agents: [{ agent: 'critic', connected: false, absent: 'wait' }],
};

it('`parley status ID` shows the agents that do something, and the files with their limit', () => {
  const detail = {
    ...{ id: 'c', phase: 'plan', mode: 'chat', activeAgent: null, run: null },
    agents: { pm: { status: 'idle' }, dev: { status: 'running' } },
    files: { count: 2, bytes: 1_500_000, maxBytes: 2_000_000_000 },
  } as unknown as Parameters<typeof renderDetail>[0];
  const first = 'c: phase plan, mode chat, no agent has the floor\n  dev: running';
  expect(renderDetail(detail)).toBe(`${first}\n  2 files, 1.5 MB of 2000.0 MB`);
  expect(renderDetail({ ...detail, files: undefined })).toBe(first);
});

describe('the page of `parley status`', () => {
  it('shows daemons, the queue, what is not connected, and what waits for whom since when', () => {
    expect(renderStatus(STATUS, createPalette(false)).split('\n')).toEqual([
      'daemon A  version 1.2.3, up 1m, jetstream store',
      '  data /d',
      '  nats nats://n',
      '  http off',
      '  works on 3 conversations: photos and 2 more',
      'daemon B  it did not answer in time',
      '3 conversations; 2 posts not in a log, the oldest for 4s; 1 dead letter',
      'agent critic: not connected, turns wait for it',
      'MCP server files of A: not connected (ENOENT more)',
      'MCP server web of A: connected (left out bad: its schema is invalid)',
      `model big, key 2 of A: left out until ${clockTime(ago(-60))} (RATE_LIMITED, 2 failures in a row)`,
      '',
      'waiting (22)',
      'CONVERSATION  AGENT  SINCE  FOR                TITLE',
      expect.stringMatching(/^photos {8}dev {4}2h {5}approval of shell {2}Re[ -~]+name$/),
      '… and 21 more',
    ]);
  });

  it('says what the server did not answer', () => {
    const text = renderStatus({ ...STATUS, queue: null, deadLetters: null }, createPalette(false));
    expect(text).toContain('queue unknown: the server did not answer; dead letters unknown');
  });

  it.each([
    [0, '0s'],
    [59, '59s'],
    [61, '1m'],
    [7_200, '2h'],
    [200_000, '2d'],
    [-5, '0s'],
  ])('an age of %d seconds is %s', (seconds, text) => expect(ageText(ago(seconds), NOW)).toBe(text));
});
