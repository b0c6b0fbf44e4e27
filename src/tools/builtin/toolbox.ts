import { join } from 'node:path';
import type { Located, ResolvedPath, Toolbox, ToolOutcome, ToolRun } from '../../agents/tool-port.ts';
import { errnoOf, messageOf, ParleyError } from '../../kernel/index.ts';
import { asIs } from '../processes.ts';
import { failed, runGuarded, SILENT, type ToolLog, toolboxOf } from '../toolbox.ts';
import { parsePath } from './files/names.ts';
import { attachTool, readTool } from './files/read.ts';
import { type Access, locate, openSandbox, placeOf } from './files/sandbox.ts';
import { listTool, searchTool } from './files/search.ts';
import { editTool, writeTool } from './files/write.ts';
import { permitTools } from './permit.ts';
import { recallTool } from './recall.ts';
import { SHELL_TIMEOUT_MS, shellTool } from './shell.ts';
import { type BuiltInTool, NO_CONVERSATIONS, type ToolContext } from './tool.ts';

/** The built-in tools. For their paths see `files/names.ts` and `files/sandbox.ts`. What is absent is empty, or has its default. */
export type BuiltInOptions = Pick<ToolContext, 'project'> &
  Partial<Omit<ToolContext, 'conversation' | 'agent' | 'permits' | 'signal'>>;

const ABORTED: ToolOutcome = { kind: 'aborted' };

const TOOLS = [
  ...[recallTool, readTool, attachTool, listTool, searchTool, writeTool, editTool, shellTool],
  ...permitTools,
];

const MAX_FILE_BYTES = 20 * 1024 * 1024;

/** Additional time for a command to be ended and report. */
const ENDING_MS = 10_000;

export function createBuiltInTools(options: BuiltInOptions): Toolbox {
  const { project, outputs = async () => null, environment = {}, log = SILENT } = options;
  const { shellTimeoutMs = SHELL_TIMEOUT_MS, conversations = NO_CONVERSATIONS, enclose = asIs } = options;
  const { blobs = async () => null, maxFileBytes = MAX_FILE_BYTES } = options;
  const closedFolders = options.closed ?? [];
  const protection = options.protection ?? { names: [], folders: [] };
  const given = {
    project,
    closed: closedFolders,
    protection,
    outputs,
    blobs,
    maxFileBytes,
    conversations,
    environment,
    shellTimeoutMs,
    enclose,
    log,
  };
  const run = (tool: BuiltInTool, call: ToolRun, signal: AbortSignal, act = tool.run) => {
    const { conversation, agent, permits } = call;
    const work = (inner: AbortSignal) =>
      act(call.arguments, { ...given, conversation, agent, permits, signal: inner }).catch(
        (error: unknown) => (inner.aborted ? ABORTED : failureOf(call.name, error, log)),
      );
    const timeoutMs = tool.timeoutMs ?? shellTimeoutMs + ENDING_MS;
    return runGuarded(work, signal, { name: call.name, timeoutMs });
  };
  const tools = TOOLS.map((tool) => ({
    ...tool,
    run: (call: ToolRun, signal: AbortSignal) => run(tool, call, signal),
  }));
  return {
    ...toolboxOf(tools),
    change: async (call, signal) => {
      const tool = TOOLS.find(({ definition }) => definition.name === call.name);
      if (!tool?.change || tool.check(call.arguments) !== null) return null;
      return run(tool, { ...call, permits: isUnprotected }, signal, tool.change);
    },
    locate: (name, arguments_) => {
      const subject = TOOLS.find(({ definition }) => definition.name === name)?.definition.subject;
      if (subject?.kind !== 'path') return null;
      try {
        return resolvePath(arguments_[subject.argument] ?? WHOLE_PROJECT, subject.writes, given);
      } catch (error) {
        const outcome = failureOf(name, error, log);
        return outcome.kind === 'failed' ? { ...outcome, kind: 'refused' } : null;
      }
    },
  };
}

/** A person who decides about a write is shown no secret that the file holds. */
const isUnprotected = ({ protectedBy }: ResolvedPath) => protectedBy.length === 0;

/** Default of an omitted path. */
const WHOLE_PROJECT = '@project';

/** Throws what the run would throw. Null for `@state` and `@blob`: they are not links, and only their own conversation reads them. */
function resolvePath(path: unknown, writes: boolean, context: Access): Located | null {
  if (typeof path !== 'string' || path.startsWith('@state/')) return null;
  const named = parsePath(path);
  if (named.kind !== 'project') return null;
  const sandbox = openSandbox(context);
  const { real, missing: below } = locate(sandbox, named.names);
  return { kind: 'place', place: placeOf(sandbox, join(real, ...below), named.names, writes) };
}

/** The system's error code → our code and message. */
const KNOWN: Readonly<Record<string, readonly [code: string, message: string]>> = {
  ENOENT: ['NOT_FOUND', 'no such file or folder'],
  ENOTDIR: ['NOT_A_FOLDER', 'a part of the path is a file and not a folder'],
  EISDIR: ['NOT_A_FILE', 'that is a folder'],
  ENXIO: ['NOT_A_FILE', 'that is neither a file nor a folder'],
  ELOOP: ['PATH_REFUSED', 'a link there leads nowhere, or was put there meanwhile'],
  ENAMETOOLONG: ['PATH_REFUSED', 'a name in the path is too long'],
  EACCES: ['NOT_PERMITTED', 'the system does not permit it'],
  EPERM: ['NOT_PERMITTED', 'the system does not permit it'],
  EROFS: ['NOT_PERMITTED', 'the disk can only be read'],
  ETXTBSY: ['NOT_PERMITTED', 'that program is running'],
  ENOSPC: ['DISK_FULL', 'the disk is full; nothing was changed'],
  EDQUOT: ['DISK_FULL', 'the quota of disk space is used up; nothing was changed'],
  EFBIG: ['DISK_FULL', 'the system refuses a file of that size; nothing was changed'],
  EMFILE: ['TOO_MANY_FILES', 'too many files are open; try again'],
  ENFILE: ['TOO_MANY_FILES', 'too many files are open; try again'],
};

/** An error of a tool as a failure for the model, without a real path of this machine. */
export function failureOf(tool: string, error: unknown, log: ToolLog): ToolOutcome {
  if (error instanceof ParleyError) {
    return failed(error.code, error.hint === undefined ? error.message : `${error.message}; ${error.hint}`);
  }
  const errno = errnoOf(error);
  const known = errno === null ? undefined : KNOWN[errno];
  if (known) return failed(...known);
  log.error({ err: error, tool }, `the tool ${tool} failed: ${messageOf(error)}`);
  const why = errno === null ? 'it has a bug, which was logged' : `the system says ${errno}`;
  return failed('TOOL_FAILED', `${tool} failed: ${why}`);
}
