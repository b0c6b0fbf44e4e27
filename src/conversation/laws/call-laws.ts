import type { CallPlace, Entry, MessageEntry } from '../log/entry.ts';

/** Laws of calls, of delegations, and of what reaches an agent. */

type Result = MessageEntry & { readonly call: CallPlace };

/** Calls that another agent or a person answers, and calls carried out after all others of an answer. */
const AWAITED: readonly string[] = ['ask', 'delegate'];
const CLOSING: readonly string[] = ['handoff', 'complete_node'];

const keyOf = (call: CallPlace) => `c${call.index}_${call.position}`;
const isResult = (entry: Entry): entry is Result =>
  entry.type === 'message' && entry.role === 'tool' && entry.call !== undefined;

/**
 * V7, V8, V11: each call gets one result before its turn continues, is shown more, or ends; only an open call starts. A turn
 * waits only for questions, delegations, approvals, and calls after one that needs an approval.
 */
export function checkCalls(entries: readonly Entry[], faults: string[]): void {
  /** By turn id and call address: the tool. */
  const turns = new Map<string, Map<string, string>>();
  /** By approval id: the call that waits for a person. */
  const asked = new Map<string, string>();
  for (const entry of entries) {
    const open = turns.get(entry.turnId ?? '') ?? new Map<string, string>();
    const at = `entry ${entry.index}`;
    if (isResult(entry)) {
      const key = keyOf(entry.call);
      if (!open.delete(key)) faults.push(`${at}: a result of no open call (${key})`);
      if (entry.tool_call_id !== key) faults.push(`${at}: the result of ${key} names ${entry.tool_call_id}`);
    } else if (entry.type === 'message' && entry.role === 'assistant' && !entry.turnId) {
      for (const [key, tool] of callsOf(entry)) open.set(key, tool); // imported: only results close it
      turns.set('', open);
    } else if (entry.type === 'message' && entry.role === 'assistant' && entry.turnId) {
      for (const key of open.keys()) faults.push(`${at}: a message before the result of ${key}`);
      turns.set(entry.turnId, callsOf(entry));
    } else if (entry.type === 'message-delivered') {
      for (const key of open.keys()) faults.push(`${at}: a delivery before the result of ${key}`);
    } else if (entry.type === 'tool-started') {
      const key = keyOf(entry.call);
      if (!open.has(key)) faults.push(`${at}: a start of no open call (${key})`);
    } else if (entry.type === 'approval-requested') asked.set(entry.approvalId, keyOf(entry.call));
    else if (entry.type === 'approval-answered') asked.delete(entry.approvalId);
    else if (entry.type === 'turn-ended' && entry.outcome === 'waiting')
      faults.push(...checkWait(open, new Set(asked.values())).map((fault) => `${at}: ${fault}`));
    else if (entry.type === 'turn-ended')
      for (const key of open.keys()) faults.push(`${at}: the turn ended without a result of ${key}`);
  }
  for (const key of turns.get('')?.keys() ?? [])
    faults.push(`entry ${/\d+/.exec(key)}: the call ${key} has no result, and no turn that could bring it`);
}

/** A turn waits for answers or approvals; calls after one that needs an approval wait with it. */
function checkWait(open: ReadonlyMap<string, string>, asked: ReadonlySet<string>): string[] {
  const keys = [...open.keys()];
  const isAwaited = (key: string) => asked.has(key) || AWAITED.includes(open.get(key) ?? '');
  const asks = keys.findIndex((key) => asked.has(key));
  const idle = keys.filter(
    (key, place) =>
      !isAwaited(key) && !CLOSING.includes(open.get(key) ?? '') && (asks === -1 || place < asks),
  );
  return [
    ...(keys.some(isAwaited) ? [] : ['a turn waits without an awaited call']),
    ...idle.map((key) => `a turn waits for ${open.get(key)}`),
  ];
}

function callsOf(entry: MessageEntry): Map<string, string> {
  const calls = entry.tool_calls ?? [];
  return new Map(
    calls.map((call, position) => [keyOf({ index: entry.index, position }), call.function.name] as const),
  );
}

/** V13: each delegation is answered once, by the agent that was asked; an answer in time is the result of its call. */
export function checkDelegations(entries: readonly Entry[], faults: string[]): void {
  const asked = new Map<string, { readonly to: string; readonly from: string }>();
  const answered = new Set<string>();
  for (const entry of entries) {
    const at = `entry ${entry.index}`;
    if (entry.type === 'delegation-requested') {
      const key = keyOf(entry.call);
      if (asked.has(key)) faults.push(`${at}: ${key} is delegated twice`);
      asked.set(key, entry);
    } else if (entry.type === 'delegation-answered' && entry.call) {
      const key = keyOf(entry.call);
      const request = asked.get(key);
      if (request?.to !== entry.from || request.from !== entry.to)
        faults.push(`${at}: an answer without a request`);
      if (answered.has(key)) faults.push(`${at}: ${key} is answered twice`);
      answered.add(key);
      const result = entries.find((other) => isResult(other) && keyOf(other.call) === key);
      if (result && result.index < entry.index !== entry.late)
        faults.push(`${at}: an answer ${entry.late ? 'that was not late' : 'after another result'}`);
      if (!result) faults.push(`${at}: an answer that never became a result`);
    }
  }
}

/** V1, V4: an entry reaches an agent once: as a trigger, by delivery during a turn, or as a result. */
export function checkReach(entries: readonly Entry[], faults: string[]): void {
  /** `<agent> <index>` → the turn it reached. */
  const reached = new Map<string, string>();
  const reach = (agent: string, index: number, turnId: string, isAgainAllowed: boolean, verb: string) => {
    const key = `${agent} ${index}`;
    const before = reached.get(key);
    if (before !== undefined && !(isAgainAllowed && before === turnId))
      faults.push(`entry ${index} ${verb} ${agent} twice`);
    reached.set(key, turnId);
  };
  for (const entry of entries) {
    if (entry.type === 'turn-started') {
      // A resumed turn names its trigger again, or the answers it waited for.
      for (const index of entry.trigger)
        reach(entry.agent, index, entry.turnId, entry.resumed === true, 'triggered');
    } else if (entry.type === 'message-delivered') {
      for (const index of entry.entries) reach(entry.agent, index, entry.turnId, false, 'was delivered to');
    } else if (isResult(entry) && entry.turnId) {
      for (const index of entry.answers ?? []) reach(entry.author.id, index, entry.turnId, false, 'answered');
    }
  }
}
