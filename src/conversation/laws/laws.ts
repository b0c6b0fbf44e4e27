import { wellFormed } from '../../kernel/index.ts';
import { withoutNotice } from '../decide/repeated-calls.ts';
import {
  authorSchema,
  type CallPlace,
  type Entry,
  type EntryOf,
  entrySchema,
  type MessageEntry,
  wireCallId,
} from '../log/entry.ts';
import { isContinued } from '../log/entry-traits.ts';
import { APPROVERS_NOTE } from '../log/model-failure.ts';
import { filesOf } from '../log/parts.ts';
import { expand, isBefore } from '../log/ranges.ts';
import { Knowledge } from '../state/knowledge.ts';
import { publisherOfPost } from '../state/people.ts';
import type { AuditedCall } from '../tools/tool-rules.ts';

/**
 * The laws of any log, checked from its entries alone, without the fold that the daemon uses. Returns one sentence for
 * each fault; an empty list if there is none.
 */
export function checkLaws(entries: readonly Entry[]): string[] {
  const faults: string[] = [];
  checkIndexes(entries, faults);
  checkTurns(entries, faults);
  checkAnswers(entries, faults);
  checkAttempts(entries, faults);
  checkSummaries(entries, faults);
  checkSessions(entries, faults);
  checkCalls(entries, faults);
  checkCallers(entries, faults);
  checkApprovals(entries, faults);
  checkDelegations(entries, faults);
  checkReach(entries, faults);
  return faults;
}

/** L2, L4: dense indexes, unique ids (of posts, for each publisher), ingress sequences that rise within one stream, epochs without a gap. */
function checkIndexes(entries: readonly Entry[], faults: string[]): void {
  const ids = new Set<string>();
  let sequence = 0;
  let stream: string | undefined;
  let epoch = 0;
  entries.forEach((entry, at) => {
    if (entry.index !== at) faults.push(`line ${at} has index ${entry.index}`);
    const publisher = publisherOfPost(entry);
    const key = publisher === null ? entry.id : `${publisher}\n${entry.id}`;
    if (ids.has(key)) faults.push(`entry ${at}: the id ${entry.id} is used twice`);
    ids.add(key);
    if (entry.copiedFrom !== undefined) return;
    if (entry.type === 'claim') {
      if (entry.epoch !== epoch + 1) faults.push(`entry ${at}: epoch ${entry.epoch} after ${epoch}`);
      if (entry.ingress !== stream) sequence = 0;
      epoch = entry.epoch;
      stream = entry.ingress;
    }
    if (entry.ingressSequence === undefined) return;
    if (entry.ingressSequence <= sequence) faults.push(`entry ${at}: a post out of order`);
    sequence = entry.ingressSequence;
  });
}

/**
 * L8, V11: one final end per turn, which no delivery and no new call follows; one open turn per agent (a waiting one counts);
 * cursors that never move back.
 */
function checkTurns(entries: readonly Entry[], faults: string[]): void {
  /** By agent. */
  const open = new Map<string, { readonly turnId: string; readonly waits: boolean }>();
  const ended = new Set<string>();
  const cursors = new Map<string, number>();
  for (const entry of entries) {
    const at = `entry ${entry.index}`;
    if (entry.type === 'turn-started') {
      const other = open.get(entry.agent);
      if (other !== undefined && other.turnId !== entry.turnId) faults.push(`${at}: two turns at once`);
      if (ended.has(entry.turnId)) faults.push(`${at}: a turn began after its end`);
      else if ((other?.turnId === entry.turnId) !== (entry.resumed === true))
        faults.push(`${at}: ${entry.resumed ? 'a resumed turn was not open' : 'a turn started twice'}`);
      if (entry.trigger.some((index) => index >= entry.index)) faults.push(`${at}: a later trigger`);
      open.set(entry.agent, { turnId: entry.turnId, waits: false });
    } else if (entry.type === 'turn-ended') {
      const turn = open.get(entry.agent);
      if (turn?.turnId !== entry.turnId) faults.push(`${at}: the end of no open turn`);
      if (ended.has(entry.turnId)) faults.push(`${at}: a second end of turn ${entry.turnId}`);
      if (turn?.waits && entry.outcome === 'waiting') faults.push(`${at}: a waiting turn waits again`);
      const cursor = entry.lastProcessedMessageIndex;
      if (cursor < (cursors.get(entry.agent) ?? 0)) faults.push(`${at}: the cursor moved back`);
      if (cursor > entries.length) faults.push(`${at}: the cursor is beyond the log`);
      cursors.set(entry.agent, cursor);
      if (entry.outcome === 'waiting') {
        open.set(entry.agent, { turnId: entry.turnId, waits: true });
      } else {
        open.delete(entry.agent);
        ended.add(entry.turnId);
      }
    } else if (ended.has(entry.turnId ?? '')) {
      if (entry.type === 'message-delivered')
        faults.push(`${at}: a delivery after the end of turn ${entry.turnId}`);
      else if (entry.type === 'message' && entry.role === 'assistant' && entry.tool_calls)
        faults.push(`${at}: an answer with calls after the end of turn ${entry.turnId}`);
    }
  }
}

