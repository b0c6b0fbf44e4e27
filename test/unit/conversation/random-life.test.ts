import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  Conversation,
  type ConversationState,
  checkKnowledge,
  checkLaws,
  decide,
  EMPTY_STATE,
  type Entry,
  type EntryOf,
  evolve,
  Knowledge,
  planRepair,
  viewOf,
} from '../../../src/conversation/index.ts';
import { runs } from '../../support/runs.ts';
import { Core, expectCursors, messagesOf, partsOf, rulesFor, SLUGS, withoutBlock } from './core.ts';
import { frozen, life, typed } from './life.ts';
import { OPERATOR, sizesArbitrary, stepsArbitrary, take } from './random-steps.ts';

// The number of runs bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

/**
 * Any interleaving of posts, turns, stops and crashes. Each test adds one law to the checks of
 * `Core.checkRequest`. On failure fast-check prints its seed and path.
 */

describe('any interleaving of posts, turns and crashes', () => {
  it('V1 to V11: every request equals what the rules give for the whole log, with the same bytes when built twice', () => {
    life(200, (core) => core.drain(), undefined, true);
  });

  it('V17: with small windows a summary replaces what it names, and no other message moves', () => {
    let summaries = 0;
    const check = (core: Core) => {
      core.drain();
      expectCursors(core.entries);
      expect(checkKnowledge(core.entries)).toEqual([]);
      summaries += typed(core.entries, 'summary').length;
    };
    life(300, check, undefined, true, fc.integer({ min: 130, max: 250 }));
    expect(summaries).toBeGreaterThan(0); // Otherwise the test would check nothing.
  });

  it('PERSON-7: the session of each request is that of the newest message in its turns whose sender had the right to name it', () => {
    let changes = 0;
    life(200, (core) => {
      core.drain();
      expect(checkLaws(core.entries)).toEqual([]);
      const current = new Map<string, string>();
      let state = EMPTY_STATE;
      for (const entry of core.entries) {
        state = evolve(state, entry);
        const [agent, taken] =
          entry.type === 'turn-started'
            ? [entry.agent, entry.resumed ? [] : entry.trigger] // a turn that continues has taken its trigger
            : entry.type === 'message-delivered'
              ? [entry.agent, entry.entries]
              : [entry.author.id, (entry.type === 'message' && entry.answers) || []];
        for (const index of [...taken].sort((a, b) => a - b)) {
          const message = core.entries[index];
          if (message?.type !== 'message' || !message.setsSession || !message.sessionId) continue;
          if (current.get(agent) !== message.sessionId) changes++;
          current.set(agent, message.sessionId);
        }
        if (entry.type !== 'turn-started' && entry.type !== 'message-delivered') continue;
        expect([entry.index, state.agents[agent]?.turn?.session?.id]).toEqual([
          entry.index,
          current.get(agent),
        ]);
        // The session and the turn that it belongs to are one append: no crash can separate them.
        const before = core.entries[entry.index - 1];
        if (before?.type === 'session-set') expect(core.boundaries).not.toContain(entry.index);
      }
    });
    expect(changes).toBeGreaterThan(0); // Otherwise the test would check nothing.
  });

  it('L8 V14: every turn-ended carries the cursor that the rule gives, in the same batch', () => {
    life(80, (core) => {
      core.drain();
      expectCursors(core.entries);
      expect(checkKnowledge(core.entries)).toEqual([]);
      for (const ended of typed(core.entries, 'turn-ended')) {
        const answer = core.entries.findLast(
          (entry) => entry.index < ended.index && entry.turnId === ended.turnId && entry.type === 'message',
        );
        const cut = core.boundaries.find((length) => length > ended.index) ?? 0;
        if (ended.outcome === 'completed' || ended.outcome === 'failed')
          expect(core.boundaries.find((length) => length > (answer?.index ?? 0))).toBe(cut);
      }
    });
  });

  it('L7: every message is in each later view exactly once and unchanged, and only the block repeats messages', () => {
    const later = (core: Core) => {
      for (const agent of core.rules.roster.agents.keys()) {
        const texts = withoutBlock(core.view(agent)).map((message) => message.content ?? '');
        const all = texts.join('\n');
        const turn = core.conversation.state.agents[agent]?.turn;
        const waiting = new Set(core.conversation.state.agents[agent]?.waiting.map((item) => item.index));
        for (const entry of typed(core.entries, 'message')) {
          const words = /w\d+;/.exec(entry.content ?? '')?.[0];
          if (!words) continue;
          const meanwhile = turn && entry.index > turn.startedAt && entry.author.id !== agent;
          const count = all.split(words).length - 1;
          const never =
            entry.includeInContext === false ||
            entry.isCollapsed ||
            waiting.has(entry.index) ||
            (entry.role === 'tool' && entry.author.id !== agent);
          if (never) expect([entry.index, count]).toEqual([entry.index, 0]);
          else if (!meanwhile) expect([entry.index, count]).toEqual([entry.index, 1]);
          else expect(count).toBeLessThanOrEqual(1);
        }
      }
    };
    const rested = (core: Core) => {
      core.drain();
      later(core);
    };
    life(60, rested, later);
  });

  it('V10: the two markers appear together or not at all, the block right before the marker, and never for a newcomer', () => {
    life(
      60,
      () => undefined,
      (core) => {
        for (const agent of core.rules.roster.agents.keys()) {
          const kinds = partsOf(core.view(agent)).map((part) => part.kind);
          const block = kinds.indexOf('away-block');
          expect(kinds.filter((kind) => kind === 'away-block').length).toBe(block < 0 ? 0 : 1);
          expect(kinds.indexOf('marker')).toBe(block < 0 ? -1 : block + 1);
          if (block < 0) continue;
          expect(kinds[block + 2]).toBe('trigger');
          const started = core.conversation.state.agents[agent]?.turn?.startedAt ?? 0;
          const spoke = typed(core.entries, 'message').some(
            (entry) => entry.role === 'assistant' && entry.author.id === agent && entry.index < started,
          );
          expect(spoke).toBe(true);
        }
      },
    );
  });

  it('V10: the block lists exactly the messages by others that no answered request of this agent has contained', () => {
    life(
      60,
      () => undefined,
      (core) => {
        for (const agent of core.rules.roster.agents.keys()) {
          const parts = partsOf(core.view(agent));
          const block = parts.find((part) => part.kind === 'away-block')?.entries;
          const turn = core.conversation.state.agents[agent]?.turn;
          if (!turn) continue;
          const own = typed(core.entries, 'message').filter(
            (entry) =>
              entry.role === 'assistant' && entry.author.id === agent && entry.index < turn.startedAt,
          );
          const shown = new Set<number>();
          // The entries before each own answer are what its request contained.
          for (const answer of own)
            for (const part of partsOf(viewOf(core.entries.slice(0, answer.index), agent)))
              for (const index of part.entries) shown.add(index);
          const expected = parts
            .filter((part) => part.kind === 'history')
            .flatMap((part) => part.entries)
            .filter((index) => {
              const entry = core.entries[index];
              return entry?.type === 'message' && entry.author.id !== agent && !shown.has(index);
            });
          expect(block ?? []).toEqual(own.length > 0 ? expected : []);
        }
      },
    );
  });

  it('V6: the trigger is last in the first request of a turn, and only entries of the turn follow it later', () => {
    life(
      60,
      () => undefined,
      (core) => {
        for (const call of core.calls) {
          const { tail } = core.view(call.agent);
          const turn = core.conversation.state.agents[call.agent]?.turn;
          const kinds = tail
            .map((part) => part.kind)
            .filter((kind) => kind !== 'away-block' && kind !== 'marker');
          if (turn?.modelCalls === 0) expect(new Set(kinds)).toEqual(new Set(['trigger']));
          else expect(kinds.join(' ')).toMatch(/^(trigger )+turn( turn)*$/);
        }
      },
    );
  });

  it('V11: an agent has one turn at a time, and every trigger gets exactly one turn-ended', () => {
    life(80, (core) => {
      core.do({ type: 'resume', agent: null, by: OPERATOR });
      for (const agent of core.rules.roster.agents.keys()) core.do({ type: 'resume', agent, by: OPERATOR });
      core.drain();
      const started = new Map<string, EntryOf<'turn-started'>>();
      const open = new Map<string, string>();
      for (const entry of core.entries) {
        if (entry.type === 'turn-started') {
          expect(open.get(entry.agent) ?? entry.turnId).toBe(entry.turnId);
          expect(entry.resumed ?? false).toBe(started.has(entry.turnId));
          started.set(entry.turnId, started.get(entry.turnId) ?? entry);
          open.set(entry.agent, entry.turnId);
        } else if (entry.type === 'turn-ended') {
          expect(open.get(entry.agent)).toBe(entry.turnId);
          open.delete(entry.agent);
        }
      }
      expect([...open]).toEqual([]);
      const dealtWith = [
        ...[...started.values()].flatMap((turn) => turn.trigger.map((index) => `${turn.agent} ${index}`)),
        ...typed(core.entries, 'message-delivered').flatMap((entry) =>
          entry.entries.map((index) => `${entry.agent} ${index}`),
        ),
      ];
      const routed = typed(core.entries, 'message').flatMap((entry) =>
        (entry.role === 'user' ? (entry.to ?? []) : []).map((agent) => `${agent} ${entry.index}`),
      );
      // A turn that was resumed after a limit answers the notice of that limit.
      const limits = typed(core.entries, 'limit-reached').map((entry) => `${entry.agent} ${entry.index}`);
      const messages = dealtWith.filter((item) => !limits.includes(item));
      expect(messages.sort()).toEqual(routed.sort()); // No trigger is unanswered, and none is answered twice.
      expect(planRepair(core.entries)).toEqual([]);
    });
  });

  it('L3 L4: log indexes are dense and ids unique', () => {
    life(60, (core) => {
      expect(core.entries.map((entry) => entry.index)).toEqual(core.entries.map((_, at) => at));
      expect(new Set(core.entries.map((entry) => entry.id)).size).toBe(core.entries.length);
    });
  });

  it('L1: the state is a fold of the log alone: a new process that reads the log has the same state and views', () => {
    life(60, (core) => {
      const reader = new Core(core.rules, false);
      reader.conversation = new Conversation(core.rules, JSON.parse(JSON.stringify(core.entries)));
      expect(reader.conversation.state).toEqual(core.conversation.state);
      for (const agent of core.rules.roster.agents.keys())
        expect(messagesOf(reader.view(agent))).toEqual(messagesOf(core.view(agent)));
    });
  });

  it('L7: an incremental view of an agent equals one built fresh, at every length', () => {
    life(40, (core) => {
      for (const agent of core.rules.roster.agents.keys()) {
        const growing: Entry[] = [];
        const kept = new Knowledge(agent, { includeCollapsed: false });
        for (const entry of core.entries) {
          growing.push(entry);
          kept.catchUp(growing);
        }
        const fresh = new Knowledge(agent, { includeCollapsed: false });
        fresh.catchUp(core.entries);
        expect(kept).toEqual(fresh);
      }
    });
  });

  it('DECIDE-1: the decider is pure: frozen inputs give the same output', () => {
    life(
      60,
      () => undefined,
      (core) => {
        const entries = core.entries;
        const state = frozen(core.conversation.state) as ConversationState;
        const again = () => {
          let ids = 0;
          return decide(
            state,
            frozen({
              type: 'post',
              post: { id: 'pure', content: 'w;', author: { id: 'zoe', name: 'Zoe' }, delivery: 'interrupt' },
            }),
            {
              conversation: 'pure',
              roster: core.rules.roster,
              phases: core.rules.phases,
              limits: core.rules.limits,
              workflows: core.rules.workflows,
              tools: core.rules.tools,
              ownRequests: true,
              now: 1,
              newId: () => `pure-${ids++}`,
              entries: frozen(entries.slice()),
              indexOfId: () => undefined,
              indexOfPost: () => undefined,
              knowledge: (agent) => {
                const knowledge = new Knowledge(agent, { includeCollapsed: false });
                knowledge.catchUp(entries);
                return knowledge;
              },
            },
          );
        };
        expect(again()).toEqual(again());
      },
    );
  });

  it('A1: a second recovery changes no view, answers nothing twice and adds no outstanding work', () => {
    life(60, (core) => {
      // Safe tools run once more; only after that does another crash change nothing.
      core.crash();
      core.crash();
      const owed = planRepair(core.entries);
      const views = [...core.rules.roster.agents.keys()].map((agent) => messagesOf(core.view(agent)));
      core.crash();
      expect(planRepair(core.entries)).toEqual(owed);
      expect([...core.rules.roster.agents.keys()].map((agent) => messagesOf(core.view(agent)))).toEqual(
        views,
      );
    });
  });
});

