import type { FileKeeper, Toolbox, ToolFile, ToolOutcome, ToolRun } from '../../agents/index.ts';
import { MOST_OF_A_NAME } from '../../bus/index.ts';
import {
  type CommandOf,
  type Effect,
  type FilePart,
  plainName,
  showBytes,
  toolError,
  wireCallId,
} from '../../conversation/index.ts';
import {
  type Clock,
  cut,
  type Log,
  messageOf,
  ParleyError,
  readArguments,
  wellFormed,
} from '../../kernel/index.ts';
import type { AuditRecord } from '../../persistence/index.ts';
import type { ReachCrashPoint } from '../observe/crash-points.ts';
import { keptResult, type OutputContext, type RoomContext, requireRoom } from './entry-content.ts';

/**
 * Runs one tool call, from its first audit record to the result that the model reads.
 *
 * RUN-TOOL-1  The request is in the audit log, synced, before the call runs; the result is there before it is reported.
 *             With its own logs, a daemon writes the request before the log contains the start, so that a missing start
 *             proves after a crash that nothing ran (L12). With shared logs it does not: the append may be refused.
 * RUN-TOOL-2  A call always ends with a result, except at a shutdown: then it stays outstanding in the log.
 * RUN-TOOL-3  A large result becomes a file first, then a preview in the log that names it (`entry-content.ts`).
 * RUN-TOOL-4  Its files are stored first, then named by the record of the result: a restart recovers the result with them (L12).
 */

type ToolEffect = Extract<Effect, { type: 'run-tool' }> & Pick<ToolRun, 'traceparent' | 'ask'>;

export interface ToolCallContext extends OutputContext, Omit<ResultFilesContext, 'store'> {
  readonly store: OutputContext['store'] & ResultFilesContext['store'];
  readonly team: { readonly toolbox: Toolbox } & ResultFilesContext['team'];
  readonly ownership: {
    /** `recordRequests` is of use (RUN-TOOL-1). */
    readonly recordsProve: boolean;
    /** False: another daemon owns the conversation by now. */
    mayAct(conversation: string, signal: AbortSignal): Promise<boolean>;
  };
  /** What running calls report, by turn; the latest of those that run side by side. */
  readonly toolProgress: Map<string, ToolProgress>;
  publishAudit(conversation: string, record: AuditRecord): void;
  readonly now: Clock;
  readonly log: Log;
  readonly reach: ReachCrashPoint;
  /** Aborted when the grace period is over: running work is dropped and stays outstanding in the log. */
  readonly shutdown: AbortSignal;
}

export interface ToolProgress {
  readonly tool: string;
  readonly text: string;
}

type ToolResult = Pick<CommandOf<'tool-finished'>, 'result' | 'files' | 'id' | 'fullOutputPath'>;

/** Unpublished requests in the audit log, by wire call id. */
type Requests = ReadonlyMap<string, AuditRecord>;

/**
 * Records requests before their start is appended (RUN-TOOL-1). `known`: records of a batch that could not be appended;
 * they are reused. `runTool` retries what fails here.
 */
export async function recordRequests(
  conversation: string,
  effects: readonly Effect[],
  known: Requests,
  daemon: Pick<ToolCallContext, 'store' | 'ownership' | 'now' | 'log'>,
): Promise<Map<string, AuditRecord>> {
  const recorded = new Map<string, AuditRecord>();
  const missing: ToolEffect[] = [];
  for (const effect of daemon.ownership.recordsProve ? effects : []) {
    if (effect.type !== 'run-tool') continue;
    const record = known.get(wireCallId(effect.call));
    if (record?.tool === effect.name && record.arguments === effect.arguments)
      recorded.set(wireCallId(effect.call), record);
    else missing.push(effect);
  }
  if (missing.length === 0) return recorded;
  const records = missing.map((effect) => requestOf(effect, daemon));
  try {
    await daemon.store.toolRecords.append(conversation, records);
    for (const record of records) {
      const { entry: index, position } = record.call;
      recorded.set(wireCallId({ index, position }), record);
    }
  } catch (error) {
    daemon.log.warn(
      { conversation, error: messageOf(error) },
      'tool requests could not be recorded in the audit log; retrying',
    );
  }
  return recorded;
}

function requestOf(effect: ToolEffect, daemon: Pick<ToolCallContext, 'now'>): AuditRecord {
  return recordOf('ToolCallRequested', effect, daemon, { arguments: effect.arguments });
}

function recordOf(
  type: AuditRecord['type'],
  { call: { index: entry, position }, name: tool }: ToolEffect,
  { now }: Pick<ToolCallContext, 'now'>,
  more: Partial<AuditRecord> = {},
): AuditRecord {
  return { type, call: { entry, position }, tool, at: new Date(now()).toISOString(), ...more };
}