/** One final answer per turn; a paused answer is not final. */
function checkAnswers(entries: readonly Entry[], faults: string[]): void {
  const answered = new Set<string>();
  for (const entry of entries) {
    if (entry.type !== 'message' || entry.role !== 'assistant' || entry.tool_calls || !entry.turnId) continue;
    if (answered.has(entry.turnId))
      faults.push(`entry ${entry.index}: a second answer of turn ${entry.turnId}`);
    if (!isContinued(entry)) answered.add(entry.turnId);
  }
}

/**
 * L16: a failed attempt belongs to a running turn, and is of the candidate that the one before it named. No candidate fails
 * twice, unless the turn was resumed, perhaps with another definition.
 */
function checkAttempts(entries: readonly Entry[], faults: string[]): void {
  /** By agent: the running turn, the candidates that failed, and the one that is asked. */
  const running = new Map<string, { readonly turnId: string; readonly failed: Set<string>; next?: string }>();
  for (const entry of entries) {
    if (entry.type === 'turn-started')
      running.set(entry.agent, { turnId: entry.turnId, failed: new Set<string>() });
    else if (entry.type === 'turn-ended') running.delete(entry.agent);
    if (entry.type !== 'attempt-failed') continue;
    const at = `entry ${entry.index}`;
    const turn = running.get(entry.agent);
    if (turn?.turnId !== entry.turnId) faults.push(`${at}: a failed attempt of no running turn`);
    if (!turn) continue;
    const [name, next] = [entry, entry.next].map(({ model, key }) => JSON.stringify([model, key]));
    if (turn.next !== undefined && turn.next !== name)
      faults.push(`${at}: an attempt of ${name}, but ${turn.next} is asked`);
    turn.failed.add(name ?? '');
    if (turn.failed.has(next ?? '')) faults.push(`${at}: ${next} is asked again`);
    turn.next = next ?? '';
  }
}

/** V17: a summary covers entries before it, each named once. So its ranges cannot expand to more than the log. */
function checkSummaries(entries: readonly Entry[], faults: string[]): void {
  for (const entry of entries) {
    if (entry.type !== 'summary') continue;
    for (const ranges of [entry.entries, entry.leftOut ?? []]) {
      if (!isBefore(ranges, entry.index))
        faults.push(`entry ${entry.index}: the summary names ranges that are not ascending and before it`);
    }
  }
}

/**
 * PERSON-7: a session is one that a message names by right, to an agent that it was routed to, and the next entry of the same
 * append takes that message into a turn of the agent.
 */
function checkSessions(entries: readonly Entry[], faults: string[]): void {
  for (const entry of entries) {
    if (entry.type !== 'session-set') continue;
    const at = `entry ${entry.index}`;
    const message = entries[entry.from];
    const isNamed =
      message?.type === 'message' && message.setsSession && message.sessionId === entry.sessionId;
    if (!isNamed || entry.from >= entry.index || !message.to?.includes(entry.agent))
      faults.push(`${at}: a session of ${entry.agent} that entry ${entry.from} does not set`);
    const next = entries[entry.index + 1];
    if (next === undefined || next.copiedFrom !== entry.copiedFrom) continue; // the copy of a log may end here
    const taken =
      next.type === 'turn-started'
        ? next.trigger
        : next.type === 'message-delivered'
          ? next.entries
          : next.type === 'message'
            ? next.answers
            : [];
    if (!taken?.includes(entry.from)) faults.push(`${at}: a session that belongs to no turn`);
  }
}

/** The entry types of this version. */
const KNOWN: ReadonlySet<unknown> = new Set(
  entrySchema.options.flatMap(({ shape }) => [...shape.type.values]),
);

