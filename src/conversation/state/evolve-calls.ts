import { canonicalArguments } from '../../kernel/index.ts';
import type { CallPlace, EntryOf, MessageEntry } from '../log/entry.ts';
import { changeAgent, changeTurn, type Mutable } from './mutable.ts';
import { type ConversationState, type OpenCall, ownerOf, type Run, samePlace, type Turn } from './state.ts';

/** How entries change a tool call, from its request to its result. The call's address leads to the turn (L10). */

type Next = Mutable<ConversationState>;

/** The calls of an answer: all open, none started. */
export function requestedCalls(answer: MessageEntry, askedAt: number): OpenCall[] {
  return (answer.tool_calls ?? []).map((call, position) => ({
    place: { index: answer.index, position },
    name: call.function.name,
    arguments: canonicalArguments(call.function.arguments),
    askedAt,
    started: false,
    startedMs: 0,
    starts: 0,
    // Logs of older versions have no risks: treat the call as risky.
    risk: answer.risks?.[position] ?? ('risky' as const),
    approval: null,
  }));
}

function changeCall(next: Next, place: CallPlace, change: (call: OpenCall, turn: Turn) => OpenCall): void {
  const owner = ownerOf(next, place);
  if (!owner) return;
  changeAgent(next, owner, (agent) =>
    changeTurn(agent, (turn) => {
      turn.openCalls = turn.openCalls.map((call) =>
        samePlace(call.place, place) ? change(call, turn) : call,
      );
    }),
  );
}

export function applyToolStarted(next: Next, { call: place, risk }: EntryOf<'tool-started'>): void {
  changeCall(next, place, (call, turn) => ({
    ...call,
    started: true,
    startedMs: turn.workedMs,
    starts: call.starts + 1,
    risk: risk ?? call.risk,
  }));
}

export function applyApprovalRequested(next: Next, entry: EntryOf<'approval-requested'>): void {
  const { approvalId: id, mayHaveRun, createdAt: requestedAt, accepts } = entry;
  changeCall(next, entry.call, (call) => ({
    ...call,
    started: false,
    approval: { id, status: 'pending', mayHaveRun, requestedAt, accepts },
  }));
}

export function applyApprovalAnswered(next: Next, { call: place }: EntryOf<'approval-answered'>): void {
  if (!place) return;
  changeCall(next, place, (call) => ({
    ...call,
    approval: call.approval && { ...call.approval, status: 'given' },
  }));
}

export function applyResult(next: Next, entry: MessageEntry): void {
  const { call } = entry;
  const owner = call && ownerOf(next, call);
  if (!call || !owner) return;
  const answers = entry.answers ?? [];
  if (next.run?.agent === owner) returnInput(next, next.run, answers);
  changeAgent(next, owner, (agent) => {
    agent.executionMs += entry.duration ?? 0;
    agent.waiting = agent.waiting.without(answers);
    changeTurn(agent, (turn) => {
      turn.askedAt = entry.index;
      turn.arrived = [...turn.arrived, ...answers];
      const open = turn.openCalls.find(({ place }) => samePlace(place, call));
      // Concurrent calls take the time of the longest one.
      if (open) turn.workedMs = Math.max(turn.workedMs, open.startedMs + (entry.duration ?? 0));
      turn.openCalls = turn.openCalls.filter((open) => !samePlace(open.place, call));
    });
  });
}

/** The answer to a question is not the run's input: the run waits for another message (V18). */
function returnInput(next: Next, { input, ...run }: Run, answers: readonly number[]): void {
  if (input !== undefined && answers.includes(input)) next.run = { ...run, awaitsInput: true };
}
