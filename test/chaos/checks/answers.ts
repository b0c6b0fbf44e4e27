import type { Entry, EntryOf } from '../../../src/client/index.ts';
import { ofType } from '../../support/log.ts';
import { type Observed, type Violation, violation } from '../findings.ts';

/**
 * Checks that each request to an agent reached one turn, and that the turn had one visible end: an answer, a
 * handoff, an error entry, an abort, a limit. Reads only the entries.
 */

type Turn = { readonly turnId: string; readonly agent: string; readonly entries: Entry[] };

export function checkAnswered({ logs }: Pick<Observed, 'logs'>): Violation[] {
  return [...logs].flatMap(([conversation, entries]) => [
    ...outstandingIn(conversation, entries),
    ...turnsOf(entries).flatMap((turn) => checkEnd(conversation, turn)),
  ]);
}

/**
 * The outstanding work of a log: turns that run or wait, messages that reached no agent, calls that need approval.
 */
export function outstandingIn(conversation: string, entries: readonly Entry[]): Violation[] {
  const outstanding = (index: number, text: string) => violation('outstanding', conversation, index, text);
  const open = turnsOf(entries).filter((turn) => endOf(turn) === undefined);
  const reached = reachedIn(entries);
  const answered = new Set(ofType(entries, 'approval-answered').map(({ approvalId }) => approvalId));
  const ended = new Set(
    ofType(entries, 'turn-ended').flatMap((end) => (end.outcome === 'waiting' ? [] : end.turnId)),
  );
  return [
    ...open.map(({ turnId, agent, entries: own }) =>
      outstanding(own[0]?.index ?? 0, `turn ${turnId} of ${agent} has not ended`),
    ),
    ...entries.flatMap((entry) =>
      addresseesOf(entry)
        .filter((agent) => !reached.has(`${agent} ${entry.index}`))
        .map((agent) => outstanding(entry.index, `${entry.type} ${entry.id} never reached ${agent}`)),
    ),
    ...ofType(entries, 'approval-requested')
      .filter(({ approvalId, turnId }) => !answered.has(approvalId) && !ended.has(turnId ?? ''))
      .map(({ index, approvalId }) => outstanding(index, `${approvalId} waits for approval`)),
  ];
}

function checkEnd(conversation: string, turn: Turn): Violation[] {
  const end = endOf(turn);
  if (!end) return []; // outstanding
  const wrong = (text: string) => [violation('answer', conversation, end.index, text)];
  const said = ofType(turn.entries, 'message').filter(({ role }) => role === 'assistant');
  const finals = said.filter(({ tool_calls: calls }) => calls === undefined);
  if (finals.length > 1) return wrong(`turn ${turn.turnId} has ${finals.length} answers`);
  const [final] = finals;
  switch (end.outcome) {
    case 'completed': {
      const passedOn = turn.entries.some(({ type }) => type === 'handoff' || type === 'run-ended');
      const isWhole = final?.partType === 'text' && !!final.content;
      return isWhole || passedOn ? [] : wrong(`turn ${turn.turnId} completed without an answer`);
    }
    case 'failed':
      return final?.partType === 'error' ? [] : wrong(`turn ${turn.turnId} failed without a reason`);
    case 'limited': {
      const tells = turn.entries.some(({ type }) => type === 'limit-reached');
      return tells ? [] : wrong(`turn ${turn.turnId} was limited without naming the limit`);
    }
    default:
      return [];
  }
}

function turnsOf(entries: readonly Entry[]): Turn[] {
  const turns = new Map<string, Turn>();
  for (const entry of entries) {
    if (entry.type === 'turn-started' && !turns.has(entry.turnId))
      turns.set(entry.turnId, { turnId: entry.turnId, agent: entry.agent, entries: [] });
    turns.get(entry.turnId ?? '')?.entries.push(entry);
  }
  return [...turns.values()];
}

function endOf(turn: Turn): EntryOf<'turn-ended'> | undefined {
  return ofType(turn.entries, 'turn-ended').find(({ outcome }) => outcome !== 'waiting');
}

/** The agents that an entry triggers. */
function addresseesOf(entry: Entry): readonly string[] {
  if (entry.type === 'handoff' || entry.type === 'delegation-requested') return [entry.to];
  const fromPerson = entry.type === 'message' && entry.role === 'user' && entry.includeInContext !== false;
  return fromPerson ? (entry.to ?? []) : [];
}

/** `<agent> <index>` of the triggers of a turn. */
function reachedIn(entries: readonly Entry[]): Set<string> {
  return new Set(
    entries.flatMap((entry) => {
      if (entry.type === 'turn-started') return entry.trigger.map((index) => `${entry.agent} ${index}`);
      if (entry.type === 'message-delivered') return entry.entries.map((index) => `${entry.agent} ${index}`);
      const isResult = entry.type === 'message' && entry.role === 'tool';
      return isResult ? (entry.answers ?? []).map((index) => `${entry.author.id} ${index}`) : [];
    }),
  );
}
