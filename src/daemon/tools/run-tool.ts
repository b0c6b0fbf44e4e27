import type { ToolOutcome, ToolRun } from '../../agents/index.ts';
import { type Effect, toolError, wireCallId } from '../../conversation/index.ts';
import { messageOf, readArguments } from '../../kernel/index.ts';
import type { AuditRecord } from '../../persistence/index.ts';
import type { Runtime } from '../runtime.ts';
import { keptResult } from './large.ts';

/**
 * Runs one tool call, from its first audit record to the result that the model reads.
 *
 * RUN-TOOL-1  The request is in the audit log, synced, before the call runs; the result is there before it is reported.
 *             With its own logs, a daemon writes the request before the log contains the start, so that a missing start
 *             proves after a crash that nothing ran (L12). With shared logs it does not: the append may be refused.
 * RUN-TOOL-2  A call always ends with a result, except at a shutdown: then it stays outstanding in the log.
 * RUN-TOOL-3  A large result becomes a file first, then a preview in the log that names it (`large.ts`).
 */

type ToolEffect = Extract<Effect, { type: 'run-tool' }> & Pick<ToolRun, 'traceparent'>;

export interface ToolResult {
  readonly result: string;
  readonly id?: string;
  readonly fullOutputPath?: string;
}

/** Unpublished requests in the audit log, by wire call id. */
export type Requests = ReadonlyMap<string, AuditRecord>;

/**
 * Records requests before their start is appended (RUN-TOOL-1). `known`: records of a batch that could not be appended;
 * they are reused. `runTool` retries what fails here.
 */
export async function recordRequests(
  conversation: string,
  effects: readonly Effect[],
  known: Requests,
  runtime: Pick<Runtime, 'store' | 'ownership' | 'now' | 'log'>,
): Promise<Map<string, AuditRecord>> {
  const recorded = new Map<string, AuditRecord>();
  const missing: ToolEffect[] = [];
  for (const effect of runtime.ownership.isShared ? [] : effects) {
    if (effect.type !== 'run-tool') continue;
    const record = known.get(wireCallId(effect.call));
    if (record?.tool === effect.name && record.arguments === effect.arguments)
      recorded.set(wireCallId(effect.call), record);
    else missing.push(effect);
  }
  if (missing.length === 0) return recorded;
  const records = missing.map((effect) => requestOf(effect, runtime));
  try {
    await runtime.store.toolRecords.append(conversation, records);
    for (const record of records) {
      const { entry: index, position } = record.call;
      recorded.set(wireCallId({ index, position }), record);
    }
  } catch (error) {
    runtime.log.warn(
      { conversation, error: messageOf(error) },
      'tool requests could not be recorded in the audit log; retrying',
    );
  }
  return recorded;
}

function requestOf(effect: ToolEffect, runtime: Pick<Runtime, 'now'>): AuditRecord {
  return recordOf('ToolCallRequested', effect, runtime, { arguments: effect.arguments });
}

function recordOf(
  type: AuditRecord['type'],
  { call: { index: entry, position }, name: tool }: ToolEffect,
  { now }: Pick<Runtime, 'now'>,
  more: Partial<AuditRecord> = {},
): AuditRecord {
  return { type, call: { entry, position }, tool, at: new Date(now()).toISOString(), ...more };
}

/** `requested`: the request, if it is in the audit log. Null: the daemon stops, and nothing is reported (RUN-TOOL-2). */
export async function runTool(
  conversation: string,
  effect: ToolEffect,
  runtime: Runtime,
  signal: AbortSignal,
  requested?: AuditRecord,
): Promise<ToolResult | null> {
  const record = async (entry: AuditRecord) => {
    if (entry !== requested) await runtime.store.toolRecords.append(conversation, [entry]);
    runtime.publishAudit(conversation, entry); // only durable records
  };
  try {
    runtime.reach('before-tool-record');
    await record(requested ?? requestOf(effect, runtime));
    await record(recordOf('ToolCallStarted', effect, runtime));
  } catch (error) {
    return {
      result: toolError('NOT_RUN', `the call could not be recorded, so it was not run: ${messageOf(error)}`),
    };
  }
  // Recorded but not run: the new owner reports its outcome as unknown, which is always safe.
  if (!(await runtime.ownership.mayAct(conversation, signal))) return null;
  runtime.reach('before-tool');
  const outcome = await run(conversation, effect, runtime, signal);
  runtime.reach('after-tool');
  if (outcome.kind === 'aborted' && runtime.shutdown.aborted) return null;
  const result = await inline(conversation, textOf(outcome), runtime);
  const completed = recordOf('ToolCallCompleted', effect, runtime, { result: result.result });
  await record(completed).catch((error: unknown) => {
    runtime.log.warn(
      { conversation, error: messageOf(error) },
      'a result could not be recorded in the audit log',
    );
  });
  runtime.reach('after-tool-record');
  return result;
}

async function run(
  conversation: string,
  {
    agent,
    policyAgent,
    turnId,
    call,
    name,
    arguments: text,
    isApproved = false,
    accepts,
    traceparent,
  }: ToolEffect,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const parsed = readArguments(text);
  if (!parsed.ok) return { kind: 'failed', code: 'INVALID_ARGUMENTS', message: parsed.why };
  const idempotencyKey = `${conversation}:${call.index}:${call.position}`;
  const given = {
    conversation,
    agent,
    policyAgent,
    turnId,
    name,
    arguments: parsed.value,
    idempotencyKey,
    isApproved,
    ...(traceparent !== undefined && { traceparent }),
  };
  const { toolbox } = runtime.team;
  if (accepts !== undefined) await toolbox.accept?.(name, accepts);
  return toolbox.run(given, signal);
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

async function inline(conversation: string, content: string, runtime: Runtime): Promise<ToolResult> {
  const kept = await keptResult(conversation, content, runtime);
  if ('error' in kept) {
    const message = `the result was too large to show and could not be kept: ${kept.error}`;
    return { result: toolError('OUTPUT_NOT_KEPT', message) };
  }
  const { text, ...file } = kept;
  return { result: text, ...file };
}
