import { describe, expect, it } from 'vitest';
import { messagesFrom, readMarkers, Thread } from '../../../src/console/model/thread/thread.ts';
import type { Entry } from '../../../src/conversation/index.ts';
import { answer, begin, calling, end, logOf, other, result, say } from './support.ts';

function threadOf(entries: readonly Entry[]): Thread {
  const thread = new Thread((slug) => slug.toUpperCase());
  for (const entry of entries) expect(thread.add(entry)).toBe(true);
  return thread;
}
type Drafts = ReturnType<typeof begin>[];
const BOB = { kind: 'person', id: 'bob', name: 'Bob' } as const;
const callOf = (thread: Thread, index: number) => {
  const block = thread.blocks[thread.placeOf(index)];
  return block?.kind === 'message' ? block.calls[0] : undefined;
};

describe('the thread of the console', () => {
  it('T1: the thread applies each entry once, and refuses one after a gap', () => {
    const [first, second, third] = logOf(say('one'), say('two'), say('three'));
    const thread = threadOf([first!, second!]);
    expect(thread.add(first!)).toBe(true);
    expect(thread.blocks).toHaveLength(2);
    const fresh = threadOf([first!]);
    expect(fresh.add(third!)).toBe(false);
    expect(fresh.entries).toHaveLength(1);
  });

  it('a call that started has run, whatever its result says', () => {
    const claim = '[not run: the turn was aborted]';
    const started = other('tool-started', { call: { index: 0, position: 0 } });
    const ran = threadOf(logOf(calling('pm', 'mcp__a__b'), started, result(0, claim)));
    const stopped = threadOf(logOf(calling('pm', 'mcp__a__b'), result(0, claim)));
    expect([callOf(ran, 0)?.hasRun, callOf(stopped, 0)?.hasRun]).toEqual([true, false]);
  });

  it('T2: the thread replaces a block that changes, and leaves the other blocks unchanged', () => {
    const log = logOf(say('one'), calling('pm', 'fs_read'), result(1, 'text', { duration: 12 }));
    const thread = threadOf(log.slice(0, 2));
    const before = [...thread.blocks];
    thread.add(log[2]!);
    expect(thread.blocks[0]).toBe(before[0]);
    expect(thread.blocks[1]).not.toBe(before[1]);
    expect(callOf(thread, 1)).toMatchObject({ status: 'done', result: { content: 'text', duration: 12 } });
  });

  it('the thread knows which calls the program that brought the tool answers', () => {
    const [said, called] = logOf(say('one'), calling('pm', 'set_color'));
    const asked = { ...called, callerCalls: [0] } as Entry;
    expect(callOf(threadOf([said!, called!]), 1)).not.toHaveProperty('isCallers');
    expect(callOf(threadOf([said!, asked]), 1)).toMatchObject({ status: 'asked', isCallers: true });
  });

  it('an agent whose running call asks a person waits, until the answer', () => {
    const place = { index: 1, position: 0 };
    const asks = { server: 'forms', message: 'Who comes?', schema: {} };
    const log = logOf(
      begin('pm'),
      calling('pm', 'book'),
      other('tool-started', { call: place }),
      other('approval-requested', { approvalId: 'a1', call: place, risk: 'risky', mayHaveRun: false, asks }),
      other('approval-answered', { approvalId: 'a1', call: place, answer: 'approve' }),
    );
    const statusAfter = (count: number) => threadOf(log.slice(0, count)).stateOf('pm').status;
    expect([3, 4, 5].map(statusAfter)).toEqual(['running', 'waiting', 'running']);
  });

  it('the thread follows a call from its request to its result, and keeps the first result', () => {
    const place = { index: 0, position: 0 };
    const log = logOf(
      calling('pm', 'shell', { command: 'ls' }),
      other('approval-requested', { approvalId: 'a1', call: place, risk: 'risky', mayHaveRun: false }),
      other('approval-answered', { approvalId: 'a1', call: place, answer: 'approve' }),
      other('tool-started', { call: place }),
      result(0, 'first'),
      result(0, 'second'),
    );
    const thread = threadOf(log.slice(0, 2));
    expect(thread.waitingCalls.map(({ place: at }) => at)).toEqual([place]);
    thread.add(log[2]!);
    expect(thread.waitingCalls).toEqual([]);
    thread.add(log[3]!);
    expect(callOf(thread, 0)).toMatchObject({
      status: 'running',
      answer: { answer: 'approve', author: { name: 'Parley' } },
    });
    thread.add(log[4]!);
    thread.add(log[5]!);
    expect(callOf(thread, 0)).toMatchObject({ status: 'done', result: { content: 'first' } });
  });

  it('a call that was answered and is asked about again waits again', () => {
    const call = { call: { index: 0, position: 0 }, approvalId: 'a1' };
    const again = { ...call, approvalId: 'a2', risk: 'risky', mayHaveRun: true };
    const thread = threadOf(
      logOf(
        calling('pm', 'shell', { command: 'ls' }),
        other('approval-requested', { ...call, risk: 'risky', mayHaveRun: false }),
        other('approval-answered', { ...call, answer: 'approve' }),
        other('approval-requested', again),
      ),
    );
    expect(thread.waitingCalls).toMatchObject([{ approval: { approvalId: 'a2' } }]);
  });

  it('the thread keeps a question open until it is answered', () => {
    const log = logOf(calling('pm', 'ask', { question: 'Which?', options: ['a', 2, 'b'] }), result(0, 'a'));
    const thread = threadOf(log.slice(0, 1));
    expect(thread.questions).toMatchObject([{ agent: 'pm', question: 'Which?', options: ['a', 'b'] }]);
    thread.add(log[1]!);
    expect(thread.questions).toEqual([]);
  });

  it('the thread replaces live text by its entry', () => {
    const place = { index: 0, position: 0 };
    const handed = threadOf(
      logOf(calling('pm', 'handoff'), other('handoff', { from: 'pm', to: 'dev', summary: 'x', call: place })),
    );
    expect(callOf(handed, 0)?.isTold).toBe(true);
    expect(handed.floor.activeAgent).toBe('dev');
    const entered = threadOf(
      logOf(
        calling('pm', 'set_phase', { phase: 'plan' }),
        other('phase-entered', { from: 'chat', to: 'plan', by: 'pm' }),
      ),
    );
    expect(callOf(entered, 0)?.isTold).toBe(true);
    const elsewhere = threadOf(
      logOf(
        calling('pm', 'set_phase', { phase: 'plan' }),
        other('phase-entered', { from: 'chat', to: 'execute', by: 'alice' }),
      ),
    );
    expect(callOf(elsewhere, 0)?.isTold).toBe(false);
  });

  it('the thread marks a delegation as answered, whatever other agents were asked', () => {
    const thread = threadOf(
      logOf(
        calling('pm', 'delegate'),
        other('delegation-requested', {
          from: 'pm',
          to: 'dev',
          request: 'how?',
          call: { index: 0, position: 0 },
        }),
        other('delegation-requested', {
          from: 'pm',
          to: 'qa',
          request: 'what?',
          call: { index: 0, position: 1 },
        }),
        answer('dev', 'so'),
        other('delegation-answered', { from: 'dev', to: 'pm', answers: [3], late: false }),
      ),
    );
    expect(thread.blocks.filter(({ kind }) => kind === 'passage')).toMatchObject([
      { to: 'dev', answeredAt: 3 },
      { to: 'qa', answeredAt: null },
    ]);
  });

  it('of two delegations to the same agent, each gets the place of its own answer', () => {
    const asked = (position: number) =>
      other('delegation-requested', {
        ...{ from: 'pm', to: 'dev', request: 'how?', call: { index: 0, position } },
      });
    const answered = (position: number, at: number) =>
      other('delegation-answered', {
        ...{ from: 'dev', to: 'pm', answers: [at], late: false, call: { index: 0, position } },
      });
    const thread = threadOf(
      logOf(
        ...[calling('pm', 'delegate'), asked(0), asked(1)],
        ...[answer('dev', 'so'), answered(0, 3), answer('dev', 'and so'), answered(1, 5)],
      ),
    );
    const passages = thread.blocks.filter(({ kind }) => kind === 'passage');
    expect(passages).toMatchObject([{ answeredAt: 3 }, { answeredAt: 5 }]);
  });

  it('the thread knows phase, mode, floor, run, stops and title', () => {
    const thread = threadOf(
      logOf(
        other('phase-entered', { from: 'chat', to: 'plan', by: 'alice' }),
        other('mode-entered', { from: 'agent', to: 'run', by: 'alice' }),
        other('run-started', { runId: 'r', workflowId: 'ship' }),
        other('node-entered', { runId: 'r', node: 'build', to: ['dev'] }),
        other('agent-stopped', { agent: null, by: 'alice' }),
        other('title-set', { title: 'A title' }),
      ),
    );
    expect(thread).toMatchObject({
      floor: { phase: 'plan', mode: 'run', run: { workflowId: 'ship', node: 'build' } },
      isStopped: true,
      title: 'A title',
    });
    expect(thread.blocks.map((block) => 'title' in block && block.title)).toEqual([
      'phase plan',
      'mode run',
      'run ship',
      'build',
      'The conversation was stopped',
    ]);
  });

  it('an agent is thinking while its turn runs, except while a call of it has no result', () => {
    const log = logOf(begin('pm'), calling('pm', 'fs_read'), result(1, 'text'), end('pm', 'completed', 0));
    const thread = threadOf([]);
    const thinkers = log.map((entry) => {
      thread.add(entry);
      return thread.thinking.map(({ agent, turnId }) => `${agent} ${turnId}`);
    });
    expect(thinkers).toEqual([['pm turn-pm'], [], ['pm turn-pm'], []]);
  });

  it('the thread shows that one agent stops, and that all resume together', () => {
    const log = logOf(
      other('agent-stopped', { agent: 'pm', by: 'alice' }),
      other('agent-resumed', { agent: null, by: 'alice' }),
    );
    const thread = threadOf(log.slice(0, 1));
    expect(thread.stateOf('pm').isStopped).toBe(true);
    thread.add(log[1]!);
    expect(thread.stateOf('pm').isStopped).toBe(false);
  });

  it('the thread shows that a turn failed, was stopped or ended at a limit, and not that it completed', () => {
    const thread = threadOf(
      logOf(
        end('a', 'completed', 0),
        end('b', 'failed', 0),
        end('c', 'aborted', 0),
        end('d', 'limited', 0),
        end('e', 'waiting', 0),
      ),
    );
    expect(thread.blocks.map((block) => block.kind === 'note' && block.agent)).toEqual(['b', 'c', 'd']);
    expect(thread.stateOf('e').status).toBe('waiting');
  });

  const endingOf = (...drafts: Drafts) => {
    const ended = threadOf(logOf(...drafts)).blocks.findLast((block) => block.kind === 'note');
    return ended?.kind === 'note' ? ended.title : null;
  };
  const stopped = (agent: string | null) => other('agent-stopped', { agent, by: 'bob', author: BOB });
  const interrupt = (...to: string[]) => say('No!', { author: BOB, to, delivery: 'interrupt' });
  const asks = other('delegation-requested', { from: 'lead', to: 'pm', call: { index: 0, position: 0 } });

  it.each<[string, Drafts, string]>([
    ['a stop', [stopped('pm')], 'This turn was stopped by Bob'],
    ['a stop of all', [stopped(null), answer('pm', 'half')], 'This turn was stopped by Bob'],
    ['a message', [interrupt('dev', 'pm')], 'This turn was interrupted by a message of Bob'],
    [
      'a dismissal',
      [other('agent-dismissed', { agent: 'pm', by: 'bob', author: BOB })],
      'This turn ended: Bob dismissed its agent',
    ],
    [
      'a reload',
      [other('team-changed', { agents: [{ agent: 'pm', change: 'removed', parts: [] }] })],
      'This turn ended: its agent was removed from the configuration',
    ],
    [
      'a fork',
      [other('forked', { from: 'demo', at: 2 })],
      'This turn ended with the fork: what followed is in the other conversation',
    ],
    ['others alone', [stopped('dev'), interrupt('dev'), say('Hi', { to: ['pm'] })], 'This turn was stopped'],
  ])('a turn that was aborted says by what: %s', (_, between, title) => {
    const before = [stopped('pm'), other('agent-resumed', { agent: 'pm', by: 'bob' })]; // of an earlier turn
    const resumed = begin('pm', { resumed: true });
    const log = [...before, say('Go'), begin('pm'), end('pm', 'waiting', 0), ...between, resumed];
    expect(endingOf(...log, end('pm', 'aborted', 0))).toBe(title);
  });

  it('a failed attempt is one line for people: who failed, why, and who is asked', () => {
    const failed = { agent: 'pm', model: 'big', code: 'TIMEOUT', requestHash: 'h', next: { model: 'small' } };
    const log = logOf(say('Go'), begin('pm'), other('attempt-failed', failed), answer('pm', 'Done'));
    expect(threadOf(log).blocks.find(({ kind }) => kind === 'note')).toMatchObject({
      ...{ tone: 'note', content: '', ended: null },
      title: 'big did not answer in time (TIMEOUT); small is asked instead',
    });
  });

  it('a turn that was aborted with its asker, or whose run left the node, says so', () => {
    const ended = end('pm', 'aborted', 0);
    expect(endingOf(asks, begin('pm'), ended)).toBe('This turn ended: LEAD does not wait for it any more');
    const entered = other('node-entered', { runId: 'r', node: 'build', to: ['pm'] });
    expect(endingOf(entered, begin('pm'), ended)).toBe('This turn ended: its run has left this node');
    expect(endingOf(entered, begin('pm'), answer('pm', 'x'), ended)).toBe('This turn was stopped');
  });

  it('an interrupting message that answered a question ended no turn', () => {
    const log = [begin('pm'), calling('pm', 'ask', { question: '?' }), interrupt('pm')];
    const answered = result(1, 'No!', { answers: [2] });
    expect(endingOf(...log, answered, stopped('pm'), end('pm', 'aborted', 0))).toBe(
      'This turn was stopped by Bob',
    );
    expect(endingOf(...log, answered, end('pm', 'aborted', 0))).toBe('This turn was stopped');
  });

  it('a turn that continues after a restart says so, and one that continues after an answer does not', () => {
    const titles = (...drafts: Drafts) =>
      threadOf(logOf(...drafts)).blocks.map((block) => block.kind === 'note' && block.title);
    const resumed = begin('pm', { resumed: true });
    expect(titles(begin('pm'), resumed)).toEqual(['continues its turn after a restart of the daemon']);
    expect(titles(begin('pm'), end('pm', 'waiting', 0), resumed)).toEqual([]);
  });

  it('a link to an entry that has no block leads to the block that shows it', () => {
    const call = { index: 2, position: 0 };
    const thread = threadOf(
      logOf(
        say('Go'),
        begin('pm'),
        calling('pm', 'shell'),
        other('approval-requested', { approvalId: 'a1', call, risk: 'risky', mayHaveRun: false }),
        say('Meanwhile'),
        other('approval-answered', { approvalId: 'a1', call, answer: 'approve' }),
        result(2, 'done'),
        other('feedback', { on: 2, value: 'up' }),
        begin('dev', { trigger: [0] }),
        say('Another one'),
        answer('dev', 'Done'),
        end('dev', 'completed', 4),
      ),
    );
    const shown = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11].map((index) => {
      const block = thread.blocks[thread.placeShowing(index)];
      return block?.index;
    });
    expect(shown).toEqual([0, 0, 2, 2, 4, 2, 2, 2, 0, 10, 10]);
  });

  it('a node waits for the next message until its turn begins', () => {
    const entered = other('node-entered', { runId: 'r', node: 'build', agent: 'pm' });
    const details = (...drafts: Drafts) =>
      threadOf(logOf(...drafts)).blocks.flatMap((block) => (block.kind === 'band' ? block.detail : []));
    expect(details(entered)).toEqual(['goes to PM with the next message']);
    expect(details(entered, say('Go'), begin('dev'))).toEqual(['goes to PM with the next message']);
    expect(details(entered, say('Go'), begin('pm'))).toEqual(['goes to PM']);
  });

  it('a change of the team names the agents as the page does', () => {
    const agents = [{ agent: 'pm', change: 'changed', parts: ['persona'] }];
    const [band] = threadOf(logOf(other('team-changed', { agents }))).blocks;
    expect(band).toMatchObject({ detail: 'PM: persona' });
  });

  it('a fork names the entry of the other conversation', () => {
    const [band] = threadOf(logOf(other('forked', { from: 'demo', at: 12 }))).blocks;
    expect(band).toMatchObject({ title: 'forked from', origin: { conversation: 'demo', index: 12 } });
  });

  it('a limit that was reached is shown with its words', () => {
    const limit = other('limit-reached', { limit: 'turnSeconds', agent: 'pm', content: 'it took too long' });
    expect(endingOf(limit)).toBe('A limit was reached: it took too long');
  });

  it.each([
    [
      'pm made 5 model calls in one turn; the limit is 5',
      'PM made 5 model calls in one turn; the limit is 5',
    ],
    ['the budget of dev-2: 9 tokens are used', 'the budget of DEV-2: 9 tokens are used'],
    ['the turn of pm was taken up 3 times', 'the turn of PM was taken up 3 times'],
    ['this request went from agent to agent', 'this request went from agent to agent'],
  ])('a limit names the agent as the page does: %s', (content, shown) => {
    const limit = other('limit-reached', { limit: 'turnSeconds', agent: 'pm', content });
    expect(endingOf(limit)).toBe(`A limit was reached: ${shown}`);
  });

  it('a summary names the entries that it covers apart, so that they are links', () => {
    const covers = (fromIndex: number, toIndex: number) =>
      threadOf(logOf(other('summary', { agent: 'pm', fromIndex, toIndex, content: 'Short.' }))).blocks[0];
    const title = 'is shown less from here on. Summed up: entries';
    expect(covers(2, 7)).toMatchObject({ title, summed: [2, 7] });
    expect(covers(2, 2)).toMatchObject({ summed: [2] });
  });

  it('an answer to a question that was over is late, and says who answered first', () => {
    const question = calling('pm', 'ask', { question: 'Which?' });
    const named = { replyTo: 'c0_0', to: ['pm'] };
    const lateFor = (...drafts: Drafts) =>
      threadOf(logOf(question, ...drafts)).blocks.flatMap((block) =>
        block.kind === 'message' ? [block.lateFor && (block.lateFor.resultBy ?? 'its turn ended')] : [],
      );
    const first = [say('red', { ...named, author: BOB }), result(0, 'red', { answers: [1] })];
    expect(lateFor(...first, say('blue', named))).toEqual([null, null, 'Bob']);
    expect(lateFor(result(0, '[no answer]'), say('blue', named))).toEqual([null, 'its turn ended']);
    expect(lateFor(...first, say('blue'), say('to none', { replyTo: 'c9_9' }))).toEqual(Array(4).fill(null));
  });
});