// The number of runs bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

describe('a crash at any batch boundary', () => {
  it('L6 L12: recovery after a crash leaves no trigger unanswered, answers none twice, and repeats a call with the same bytes', () => {
    fc.assert(
      fc.property(sizesArbitrary, stepsArbitrary, fc.nat(), (sizes, steps, cut) => {
        const core = new Core(rulesFor(SLUGS.slice(0, sizes.agents), { modelCallsPerTurn: sizes.limit }));
        for (const step of steps) take(core, step);
        core.crash(cut % core.boundaries.length);
        for (const agent of [null, ...core.rules.roster.agents.keys()])
          core.do({ type: 'resume', agent, by: OPERATOR });
        core.drain();
        expectCursors(core.entries);
        const routed = typed(core.entries, 'message').flatMap((entry) =>
          entry.role === 'user' ? (entry.to ?? []).map((agent) => ({ agent, index: entry.index })) : [],
        );
        for (const { agent, index } of routed) {
          const turns = typed(core.entries, 'turn-started').filter(
            (entry) => entry.agent === agent && entry.trigger.includes(index),
          );
          const delivered = typed(core.entries, 'message-delivered').filter(
            (entry) => entry.agent === agent && entry.entries.includes(index),
          );
          const turnIds = new Set([...turns, ...delivered].map((entry) => entry.turnId));
          expect([index, turnIds.size]).toEqual([index, 1]);
          const ends = typed(core.entries, 'turn-ended').filter((entry) => turnIds.has(entry.turnId));
          expect([index, ends.length]).toEqual([index, 1]);
        }
      }),
      { numRuns: runs(40) },
    );
  });
});
