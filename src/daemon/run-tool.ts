import type { ToolOutcome } from '../agents/index.ts';
import { type Effect, toolError } from '../conversation/index.ts';
import { messageOf } from '../kernel/index.ts';
import type { AuditRecord } from '../persistence/index.ts';
import { keptResult } from './large.ts';
import type { Runtime } from './runtime.ts';
import { parse } from './tool-rules.ts';

/**
 * One call of a tool, from the audit log's first word to the result that the model reads.
 *
 * T1 What is to be run is in the audit log, synced, before it runs; what came of it before it is reported.
 * T2 A call always ends in a result; only a shutdown leaves it open, for the log owes it then.
 * T3 A large result is a file first, and then a preview in the log that names it.
 */

type ToolEffect = Extract<Effect, { type: 'run-tool' }>;

export interface ToolResult {
  readonly result: string;
  readonly id?: string;
  readonly fullOutputPath?: string;
}

/** Null: the daemon stops; nothing is reported (T2). */
export async function runTool(
  conversation: string,
  effect: ToolEffect,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ToolResult | null> {
  const say = async (type: AuditRecord['type'], more: Partial<AuditRecord>) => {
    const call = { entry: effect.call.index, position: effect.call.position };
    const record = { type, call, tool: effect.name, at: new Date(runtime.now()).toISOString(), ...more };
    await runtime.store.toolRecords.append(conversation, [record]);
    runtime.publishAudit(conversation, record); // only what is durable
  };
  try {
    runtime.reach('before-tool-record');
    await say('ToolCallRequested', { arguments: effect.arguments });
    await say('ToolCallStarted', {}); // T1
  } catch (error) {
    return {
      result: toolError('NOT_RUN', `the call could not be recorded, so it was not run: ${messageOf(error)}`),
    };
  }
  // Recorded and not run, though others may read it as started: they say that it is unknown, which it never is too often.
  if (runtime.self && !(await runtime.self.mayAct(conversation, signal))) return null;
  runtime.reach('before-tool');
  const outcome = await run(conversation, effect, runtime, signal);
  runtime.reach('after-tool');
  if (outcome.kind === 'aborted' && runtime.shutdown.aborted) return null; // T2
  const result = await inline(conversation, textOf(outcome), runtime);
  await say('ToolCallCompleted', { result: result.result }).catch((error: unknown) => {
    runtime.log.warn({ conversation, error: messageOf(error) }, 'a result is not in the audit log');
  });
  runtime.reach('after-tool-record');
  return result;
}

async function run(
  conversation: string,
  { agent, turnId, call, name, arguments: text }: ToolEffect,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const parsed = parse(text);
  if (!parsed.ok) return { kind: 'failed', code: 'INVALID_ARGUMENTS', message: parsed.why };
  const idempotencyKey = `${conversation}:${call.index}:${call.position}`;
  const given = { conversation, agent, turnId, name, arguments: parsed.value, idempotencyKey };
  return runtime.toolbox.run(given, signal);
}

function textOf(outcome: ToolOutcome): string {
  switch (outcome.kind) {
    case 'completed':
      return outcome.content === '' ? '[no output]' : outcome.content;
    case 'failed':
      return toolError(outcome.code, outcome.message);
    case 'aborted':
      return toolError('ABORTED', 'the call was aborted: whether it took effect is unknown');
  }
}

/** T3 */
async function inline(conversation: string, content: string, runtime: Runtime): Promise<ToolResult> {
  const kept = await keptResult(conversation, content, runtime);
  if ('error' in kept) {
    const message = `the result was too large to show and could not be kept: ${kept.error}`;
    return { result: toolError('OUTPUT_NOT_KEPT', message) };
  }
  const { text, ...file } = kept;
  return { result: text, ...file };
}
