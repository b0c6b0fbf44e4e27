import { canonicalArguments, hasVisible, type Refusal } from '../../kernel/index.ts';
import { approvalIdOf } from '../log/call-id.ts';
import {
  type CallPlace,
  type Entry,
  type EntryOf,
  type Risk,
  type ToolCall,
  wireCallId,
} from '../log/entry.ts';
import { turnInputOf } from '../progress/turn-watch.ts';
import { publisherOf, refusalOfApproval, refusalOfOwnApproval } from '../state/people.ts';
import { policyAgentOf } from '../state/roster.ts';
import { agentState, type OpenCall, samePlace, settingAt, type Turn } from '../state/state.ts';
import { availableTools, isConversationTool } from '../tools/conversation-tools.ts';
import type { AuditedOutcome, Judgement, RepairCount } from '../tools/tool-rules.ts';
import { CallStep } from './call-step.ts';
import type { CommandOf } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';

/**
 * When a call of a tool that acts on the world runs.
 *
 * TOOLS-1 Contiguous safe calls run concurrently; a risky call runs alone and in its position.
 * TOOLS-2 The entry that requests a call fixes its risk (L11). A policy that changes later can forbid the call or raise
 *         its risk; it cannot lower the risk or remove the need for an approval.
 * TOOLS-3 A started call without a result: a safe one runs once more and is marked; the outcome of a risky one is
 *         unknown, so a person decides, and nothing runs (L12).
 * TOOLS-4 A start after which the call provably did not run is still valid: the call runs now, by the same entry.
 */

/** Most starts of a safe call: the first, and one after a crash. */
const SAFE_STARTS = 2;

/** A call that was just requested is refused, needs an approval, or is left to `startTools`. */
export function requestTool(step: CallStep): void {
  const judgement = judge(step.builder, step.turn.agent, step.call);
  if (judgement.kind === 'refuse') step.refuse(judgement.code, judgement.message);
  else if (judgement.kind === 'ask') requestApproval(step, judgement);
}

/** The risk of each call of an answer before it is appended, by position; null: the call runs no tool (TOOLS-2). */
export function risksOf(
  builder: DecisionBuilder,
  { agent, upTo }: Turn,
  calls: readonly ToolCall[],
): (Risk | null)[] | undefined {
  const risks = calls.map(({ function: { name, arguments: text } }) => {
    if (isConversationTool(name)) return null;
    const judgement = judge(builder, agent, { name, arguments: canonicalArguments(text), upTo });
    return judgement.kind === 'refuse' ? null : judgement.risk;
  });
  return risks.some((risk) => risk !== null) ? risks : undefined;
}

type Judged = Pick<OpenCall, 'name' | 'arguments' | 'upTo'>;

export function judge(builder: DecisionBuilder, agent: string, call: Judged): Judgement {
  const { name, arguments: text, upTo } = call;
  const judged = policyAgentOf(builder.roster, agent); // HIRING-4
  const available = toolsAt(builder, agent, upTo);
  return builder.context.tools.judge({ agent: judged, name, arguments: text, available });
}

/** The tools that an agent has in the setting of its request up to this entry. */
export function toolsAt({ roster, state, context }: DecisionBuilder, agent: string, upTo: number) {
  const card = roster.agents.get(agent);
  return card ? availableTools(card, settingAt(state, upTo, agent), context.workflows) : [];
}

/** TOOLS-2: the judgement now, but never lower than before; an approval that was requested once is not requested again. */
function judgeAgain({ builder, turn, call }: CallStep): Judgement {
  const now = judge(builder, turn.agent, call);
  if (now.kind === 'refuse') return call.starts > 0 ? { ...now, message: interrupted(now.message) } : now;
  if (call.approval) return { kind: 'run', risk: 'risky' };
  return now.kind === 'run' && call.risk === 'risky' ? { kind: 'run', risk: 'risky' } : now;
}

/** L12: the call does not run again, and the outcome of its first start is unknown. */
function interrupted(message: string): string {
  return `${message}; it had been started before, and whether that took effect is unknown`;
}

type Question = Pick<Extract<Judgement, { kind: 'ask' }>, 'why' | 'accepts' | 'covers'>;

