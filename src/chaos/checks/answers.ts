import type { Entry, EntryOf } from '../../client/index.ts';
import { type Observed, type Violation, violation } from '../findings.ts';

/**
 * What was for an agent reached one turn of it, and that turn came to one end that people see: an answer, a handoff,
 * a failure as content, an abort, a limit. Read from the entries alone.
 */

type Turn = { readonly turnId: string; readonly agent: string; readonly entries: Entry[] };

export function checkAnswered({ logs }: Pick<Observed, 'logs'>): Violation[] {
  return [...logs].flatMap(([conversation, entries]) => [
    ...owedIn(conversation, entries),
    ...turnsOf(entries).flatMap((turn) => checkEnd(conversation, turn)),
  ]);
}

/** What a log still owes: turns that run or wait, messages that reached nobody, calls that wait for a person. */
export function owedIn(conversation: string, entries: readonly Entry[]): Violation[] {
  const owed = (index: number, text: string) => violation('owed', conversation, index, text);
  const open = turnsOf(entries).filter((turn) => endOf(turn) === undefined);
  const reached = reachedIn(entries);
  const answered = new Set(ofType(entries, 'approval-answered').map(({ approvalId }) => approvalId));
  const ended = new Set(
    ofType(entries, 'turn-ended').flatMap((end) => (end.outcome === 'waiting' ? [] : end.turnId)),
  );
  return [
    ...open.map(({ turnId, agent, entries: own }) =>
      owed(own[0]?.index ?? 0, `turn ${turnId} of ${agent} has not ended`),
    ),
    ...entries.flatMap((entry) =>
      addresseesOf(entry)
        .filter((agent) => !reached.has(`${agent} ${entry.index}`))
        .map((agent) => owed(entry.index, `${entry.type} ${entry.id} never reached ${agent}`)),
    ),
    ...ofType(entries, 'approval-requested')
      .filter(({ approvalId, turnId }) => !answered.has(approvalId) && !ended.has(turnId ?? ''))
      .map(({ index, approvalId }) => owed(index, `${approvalId} waits for a person's word`)),
  ];
}

function checkEnd(conversation: string, turn: Turn): Violation[] {
  const end = endOf(turn);
  if (!end) return []; // owed
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
      return final?.partType === 'error' ? [] : wrong(`turn ${turn.turnId} failed and does not say why`);
    case 'limited': {
      const tells = turn.entries.some(({ type }) => type === 'limit-reached');
      return tells ? [] : wrong(`turn ${turn.turnId} was limited and does not say by what`);
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

/** The agents that an entry is to wake. */
function addresseesOf(entry: Entry): readonly string[] {
  if (entry.type === 'handoff' || entry.type === 'delegation-requested') return [entry.to];
  const fromPerson = entry.type === 'message' && entry.role === 'user' && entry.includeInContext !== false;
  return fromPerson ? (entry.to ?? []) : [];
}

/** `<agent> <index>` of what a turn was given. */
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

function ofType<T extends Entry['type']>(entries: readonly Entry[], type: T): EntryOf<T>[] {
  return entries.filter((entry) => entry.type === type) as unknown as EntryOf<T>[];
}