describe('the new messages of the thread', () => {
  it('are texts, questions and what agents say to each other, and not steps without a text', () => {
    const { blocks } = threadOf(
      logOf(
        say('seen'),
        say('new'),
        calling('pm', 'shell'),
        result(2, 'done'),
        calling('pm', 'ask', { question: '?' }),
        other('handoff', { from: 'pm', to: 'dev', summary: 'x', call: { index: 4, position: 0 } }),
        end('pm', 'failed', 0),
      ),
    );
    expect(messagesFrom(blocks, 1, '')).toBe(3);
    expect(messagesFrom(blocks, blocks.length, '')).toBe(0);
    expect(messagesFrom(blocks, 1, 'alice')).toBe(2); // not her own
  });
});

describe('the read markers of the thread', () => {
  it('a read marker is after the last block that its agent was shown, and several can share a place', () => {
    const log = logOf(
      say('one'),
      begin('pm'),
      answer('pm', 'two'),
      end('pm', 'completed', 4),
      say('three'),
      end('dev', 'completed', 1),
      end('qa', 'completed', 5),
      end('new', 'aborted', 0),
    );
    const thread = threadOf(log);
    expect(Object.fromEntries(readMarkers(thread))).toEqual({ 0: ['dev'], 1: ['pm'], 2: ['qa'] });
  });

  it('a read marker never moves back', () => {
    const thread = threadOf(
      logOf(say('one'), say('two'), end('pm', 'completed', 2), end('pm', 'completed', 1)),
    );
    expect(thread.stateOf('pm').cursor).toBe(2);
  });
});