/** True: an earlier approval covers the call, so it may start. */
function requestApproval(step: CallStep, question: Question, mayHaveRun = false): boolean {
  const { builder, turn, call, author } = step;
  const { why, accepts } = question;
  const covers = mayHaveRun ? undefined : question.covers;
  const grant = covers === undefined ? null : grantFor(builder, turn.agent, call.place, covers);
  const approvalId = newApprovalId(builder, call);
  builder.add({
    type: 'approval-requested',
    author,
    turnId: turn.turnId,
    approvalId,
    call: call.place,
    agent: turn.agent,
    tool: call.name,
    arguments: call.arguments,
    argumentsHash: builder.context.tools.fingerprint(call.arguments),
    risk: 'risky',
    why,
    mayHaveRun,
    ...(accepts === undefined ? {} : { accepts }),
    ...(covers === undefined ? {} : { covers }),
    ...(grant && { grant: grant.index }),
  });
  if (grant === null) return false;
  const given = { approvalId, call: call.place, answer: 'approve', grant: grant.index };
  builder.add({ type: 'approval-answered', author: grant.author, ...given });
  return true;
}

/** Only readers of the log can know the id: it depends on a new id. */
function newApprovalId({ context, nextIndex }: DecisionBuilder, call: OpenCall): string {
  const bound = [context.newId(), wireCallId(call.place), call.name, call.arguments];
  return approvalIdOf(context.conversation, nextIndex, context.tools.fingerprint(JSON.stringify(bound)));
}

/** The calls that may start now (TOOLS-1), with their judgements. */
export function startableCalls(
  builder: DecisionBuilder,
  turn: Turn,
): { readonly step: CallStep; readonly judgement: Judgement }[] {
  const found: { step: CallStep; judgement: Judgement }[] = [];
  let isFirst = true;
  for (const call of turn.openCalls.filter((open) => !isConversationTool(open.name) && !open.atCaller)) {
    if (call.approval?.status === 'pending') break; // no later call may start
    const step = new CallStep(builder, turn, call);
    const judgement = call.started ? null : judgeAgain(step);
    const isSafe = judgement ? judgement.kind === 'run' && judgement.risk === 'safe' : call.risk === 'safe';
    if (judgement && (isSafe || isFirst)) found.push({ step, judgement });
    if (!isSafe) break;
    isFirst = false;
  }
  return found;
}

/** Starts what may start. A call that became forbidden, or needs an approval since its request, does not run. */
export function startTools(builder: DecisionBuilder, slug: string): void {
  const turn = agentState(builder.state, slug).turn;
  if (!turn) return;
  for (const { step, judgement } of startableCalls(builder, turn)) {
    if (judgement.kind === 'run') step.startTool(judgement.risk, false);
    else if (judgement.kind === 'ask' && !requestApproval(step, judgement)) return;
    else {
      if (judgement.kind === 'refuse') step.refuse(judgement.code, judgement.message);
      startTools(builder, slug); // the next one is the first now
    }
  }
}

/** A recovery: what the audit log proves, and what was repaired so far. */
export interface Repair {
  readonly audited: readonly AuditedOutcome[];
  readonly count: RepairCount;
}

/** Repairs the started calls of a turn after a crash (TOOLS-3). */
export function repairCalls(builder: DecisionBuilder, turn: Turn, repair: Repair): void {
  const { audited, count } = repair;
  backfill(builder, turn, repair);
  for (const open of agentState(builder.state, turn.agent).turn?.openCalls ?? []) {
    if (isConversationTool(open.name) || !open.started) continue;
    new CallStep(builder, turn, open).closeQuestion();
    const step = new CallStep(builder, turn, { ...open, question: null });
    const { call } = step;
    const judgement = judgeAgain(step);
    const isUnchanged = judgement.kind === 'run' && judgement.risk === call.risk;
    if (isUnchanged && didNotRun(call, audited)) {
      step.runStarted(); // TOOLS-4
      count.retried++;
    } else if (call.risk === 'safe' && call.starts >= SAFE_STARTS) {
      const message = `${call.name} was interrupted twice: whether it took effect is unknown`;
      step.refuse('INTERRUPTED', message);
      count.unknown++;
    } else if (call.risk === 'safe' && judgement.kind === 'refuse') {
      step.refuse(judgement.code, judgement.message);
      count.unknown++;
    } else if (judgement.kind === 'run' && judgement.risk === 'safe') {
      step.startTool('safe', true);
      count.retried++;
    } else {
      const why = 'the daemon stopped while it ran: it may already have happened';
      const accepts = judgement.kind === 'ask' ? judgement.accepts : undefined;
      requestApproval(step, { why, ...(accepts === undefined ? {} : { accepts }) }, true);
      count.unknown++;
    }
  }
}

/** Adds results that the audit log has and the conversation's log lacks: a known outcome is not reported as unknown (L12). */
export function backfill(builder: DecisionBuilder, turn: Turn, { audited, count }: Repair): void {
  for (const call of turn.openCalls) {
    const { index, position } = call.place;
    const known = audited.find((result) => result.index === index && result.position === position);
    if (typeof known?.content !== 'string' || !call.started || isConversationTool(call.name)) continue;
    new CallStep(builder, turn, call).addResult({ content: known.content, files: known.files });
    count.repaired++;
  }
}