/** `requested`: the request, if it is in the audit log. Null: the daemon stops, and nothing is reported (RUN-TOOL-2). */
export async function runTool(
  conversation: string,
  effect: ToolEffect,
  daemon: ToolCallContext,
  signal: AbortSignal,
  requested?: AuditRecord,
): Promise<ToolResult | null> {
  const record = async (entry: AuditRecord) => {
    if (entry !== requested) await daemon.store.toolRecords.append(conversation, [entry]);
    daemon.publishAudit(conversation, entry); // only durable records
  };
  try {
    daemon.reach('before-tool-record');
    await record(requested ?? requestOf(effect, daemon));
    await record(recordOf('ToolCallStarted', effect, daemon));
  } catch (error) {
    return {
      result: toolError('NOT_RUN', `the call could not be recorded, so it was not run: ${messageOf(error)}`),
    };
  }
  // Recorded but not run: the new owner reports its outcome as unknown, which is always safe.
  if (!(await daemon.ownership.mayAct(conversation, signal))) return null;
  daemon.reach('before-tool');
  const outcome = await run(conversation, effect, daemon, signal);
  daemon.reach('after-tool');
  if (outcome.kind === 'aborted' && daemon.shutdown.aborted) return null;
  const result = await resultOf(conversation, outcome, daemon);
  const { result: text, files } = result;
  const completed = recordOf('ToolCallCompleted', effect, daemon, { result: text, ...(files && { files }) });
  await record(completed).catch((error: unknown) => {
    daemon.log.warn(
      { conversation, error: messageOf(error) },
      'a result could not be recorded in the audit log',
    );
  });
  daemon.reach('after-tool-record');
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
    ask,
  }: ToolEffect,
  daemon: ToolCallContext,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const parsed = readArguments(text);
  if (!parsed.ok) return { kind: 'failed', code: 'INVALID_ARGUMENTS', message: parsed.why };
  const { toolProgress: progress } = daemon;
  let latest: ToolProgress | undefined;
  let isOver = false;
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
    onProgress: (text: string) => {
      if (isOver) return;
      latest = { tool: name, text };
      progress.set(turnId, latest);
    },
    ...(traceparent !== undefined && { traceparent }),
    ...(ask && { ask }),
  };
  const { toolbox } = daemon.team;
  if (accepts !== undefined) await toolbox.accept?.(name, accepts);
  try {
    return await toolbox.run(given, signal);
  } finally {
    isOver = true;
    if (progress.get(turnId) === latest) progress.delete(turnId);
  }
}

function textOf(outcome: ToolOutcome): string {
  switch (outcome.kind) {
    case 'completed':
      return outcome.content || (outcome.files?.length ? '' : '[no output]');
    case 'failed':
      return toolError(outcome.code, outcome.message);
    case 'aborted':
      return toolError('ABORTED', 'the call was aborted: whether it took effect is unknown');
  }
}

async function resultOf(
  conversation: string,
  outcome: ToolOutcome,
  daemon: ToolCallContext,
): Promise<ToolResult> {
  const given = outcome.kind === 'aborted' ? [] : (outcome.files ?? []);
  const { files, notes } = await keptFiles(conversation, given, daemon);
  const { result, ...stored } = await inline(conversation, textOf(outcome), daemon);
  const text = [result, ...notes].filter((line) => line !== '').join('\n');
  return { result: text, ...stored, ...(files.length > 0 && { files }) };
}

async function inline(conversation: string, content: string, daemon: ToolCallContext): Promise<ToolResult> {
  const kept = await keptResult(conversation, content, daemon);
  if ('error' in kept) {
    const message = `the result was too large to show and could not be kept: ${kept.error}`;
    return { result: toolError('OUTPUT_NOT_KEPT', message) };
  }
  const { text, ...file } = kept;
  return { result: text, ...file };
}

/**
 * Keeps the files of a tool's result, before the audit log names them (RUN-TOOL-4).
 *
 * RESULT-FILES-1 A file that cannot be kept is named in the result with the reason. The call does not fail for it: the tool ran.
 * RESULT-FILES-2 At most `MOST_FILES` are kept; a line names the number of the others.
 */
const MOST_FILES = 16;

interface ResultFilesContext extends RoomContext {
  readonly files: FileKeeper;
  readonly log: Pick<Log, 'warn'>;
}

interface KeptFiles {
  readonly files: readonly FilePart[];
  /** RESULT-FILES-1 */
  readonly notes: readonly string[];
}

export async function keptFiles(
  conversation: string,
  given: readonly ToolFile[],
  daemon: ResultFilesContext,
): Promise<KeptFiles> {
  const files: FilePart[] = [];
  const notes: string[] = [];
  for (const [at, { bytes, name, mediaType }] of given.slice(0, MOST_FILES).entries()) {
    const short = name === undefined ? undefined : cut(wellFormed(name), MOST_OF_A_NAME);
    try {
      const file = await daemon.files.keep(bytes, { name: short, mediaType });
      await requireRoom(conversation, [...files, file], daemon);
      files.push(file);
    } catch (error) {
      const isRefused = error instanceof ParleyError && error.code.startsWith('BLOB_');
      if (!isRefused)
        daemon.log.warn({ conversation, error: messageOf(error) }, 'a file of a result is not kept');
      const why = isRefused ? `${error.code}: ${error.message}` : 'it could not be stored';
      const named = name === undefined ? '' : ` ${plainName(name)}`;
      notes.push(`[file ${at + 1}${named}, ${showBytes(bytes.length)}: not kept: ${why}]`);
    }
  }
  if (given.length > MOST_FILES)
    notes.push(`[${given.length - MOST_FILES} more files: not kept: a result has at most ${MOST_FILES}]`);
  return { files, notes };
}
