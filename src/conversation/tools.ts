import { availableTools, isConversationTool, toolError } from './conversation-tools.ts';
import type { Drafting } from './drafting.ts';
import { addResult, refuse, startTool } from './records.ts';
import { agentState, type OpenCall, settingAt, type Turn } from './state.ts';
import type { AuditedResult, Judgement, RepairCount, Risk } from './tool-rules.ts';

/**
 * When a call of a tool that acts on the world is run.
 *
 * B1 Contiguous safe calls run together, a risky one alone and in its place.
 * B2 Risk is fixed when the call is requested: an approval that is asked for is not released by a later policy (L11).
 * B3 What had started and has no result: a safe one is run once more, with a mark; of a risky one nobody knows whether
 *    it took effect, so a person is asked, and nothing runs (L12).
 */

/** A safe call is started at most so often: once, and once more after a crash. */
const SAFE_STARTS = 2;

/** A call that was just requested: refused, asked for, or left to `startTools`. */
export function requestTool(drafting: Drafting, turn: Turn, call: OpenCall): void {
  const judgement = judge(drafting, turn, call);
  if (judgement.kind === 'refuse') refuse(drafting, turn, call, judgement.code, judgement.message);
  else if (judgement.kind === 'ask') askFor(drafting, turn, call, judgement.why, false);
}

function judge(drafting: Drafting, turn: Turn, call: OpenCall): Judgement {
  const card = drafting.context.roster.agents.get(turn.agent);
  const setting = settingAt(drafting.state, call.askedAt);
  const available = card ? availableTools(card, setting, drafting.context.workflows) : [];
  const { name, arguments: text } = call;
  return drafting.context.tools.judge({ agent: turn.agent, name, arguments: text, available });
}

function askFor(drafting: Drafting, turn: Turn, call: OpenCall, why: string, mayHaveRun: boolean): void {
  drafting.add({
    type: 'approval-requested',
    author: drafting.agentAuthor(turn.agent),
    turnId: turn.turnId,
    approvalId: drafting.context.newId(),
    call: call.place,
    agent: turn.agent,
    tool: call.name,
    arguments: call.arguments,
    argumentsHash: drafting.context.tools.fingerprint(call.arguments),
    risk: 'risky',
    why,
    mayHaveRun,
  });
}

/** The calls that may start now (B1), with what is known of their risk. */
export function startable(
  drafting: Drafting,
  turn: Turn,
): { readonly call: OpenCall; readonly risk: Risk }[] {
  const found: { call: OpenCall; risk: Risk }[] = [];
  let isFirst = true;
  for (const call of turn.openCalls.filter((open) => !isConversationTool(open.name))) {
    if (call.approval?.status === 'pending') break; // in its place: nothing behind it
    const risk = call.started ? call.risk : riskOf(drafting, turn, call);
    if (risk === 'risky') {
      if (isFirst && !call.started) found.push({ call, risk });
      break;
    }
    if (!call.started) found.push({ call, risk });
    isFirst = false;
  }
  return found;
}

function riskOf(drafting: Drafting, turn: Turn, call: OpenCall): Risk {
  if (call.approval) return 'risky';
  const judgement = judge(drafting, turn, call);
  return judgement.kind === 'run' ? judgement.risk : 'risky';
}

/** Starts what may start. What has become forbidden or asked for since it was requested is not run. */
export function startTools(drafting: Drafting, slug: string): void {
  const turn = agentState(drafting.state, slug).turn;
  if (!turn) return;
  for (const { call, risk } of startable(drafting, turn)) {
    const judgement: Judgement = call.approval ? { kind: 'run', risk } : judge(drafting, turn, call);
    if (judgement.kind === 'run') startTool(drafting, turn, call, judgement.risk, false);
    else if (judgement.kind === 'ask') askFor(drafting, turn, call, judgement.why, false);
    else refuse(drafting, turn, call, judgement.code, judgement.message);
  }
}

/** Takes up the calls of a turn after a crash (B3). */
export function repairCalls(
  drafting: Drafting,
  turn: Turn,
  audited: readonly AuditedResult[],
  count: RepairCount,
): void {
  backfill(drafting, turn, audited, count);
  for (const call of agentState(drafting.state, turn.agent).turn?.openCalls ?? []) {
    if (isConversationTool(call.name) || !call.started) continue;
    if (call.risk === 'risky') {
      askFor(drafting, turn, call, 'the daemon stopped while it ran: it may already have happened', true);
      count.unknown++;
    } else if (call.starts >= SAFE_STARTS) {
      const message = `${call.name} was interrupted twice: whether it took effect is unknown`;
      addResult(drafting, turn, call, { content: toolError('INTERRUPTED', message) });
      count.unknown++;
    } else {
      retry(drafting, turn, call);
      count.retried++;
    }
  }
}

/** Results that the runner of the tool saw and the log lacks: what is known is not said to be unknown (L12). */
export function backfill(
  drafting: Drafting,
  turn: Turn,
  audited: readonly AuditedResult[],
  count: RepairCount,
): void {
  for (const call of turn.openCalls) {
    const { index, position } = call.place;
    const known = audited.find((result) => result.index === index && result.position === position);
    if (!known || !call.started || isConversationTool(call.name)) continue;
    addResult(drafting, turn, call, { content: known.content });
    count.repaired++;
  }
}

function retry(drafting: Drafting, turn: Turn, call: OpenCall): void {
  const judgement = judge(drafting, turn, call);
  if (judgement.kind === 'refuse') refuse(drafting, turn, call, judgement.code, judgement.message);
  else startTool(drafting, turn, call, 'safe', true);
}
