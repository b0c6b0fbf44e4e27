import type { Risk, ToolCall } from '../log/entry.ts';
import { agentState, type OpenCall, samePlace, settingAt, type Turn } from '../state/state.ts';
import { availableTools, isConversationTool, toolError } from '../tools/conversation-tools.ts';
import type { AuditedOutcome, Judgement, RepairCount } from '../tools/tool-rules.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { addResult, refuse, runStarted, startTool } from './records.ts';

/**
 * When a call of a tool that acts on the world is run.
 *
 * TOOLS-1 Contiguous safe calls run together, a risky one alone and in its place.
 * TOOLS-2 Risk is fixed when the call is requested, in the entry that requests it (L11). A policy or a table of risks that
 *    changes later releases nothing that is asked for and makes nothing safe; it may forbid, and it may make risky.
 * TOOLS-3 What had started and has no result: a safe one is run once more, with a mark; of a risky one nobody knows whether
 *    it took effect, so a person is asked, and nothing runs (L12).
 * TOOLS-4 A start after which the call provably did not run is still valid: the call runs now, by the same entry.
 */

/** A safe call is started at most so often: once, and once more after a crash. */
const SAFE_STARTS = 2;

/** A call that was just requested: refused, asked for, or left to `startTools`. */
export function requestTool(builder: DecisionBuilder, turn: Turn, call: OpenCall): void {
  const judgement = judge(builder, turn.agent, call);
  if (judgement.kind === 'refuse') refuse(builder, turn, call, judgement.code, judgement.message);
  else if (judgement.kind === 'ask') askFor(builder, turn, call, judgement);
}

/** The risk of each call of an answer that is about to be written, by position; null: nothing is to be run (TOOLS-2). */
export function risksOf(
  builder: DecisionBuilder,
  { agent, askedAt }: Turn,
  calls: readonly ToolCall[],
): (Risk | null)[] | undefined {
  const risks = calls.map(({ function: { name, arguments: text } }) => {
    if (isConversationTool(name)) return null;
    const judgement = judge(builder, agent, { name, arguments: text, askedAt });
    return judgement.kind === 'refuse' ? null : judgement.risk;
  });
  return risks.some((risk) => risk !== null) ? risks : undefined;
}

type Judged = Pick<OpenCall, 'name' | 'arguments' | 'askedAt'>;

function judge(builder: DecisionBuilder, agent: string, call: Judged): Judgement {
  const card = builder.context.roster.agents.get(agent);
  const setting = settingAt(builder.state, call.askedAt);
  const available = card ? availableTools(card, setting, builder.context.workflows) : [];
  const { name, arguments: text } = call;
  return builder.context.tools.judge({ agent, name, arguments: text, available });
}

/** TOOLS-2: as judged now, but never looser than it was judged before: a word once asked for is not asked for twice. */
function judgeAgain(builder: DecisionBuilder, turn: Turn, call: OpenCall): Judgement {
  const now = judge(builder, turn.agent, call);
  if (now.kind === 'refuse') return call.starts > 0 ? { ...now, message: interrupted(now.message) } : now;
  if (call.approval) return { kind: 'run', risk: 'risky' };
  return now.kind === 'run' && call.risk === 'risky' ? { kind: 'run', risk: 'risky' } : now;
}

/** L12: it is not run again, and nobody knows what the first time did. */
function interrupted(message: string): string {
  return `${message}; it had been started before, and whether that took effect is unknown`;
}

type Question = Pick<Extract<Judgement, { kind: 'ask' }>, 'why' | 'accepts'>;

function askFor(
  builder: DecisionBuilder,
  turn: Turn,
  call: OpenCall,
  question: Question,
  mayHaveRun = false,
): void {
  const { why, accepts } = question;
  builder.add({
    type: 'approval-requested',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    approvalId: builder.context.newId(),
    call: call.place,
    agent: turn.agent,
    tool: call.name,
    arguments: call.arguments,
    argumentsHash: builder.context.tools.fingerprint(call.arguments),
    risk: 'risky',
    why,
    mayHaveRun,
    ...(accepts === undefined ? {} : { accepts }),
  });
}