/**
 * The shape that entries need before the laws can be checked. For a type of a newer minor version, only the common
 * fields are checked.
 */
export function checkShapes(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry, at) => {
    const fault = KNOWN.has(entry.type) ? shapeFault(entry) : baseFault(entry);
    return fault === null ? [] : [`entry ${at} is invalid: ${fault}`];
  });
}

function shapeFault(entry: Entry): string | null {
  const [issue] = entrySchema.safeParse(entry).error?.issues ?? [];
  return issue ? `${issue.path.join('.')}: ${issue.message}` : null;
}

function baseFault({ type, author }: Entry): string | null {
  if (typeof type !== 'string') return 'type: not a string';
  return authorSchema.safeParse(author).success ? null : 'author: invalid';
}

interface Call {
  /** The open approval request, and whether it says that the call may have run. */
  question: { readonly id: string; readonly mayHaveRun: boolean } | null;
  wasAsked: boolean;
  /** A person approved a start that has not happened yet. */
  mayStart: boolean;
  starts: number;
}

const ANSWERS_TO_FRESH: readonly string[] = ['approve', 'deny'];
const ANSWERS_TO_UNKNOWN: readonly string[] = ['rerun', 'result', 'failed'];

/** L11, L12: one open request at a time, one answer to each, one start for each approval; a repeated start is marked. */
export function checkApprovals(entries: readonly Entry[], faults: string[]): void {
  const calls = new Map<string, Call>();
  /** The calls whose servers asked, by approval id (SERVER-QUESTION-1). */
  const questions = new Map<string, string>();
  const callAt = ({ index, position }: CallPlace): Call => {
    const key = `c${index}_${position}`;
    const known = calls.get(key) ?? { question: null, wasAsked: false, mayStart: false, starts: 0 };
    calls.set(key, known);
    return known;
  };
  for (const entry of entries) {
    const fault = (words: string) => faults.push(`entry ${entry.index}: ${words}`);
    if (entry.type === 'approval-requested' && entry.asks) {
      const key = keyOf(entry.call);
      if (callAt(entry.call).starts === 0) fault('a server asks about a call that was not started');
      if ([...questions.values()].includes(key)) fault('a second question of the server of one call');
      questions.set(entry.approvalId, key);
    } else if (entry.type === 'approval-answered' && questions.has(entry.approvalId)) {
      checkAnswer(entry.answer, false, fault);
      questions.delete(entry.approvalId);
    } else if (isResult(entry)) {
      if ([...questions.values()].includes(keyOf(entry.call)))
        fault('a result of a call whose server asks a person');
    } else if (entry.type === 'approval-requested') {
      const call = callAt(entry.call);
      if (call.question) fault('a second question about one call');
      if (entry.mayHaveRun !== call.starts > 0) fault('the question has the wrong mayHaveRun');
      call.question = { id: entry.approvalId, mayHaveRun: entry.mayHaveRun };
      call.wasAsked = true;
      call.mayStart = false;
    } else if (entry.type === 'approval-answered') {
      const call = [...calls.values()].find(({ question }) => question?.id === entry.approvalId);
      if (!call?.question) {
        fault('an answer to no open question');
        continue;
      }
      checkAnswer(entry.answer, call.question.mayHaveRun, fault);
      call.question = null;
      call.mayStart = entry.answer === 'approve' || entry.answer === 'rerun';
    } else if (entry.type === 'tool-started') {
      checkStart(entry, callAt(entry.call), fault);
    }
  }
}

function checkAnswer(answer: string, mayHaveRun: boolean, fault: (words: string) => void): void {
  const misfits = mayHaveRun ? ANSWERS_TO_FRESH : ANSWERS_TO_UNKNOWN;
  if (misfits.includes(answer)) fault(`${answer} does not answer that question`);
}

function checkStart(
  { risk, rerun }: Extract<Entry, { type: 'tool-started' }>,
  call: Call,
  fault: (words: string) => void,
): void {
  if (call.question) fault('a call was started while a person is asked about it');
  else if (call.wasAsked && !call.mayStart) fault('a call was started without an approval');
  else if (risk === 'risky' && call.starts > 0 && !call.wasAsked) fault('a risky call was started again');
  if (risk === 'safe' && call.starts > 0 && !rerun) fault('a call was started again without a mark');
  if (risk === 'safe' && call.starts > 1) fault('a safe call was started a third time');
  call.starts += 1;
  call.mayStart = false;
}

