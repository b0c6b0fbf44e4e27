import { describe, expect, it, vi } from 'vitest';
import {
  AgentView,
  DEFAULT_VIEW_POLICY,
  type Entry,
  Knowledge,
  viewOf,
} from '../../../src/conversation/index.ts';
import { expectedCursor } from '../../support/view-oracle.ts';
import { expectAsRuled, messagesOf, withoutBlock } from './core.ts';
import { handMadeLogs } from './hand-made.ts';

// The number of runs bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

/** Logs with delegations, questions, waits, handoffs, imports, and invalid entries that `decide` does not write. */

/** The log lengths at which the agent makes a request or could make one. */
function moments(log: readonly Entry[], agent: string): number[] {
  const own = log.filter(
    (entry) =>
      (entry.type === 'turn-started' && entry.agent === agent) ||
      (entry.type === 'message' &&
        (entry.role === 'tool' || entry.role === 'assistant') &&
        entry.author.id === agent) ||
      (entry.type === 'message-delivered' && entry.agent === agent),
  );
  return [...own.map((entry) => entry.index + 1), log.length];
}

describe('a log that others wrote', () => {
  it.each([false, true])(
    'V1 to V7, V10, V11: each incremental view is what the rules give (collapsed entries shown: %s)',
    (includeCollapsed) => {
      handMadeLogs(60, (log, agent) => {
        const view = new AgentView(log, agent, { ...DEFAULT_VIEW_POLICY, includeCollapsed });
        for (const length of moments(log, agent))
          expectAsRuled(log.slice(0, length), agent, view.build(length), includeCollapsed);
      });
    },
  );

  it('L6: an incremental view has the bytes of one built fresh', () => {
    handMadeLogs(30, (log, agent) => {
      const view = new AgentView(log, agent, DEFAULT_VIEW_POLICY);
      for (const length of moments(log, agent))
        expect(messagesOf(view.build(length))).toEqual(messagesOf(viewOf(log.slice(0, length), agent)));
    });
  });

  it('V14: the cursor at the end of each turn is what the rule gives', () => {
    handMadeLogs(75, (log, agent) => {
      const knowledge = new Knowledge(agent, { includeCollapsed: false });
      for (const entry of log) {
        if (entry.type !== 'turn-ended' || entry.agent !== agent || entry.outcome === 'waiting') continue;
        knowledge.catchUp(log, entry.index);
        const cursor = knowledge.cursorAfter([], entry.index + 1);
        expect([entry.index, cursor]).toEqual([entry.index, expectedCursor(log, agent, entry.index)]);
      }
    });
  });

  it('V9: without block and marker each request of a turn is a prefix of the next', () => {
    handMadeLogs(
      50,
      (log, agent) => {
        const view = new AgentView(log, agent, DEFAULT_VIEW_POLICY);
        let before: string[] = [];
        for (const length of moments(log, agent)) {
          const built = view.build(length);
          const open = JSON.stringify(built.tail).includes('[no result yet]');
          if (!view.knowledge.turn || open) continue;
          const now = withoutBlock(built).map((message) => JSON.stringify(message));
          expect(now.slice(0, before.length)).toEqual(before);
          before = now;
        }
      },
      false,
    );
  });

  it("L18: no view contains another agent's calls or results", () => {
    handMadeLogs(30, (log, agent) => {
      const built = viewOf(log, agent);
      for (const part of [...built.history, ...built.tail]) {
        if (part.message.role !== 'tool' && !part.message.tool_calls) continue;
        const index = Number(
          /^c(\d+)_/.exec(part.message.tool_call_id ?? part.message.tool_calls?.[0]?.id ?? '')?.[1],
        );
        expect(log[index]?.author.id).toBe(agent);
      }
    });
  });

  it('V3 V14: an entry that an aborted call contained only in a result counts as shown once a later request is answered', () => {
    const agent = { kind: 'agent', id: 'pm', name: 'PM' } as const;
    const alice = { kind: 'person', id: 'alice', name: 'Alice' } as const;
    const at = { id: 'x', createdAt: '' };
    const call = { id: 'x', type: 'function', function: { name: 'ask', arguments: '{}' } } as const;
    const ended = { type: 'turn-ended', author: agent, agent: 'pm', lastProcessedMessageIndex: 0 } as const;
    const log: Entry[] = [
      { ...at, index: 0, type: 'message', role: 'user', author: alice, content: 'go', to: ['pm'] },
      { ...at, index: 1, type: 'turn-started', author: agent, agent: 'pm', turnId: 't', trigger: [0] },
      {
        ...at,
        index: 2,
        type: 'message',
        role: 'assistant',
        author: agent,
        content: null,
        tool_calls: [call],
      },
      { ...at, index: 3, type: 'message', role: 'user', author: alice, content: 'the blue one', to: ['pm'] },
      {
        ...at,
        index: 4,
        type: 'message',
        role: 'tool',
        author: agent,
        content: 'the blue one',
        call: { index: 2, position: 0 },
        answers: [3],
      },
      { ...at, index: 5, ...ended, turnId: 't', outcome: 'aborted' },
      { ...at, index: 6, type: 'message', role: 'user', author: alice, content: 'again', to: ['pm'] },
      { ...at, index: 7, type: 'turn-started', author: agent, agent: 'pm', turnId: 'u', trigger: [6] },
      { ...at, index: 8, type: 'message', role: 'assistant', author: agent, content: 'blue it is' },
    ];
    const knowledge = new Knowledge('pm', { includeCollapsed: false });
    knowledge.catchUp(log, 5);
    expect(knowledge.cursorAfter([], 6)).toBe(3);
    knowledge.catchUp(log);
    expect(knowledge.cursorAfter([], 10)).toBe(10);
  });
});