/** The calls that may start now (TOOLS-1), with what is to become of each. */
export function startable(
  builder: DecisionBuilder,
  turn: Turn,
): { readonly call: OpenCall; readonly judgement: Judgement }[] {
  const found: { call: OpenCall; judgement: Judgement }[] = [];
  let isFirst = true;
  for (const call of turn.openCalls.filter((open) => !isConversationTool(open.name))) {
    if (call.approval?.status === 'pending') break; // in its place: nothing behind it
    const judgement = call.started ? null : judgeAgain(builder, turn, call);
    const isSafe = judgement ? judgement.kind === 'run' && judgement.risk === 'safe' : call.risk === 'safe';
    if (judgement && (isSafe || isFirst)) found.push({ call, judgement });
    if (!isSafe) break;
    isFirst = false;
  }
  return found;
}

/** Starts what may start. What has become forbidden or asked for since it was requested is not run. */
export function startTools(builder: DecisionBuilder, slug: string): void {
  const turn = agentState(builder.state, slug).turn;
  if (!turn) return;
  for (const { call, judgement } of startable(builder, turn)) {
    if (judgement.kind === 'run') startTool(builder, turn, call, judgement.risk, false);
    else if (judgement.kind === 'ask') askFor(builder, turn, call, judgement);
    else refuse(builder, turn, call, judgement.code, judgement.message);
  }
}

/** Takes up the calls of a turn after a crash (TOOLS-3). */
export function repairCalls(
  builder: DecisionBuilder,
  turn: Turn,
  audited: readonly AuditedOutcome[],
  count: RepairCount,
): void {
  backfill(builder, turn, audited, count);
  for (const call of agentState(builder.state, turn.agent).turn?.openCalls ?? []) {
    if (isConversationTool(call.name) || !call.started) continue;
    const judgement = judgeAgain(builder, turn, call);
    const isUnchanged = judgement.kind === 'run' && judgement.risk === call.risk;
    if (isUnchanged && didNotRun(call, audited)) {
      runStarted(builder, turn, call); // TOOLS-4
      count.retried++;
    } else if (call.risk === 'safe' && call.starts >= SAFE_STARTS) {
      const message = `${call.name} was interrupted twice: whether it took effect is unknown`;
      addResult(builder, turn, call, { content: toolError('INTERRUPTED', message) });
      count.unknown++;
    } else if (call.risk === 'safe' && judgement.kind === 'refuse') {
      refuse(builder, turn, call, judgement.code, judgement.message);
      count.unknown++;
    } else if (judgement.kind === 'run' && judgement.risk === 'safe') {
      startTool(builder, turn, call, 'safe', true);
      count.retried++;
    } else {
      const why = 'the daemon stopped while it ran: it may already have happened';
      const accepts = judgement.kind === 'ask' ? judgement.accepts : undefined;
      askFor(builder, turn, call, { why, ...(accepts === undefined ? {} : { accepts }) }, true);
      count.unknown++;
    }
  }
}

/** Results that the runner of the tool saw and the log lacks: what is known is not said to be unknown (L12). */
export function backfill(
  builder: DecisionBuilder,
  turn: Turn,
  audited: readonly AuditedOutcome[],
  count: RepairCount,
): void {
  for (const call of turn.openCalls) {
    const { index, position } = call.place;
    const known = audited.find((result) => result.index === index && result.position === position);
    if (typeof known?.content !== 'string' || !call.started || isConversationTool(call.name)) continue;
    addResult(builder, turn, call, { content: known.content });
    count.repaired++;
  }
}

function didNotRun({ place }: OpenCall, audited: readonly AuditedOutcome[]): boolean {
  return audited.some((known) => known.content === null && samePlace(known, place));
}