type Result = MessageEntry & { readonly call: CallPlace };

/** Calls that another agent or a person answers, and calls carried out after all others of an answer. */
const AWAITED: readonly string[] = ['ask', 'delegate'];
const CLOSING: readonly string[] = ['handoff', 'complete_node'];

const keyOf = (call: CallPlace) => `c${call.index}_${call.position}`;
const isResult = (entry: Entry): entry is Result =>
  entry.type === 'message' && entry.role === 'tool' && entry.call !== undefined;

/**
 * V7, V8, V11: each call gets one result before its turn continues, is shown more, or ends; only an open call starts. A turn
 * waits only for questions, delegations, approvals, callers, and calls after one that needs an approval.
 */
export function checkCalls(entries: readonly Entry[], faults: string[]): void {
  /** By turn id and call address: the tool. */
  const turns = new Map<string, Map<string, string>>();
  /** By approval id: the call that waits for a person. */
  const asked = new Map<string, string>();
  /** Calls that the author of their turn's tools answers. */
  const callers = new Set<string>();
  for (const entry of entries) {
    const open = turns.get(entry.turnId ?? '') ?? new Map<string, string>();
    const at = `entry ${entry.index}`;
    if (isResult(entry)) {
      const key = keyOf(entry.call);
      if (entry.author.kind === 'person' && !callers.has(key))
        faults.push(`${at}: ${entry.author.id} answers ${key}, which is no call of a caller's tool`);
      if (!open.delete(key)) faults.push(`${at}: a result of no open call (${key})`);
      if (entry.tool_call_id !== key) faults.push(`${at}: the result of ${key} names ${entry.tool_call_id}`);
    } else if (entry.type === 'message' && entry.role === 'assistant' && !entry.turnId) {
      for (const [key, tool] of callsOf(entry)) open.set(key, tool); // imported: only results close it
      turns.set('', open);
    } else if (entry.type === 'message' && entry.role === 'assistant' && entry.turnId) {
      for (const key of open.keys()) faults.push(`${at}: a message before the result of ${key}`);
      turns.set(entry.turnId, callsOf(entry));
      for (const position of entry.callerCalls ?? []) callers.add(keyOf({ index: entry.index, position }));
    } else if (entry.type === 'message-delivered') {
      for (const key of open.keys()) faults.push(`${at}: a delivery before the result of ${key}`);
    } else if (entry.type === 'attempt-failed') {
      for (const key of open.keys()) faults.push(`${at}: an attempt before the result of ${key}`);
    } else if (entry.type === 'tool-started') {
      const key = keyOf(entry.call);
      if (!open.has(key)) faults.push(`${at}: a start of no open call (${key})`);
      if (callers.has(key)) faults.push(`${at}: a start of ${key}, which its caller answers`);
    } else if (entry.type === 'approval-requested') {
      const key = keyOf(entry.call);
      if (callers.has(key)) faults.push(`${at}: an approval of ${key}, which its caller answers`);
      asked.set(entry.approvalId, key);
    } else if (entry.type === 'approval-answered') asked.delete(entry.approvalId);
    else if (entry.type === 'turn-ended' && entry.outcome === 'waiting')
      faults.push(...checkWait(open, new Set(asked.values()), callers).map((fault) => `${at}: ${fault}`));
    else if (entry.type === 'turn-ended')
      for (const key of open.keys()) faults.push(`${at}: the turn ended without a result of ${key}`);
  }
  for (const key of turns.get('')?.keys() ?? [])
    faults.push(`entry ${/\d+/.exec(key)}: the call ${key} has no result, and no turn that could bring it`);
}

/** CLIENT-TOOLS-1: a caller's call is of a tool that the trigger of its turn brought, and the author of that post answers it. */
function checkCallers(entries: readonly Entry[], faults: string[]): void {
  /** By turn: the newest message of its trigger that brought tools. */
  const brought = new Map<string, MessageEntry>();
  for (const entry of entries) {
    const at = `entry ${entry.index}`;
    if (entry.type === 'turn-started' && !brought.has(entry.turnId) && !entry.resumed) {
      const tools = entry.trigger.map((index) => entries[index]).findLast(isBringing);
      if (tools) brought.set(entry.turnId, tools);
    }
    if (entry.type !== 'message') continue;
    const by = brought.get(entry.turnId ?? '');
    for (const position of entry.callerCalls ?? []) {
      const name = entry.tool_calls?.[position]?.function.name;
      if (!by?.tools?.some((tool) => tool.name === name))
        faults.push(`${at}: no caller brought the tool of call ${position} (${name})`);
    }
    if (isResult(entry) && entry.author.kind === 'person' && entry.author.id !== by?.author.id)
      faults.push(`${at}: ${entry.author.id} answers a call of another caller's tool`);
  }
}