function didNotRun({ place }: OpenCall, audited: readonly AuditedOutcome[]): boolean {
  return audited.some((known) => known.content === null && samePlace(known, place));
}

/**
 * Who releases a call: a person, or an earlier approval that covers it.
 *
 * GRANTS-1  An approval with `always` also allows later calls of the same agent that its request `covers`, in this conversation and
 *           no copy of it, until a stop of the agent. Each gets its own request and, in the same append, an answer that names the grant.
 * GRANTS-2  The policy decides first: a grant answers only where a person would be asked. PERSON-4 holds for whoever gave it.
 *
 * The answer that also allows this call (GRANTS-1, GRANTS-2); null: a person is asked.
 */
function grantFor(
  builder: DecisionBuilder,
  agent: string,
  call: CallPlace,
  covers: string,
): EntryOf<'approval-answered'> | null {
  const grant = grantOf(builder.all(), agent, covers);
  return grant && !forbiddenTo(builder, call, { by: grant.author, answer: 'approve' }) ? grant : null;
}

function grantOf(entries: readonly Entry[], agent: string, covers: string) {
  const asked = new Set(
    entries.flatMap((entry) =>
      entry.type === 'approval-requested' && entry.agent === agent && entry.covers === covers
        ? [entry.approvalId]
        : [],
    ),
  );
  for (const entry of asked.size > 0 ? entries.toReversed() : []) {
    if (entry.type === 'forked') return null;
    if (entry.type === 'agent-stopped' && (entry.agent ?? agent) === agent) return null;
    if (entry.type === 'approval-answered' && entry.always && asked.has(entry.approvalId)) return entry;
  }
  return null;
}

/** PERSON-4 */
export function forbiddenTo(
  builder: DecisionBuilder,
  call: CallPlace,
  { by, answer, isStranger = false }: Pick<CommandOf<'answer'>, 'by' | 'answer' | 'isStranger'>,
): Refusal | null {
  const isOwn = requestersOf(builder.all(), call).has(publisherOf(by.id));
  if (isStranger) return isOwn && answer === 'deny' ? null : refusalOfApproval(by.id);
  const isRelease = answer === 'approve' || answer === 'rerun';
  return isOwn && isRelease && !builder.context.ownRequests ? refusalOfOwnApproval(by.id) : null;
}

/**
 * The publishers whose words a call answers: messages that its turn had accepted when the model wrote the call, and what
 * they gave as the result of an earlier call. So too in the turns before it over delegations, handoffs, agents' answers
 * and nodes of a run.
 */
function requestersOf(entries: readonly Entry[], { index: end }: CallPlace): ReadonlySet<string> {
  const taken = new Map<string, number[]>();
  const take = (turnId: string, ...indexes: readonly number[]) =>
    taken.set(turnId, [...(taken.get(turnId) ?? []), ...indexes]);
  for (const entry of entries.slice(0, end)) {
    const found = turnInputOf(entry);
    if (found) take(found.turnId, ...found.messages);
    const turnId = hasWords(entry) && entry.call ? entries[entry.call.index]?.turnId : undefined;
    if (turnId !== undefined) take(turnId, entry.index);
  }
  const requesters = new Set<string>();
  const turns = new Set<string>();
  const follow = (turnId: string | undefined) => void (turnId !== undefined && turns.add(turnId));
  follow(entries[end]?.turnId);
  for (const turnId of turns) {
    for (const index of taken.get(turnId) ?? []) {
      const entry = entries[index];
      if (entry?.author.kind === 'person') requesters.add(publisherOf(entry.author.id));
      else follow(entry?.turnId ?? nodeBefore(entries, index));
    }
  }
  return requesters;
}

/** An answer to an approval whose words the model reads with the result of the call. */
function hasWords(entry: Entry): entry is EntryOf<'approval-answered'> {
  if (entry.type !== 'approval-answered' || entry.author.kind !== 'person') return false;
  return entry.answer === 'result' || entry.arguments !== undefined || hasVisible(entry.reason ?? '');
}

/** The turn that completed the node before: its result is the entry before `node-entered`, of which a fork has several. */
function nodeBefore(entries: readonly Entry[], index: number): string | undefined {
  if (entries[index]?.type !== 'node-entered') return undefined;
  return entries.slice(0, index).findLast(({ type }) => type !== 'node-entered')?.turnId;
}
