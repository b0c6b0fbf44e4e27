import { describe, expect, it } from 'vitest';
import { createTurnWatch, type Entry, Progress } from '../../../src/conversation/index.ts';
import { Reply } from '../../../src/gateway/openai/reply.ts';
import type { Called } from '../conversation/team-core.ts';
import { ToolCore } from '../conversation/tool-core.ts';

/** What the publisher of an answer to a question receives, on logs written by the rules of the daemon. */

/** Takes the entries of one append. Returns the text, and the open question once it is over. */
type Reader = (entries: readonly Entry[]) => string | null;
type Read = (before: readonly Entry[], post: number) => Reader;

const watched: Read = (before, post) => {
  const watch = createTurnWatch();
  for (const entry of before) watch.observe(entry);
  watch.addOutstanding(post, ['pm']);
  return (entries) => {
    for (const entry of entries) watch.observe(entry);
    if (!watch.quiet) return null;
    return watch.asking.length > 0 ? 'when?' : 'So.';
  };
};

const replied =
  (agent: string | null): Read =>
  (before, post) => {
    const reply = new Reply(post, ['pm'], agent, before);
    let text = '';
    return (entries) => {
      for (const said of reply.accept({ kind: 'entries', entries, isCurrent: true }))
        text += 'text' in said ? said.text : '';
      return reply.isOver ? text : null;
    };
  };

const told =
  (agent: string | null): Read =>
  (before, post) => {
    const progress = new Progress({ agent, before, posts: [{ index: post, agents: ['pm'] }] });
    let text = '';
    return (entries) => {
      for (const step of progress.accept({ kind: 'entries', entries, isCurrent: true })) {
        if (step.kind === 'said') text += step.text.words;
        if (step.kind === 'over' && step.ending.kind === 'waits')
          for (const { question } of step.ending.open) text += question;
      }
      return progress.isOver ? text : null;
    };
  };

const READERS: Readonly<Record<string, Read>> = {
  'the turn watch': watched,
  'a reply of any agent': replied(null),
  'a reply of the agent': replied('pm'),
  'a progress of any agent': told(null),
  'a progress of the agent': told('pm'),
};

interface Case {
  /** Beside the question that the post answers. */
  readonly calls: readonly Called[];
  /** What happens after the post. */
  readonly acts: readonly ((core: ToolCore) => void)[];
  readonly ending: 'So.' | 'when?';
}

const speak = (core: ToolCore) => core.act('pm', 'So.');
const finish = (core: ToolCore) => core.done('safe1');
const CASES: Readonly<Record<string, Case>> = {
  'its turn waits': { calls: [], acts: [speak], ending: 'So.' },
  'a tool of its turn runs': { calls: [['safe1']], acts: [finish, speak], ending: 'So.' },
  'a tool of its turn runs and the daemon crashes': {
    calls: [['safe1']],
    acts: [(core) => core.crash(), finish, speak],
    ending: 'So.',
  },
  'another agent works for its turn': {
    calls: [['delegate', { to: 'dev', request: 'look' }]],
    acts: [(core) => core.act('dev', 'Looked.'), speak],
    ending: 'So.',
  },
  'its turn asks a second question': {
    calls: [['ask', { question: 'when?' }]],
    acts: [],
    ending: 'when?',
  },
  'a tool of its turn runs and its turn asks a second question': {
    calls: [['safe1'], ['ask', { question: 'when?' }]],
    acts: [finish],
    ending: 'when?',
  },
};

const EACH = Object.entries(CASES).flatMap(([when, one]) =>
  Object.entries(READERS).map(([reader, read]) => [when, reader, one, read] as const),
);

describe('a post that answers a question', () => {
  it.each(EACH)(
    'when %s, %s ends with the turn that the post answers, or with its next question',
    (_, __, one, read) => {
      const core = ToolCore.calling(['ask', { question: 'why?' }], ...one.calls);
      const from = core.entries.length;
      core.post('because', { to: ['pm'] });
      const first = core.boundaries.length - 1;
      for (const act of one.acts) act(core);
      const reader = read(core.entries.slice(0, from), from);
      const seen = core.boundaries
        .slice(first)
        .map((end, place) => reader(core.entries.slice(core.boundaries[first + place - 1], end)));
      expect(seen).toEqual([...one.acts.map(() => null), one.ending]);
    },
  );

  it('a reply streams the words of a running turn under the name that they have from its first post on', () => {
    const core = ToolCore.calling(['ask', { question: 'why?' }], ['safe1']);
    const from = core.entries.length;
    core.post('because', { to: ['pm'] });
    finish(core);
    const turnId = core.callOf('pm').turnId;
    const chunk = { turnId, call: 'c', n: 0, type: 'text' as const, delta: 'So' };
    const names = [0, from].map((post) => {
      const before = core.entries.slice(0, post);
      const progress = new Progress({ agent: 'pm', before, posts: [{ index: post, agents: ['pm'] }] });
      progress.accept({ kind: 'entries', entries: core.entries.slice(post), isCurrent: true });
      return progress.accept({ kind: 'live', agent: 'pm', chunk });
    });
    expect(names[1]).toMatchObject([{ kind: 'words', delta: 'So' }]);
    expect(names[1]).toEqual(names[0]);
  });
});