function isBringing(entry: Entry | undefined): entry is MessageEntry {
  return entry?.type === 'message' && entry.tools !== undefined;
}

/** A turn waits for answers or approvals; calls after one that needs an approval wait with it. */
function checkWait(
  open: ReadonlyMap<string, string>,
  asked: ReadonlySet<string>,
  callers: ReadonlySet<string>,
): string[] {
  const keys = [...open.keys()];
  const isAwaited = (key: string) =>
    asked.has(key) || callers.has(key) || AWAITED.includes(open.get(key) ?? '');
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
function checkDelegations(entries: readonly Entry[], faults: string[]): void {
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
function checkReach(entries: readonly Entry[], faults: string[]): void {
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

export function checkAudit(entries: readonly Entry[], records: readonly AuditedCall[]): string[] {
  return [...checkRecords(entries, records), ...checkResults(entries, records)];
}

/**
 * L9, L10: every recorded start or completion belongs to a call of this log with the same tool and an earlier
 * `tool-started`. A request is recorded before that, so a crash may leave one without any entry.
 */
function checkRecords(entries: readonly Entry[], records: readonly AuditedCall[]): string[] {
  const started = startedCalls(entries);
  return records.flatMap(({ type, call, tool }, at) => {
    if (type === 'ToolCallRequested') return [];
    const key = `c${call.entry}_${call.position}`;
    const words = `audit record ${at} (${type} of ${key})`;
    const entry = entries[call.entry];
    const called = entry?.type === 'message' ? entry.tool_calls?.[call.position] : undefined;
    if (!called) return [`${words}: the log has no such call`];
    if (called.function.name !== tool) {
      return [`${words}: it names ${tool}; the log has ${called.function.name}`];
    }
    return started.has(key) ? [] : [`${words}: the log has no start of that call`];
  });
}

/**
 * L12: if the audit log has the outcome of a call, its result in the log is that outcome, a person's answer, or says
 * that the outcome is unknown. A call that ran on two machines has two outcomes; either is correct.
 */
function checkResults(entries: readonly Entry[], records: readonly AuditedCall[]): string[] {
  const seen = new Map<
    string,
    { readonly at: number; readonly texts: Set<string>; readonly files: Set<string> }
  >();
  records.forEach(({ type, call, result, files = [] }, at) => {
    if (type !== 'ToolCallCompleted' || result === undefined) return;
    const key = `c${call.entry}_${call.position}`;
    const known = seen.get(key) ?? { at, texts: new Set(), files: new Set() };
    seen.set(key, known);
    known.texts.add(wellFormed(result)); // as the log stores it
    for (const { sha256 } of files) known.files.add(sha256);
  });
  const started = startedCalls(entries);
  const settledByWord = new Set<string>();
  const approved = new Set<string>();
  return entries.flatMap((entry) => {
    if (entry.type === 'approval-answered' && entry.call) {
      if (SETTLING.includes(entry.answer)) settledByWord.add(wireCallId(entry.call));
      if (RELEASING.includes(entry.answer)) approved.add(wireCallId(entry.call));
    }
    const key =
      entry.type === 'message' && entry.role === 'tool' && entry.call ? wireCallId(entry.call) : null;
    const found = key === null ? undefined : seen.get(key);
    if (key === null || !found || !started.has(key) || settledByWord.has(key)) return [];
    const content = withoutNotice((entry.type === 'message' && entry.content) || '');
    const files = filesOf(entry);
    const isText = (text: string) =>
      content === text || (approved.has(key) && content.endsWith(text) && isNote(content, text));
    const isKnown = [...found.texts].some(isText) && files.every(({ sha256 }) => found.files.has(sha256));
    if (isKnown || SAYS_UNKNOWN.test(content)) return [];
    return [`entry ${entry.index}: the result of ${key} is not the one that audit record ${found.at} has`];
  });
}

const isNote = (content: string, result: string) =>
  content.slice(0, content.length - result.length).replace(APPROVERS_NOTE, '') === '';

/** Answers to an approval that let the call run. */
const RELEASING: readonly string[] = ['approve', 'rerun'];
/** Answers to an approval that give the call a result of their own. */
const SETTLING: readonly string[] = ['result', 'failed', 'expired'];
/** Every result of the daemon for a call with an unknown outcome contains this. */
const SAYS_UNKNOWN = /whether (?:it|that) took effect is unknown/;

function startedCalls(entries: readonly Entry[]): ReadonlySet<string> {
  const places: CallPlace[] = entries.flatMap((entry) => (entry.type === 'tool-started' ? [entry.call] : []));
  return new Set(places.map(wireCallId));
}

/** Laws of what agents were shown: cursors and summaries. They trust the fold of `knowledge.ts` and compare the log with it. */
/** L8, V14, V17. The log does not record whether collapsed entries are shown: the setting with fewer faults counts. */
export function checkKnowledge(entries: readonly Entry[]): string[] {
  return agentsOf(entries).flatMap((agent) => {
    const strict = checkAgent(entries, agent, false);
    if (strict.length === 0) return [];
    const folded = checkAgent(entries, agent, true);
    return folded.length < strict.length ? folded : strict;
  });
}

function agentsOf(entries: readonly Entry[]): string[] {
  const agents = entries.flatMap((entry) =>
    entry.type === 'turn-ended' || entry.type === 'summary' ? [entry.agent] : [],
  );
  return [...new Set(agents)].sort();
}

function checkAgent(entries: readonly Entry[], agent: string, includeCollapsed: boolean): string[] {
  const knowledge = new Knowledge(agent, { includeCollapsed });
  const faults: string[] = [];
  for (const [at, entry] of entries.entries()) {
    if (entry.type === 'turn-ended' && entry.agent === agent) {
      knowledge.catchUp(entries, at);
      const due = knowledge.cursorAfter([], at + 1);
      const cursor = entry.lastProcessedMessageIndex;
      if (cursor !== due)
        faults.push(`entry ${at}: the cursor of ${agent} is ${cursor}, and should be ${due}`);
    } else if (entry.type === 'summary' && entry.agent === agent) {
      knowledge.catchUp(entries, at);
      faults.push(...checkSummary(entries, entry, knowledge).map((fault) => `entry ${at}: ${fault}`));
    }
  }
  return faults;
}

/** V17: whole groups, from the oldest on, nothing unshown, nothing open. */
function checkSummary(
  entries: readonly Entry[],
  summary: EntryOf<'summary'>,
  knowledge: Knowledge,
): string[] {
  if (!isBefore(summary.entries, summary.index) || !isBefore(summary.leftOut ?? [], summary.index)) {
    return []; // `checkLaws` reports it; expanding such ranges may take unbounded time
  }
  const covered = new Set(expand(summary.entries));
  const gone = new Set([...covered, ...expand(summary.leftOut ?? [])]);
  const faults = [...checkRange(summary, gone)];
  for (const index of covered) {
    if (knowledge.isUnshown(index)) faults.push(`the summary covers entry ${index}, which was never shown`);
    else faults.push(...checkGroup(entries, index, gone, knowledge));
  }
  const newest = knowledge.history.findLastIndex((index) => covered.has(index));
  const passed = knowledge.history.slice(0, Math.max(0, newest)).find((index) => !gone.has(index));
  if (passed !== undefined)
    faults.push(`the summary does not begin with the oldest: entry ${passed} comes before it`);
  return faults;
}

function checkRange(summary: EntryOf<'summary'>, gone: ReadonlySet<number>): string[] {
  const { shortened = [], withoutFiles = [] } = summary;
  const all = gone.size > 0 ? [...gone] : [...shortened, ...withoutFiles];
  const { fromIndex, toIndex } = summary;
  const fits = all.every((index) => index >= fromIndex && index <= toIndex);
  return fits ? [] : [`the summary says ${fromIndex} to ${toIndex}, and covers more`];
}

/** A call is covered with all its results, and has all of them. */
function checkGroup(
  entries: readonly Entry[],
  index: number,
  gone: ReadonlySet<number>,
  knowledge: Knowledge,
): string[] {
  const entry = entries[index];
  if (entry?.type !== 'message' || entry.role !== 'assistant' || entry.author.id !== knowledge.agent)
    return [];
  return knowledge.resultsOf(index).flatMap((result, position) => {
    if (result === undefined) return [`the summary covers the open call c${index}_${position}`];
    return gone.has(result) ? [] : [`the summary covers the call c${index}_${position} without its result`];
  });
}
