import { join } from 'node:path';
import type { Located, Toolbox, ToolOutcome, ToolRun } from '../../agents/tool-port.ts';
import { type LinkedAbort, linkedAbort } from '../../kernel/index.ts';
import { failed, runGuarded } from '../guarded.ts';
import { asIs, type Enclose } from '../hide-folder.ts';
import { SILENT, type ToolLog } from '../log.ts';
import { failureOf } from './errors.ts';
import { editTool } from './files/edit.ts';
import { listTool } from './files/list.ts';
import { parsePath } from './files/names.ts';
import type { Protection } from './files/protected.ts';
import { readTool } from './files/read.ts';
import { locate, openSandbox, placeOf } from './files/sandbox.ts';
import { searchTool } from './files/search.ts';
import { writeTool } from './files/write.ts';
import { SHELL_TIMEOUT_MS } from './limits.ts';
import { shellTool } from './process/shell.ts';
import { recallTool } from './recall.ts';
import type { BuiltInTool, ToolContext } from './tool.ts';
import { type Conversations, NO_CONVERSATIONS } from './tool.ts';

/** The tools that Parley brings. Which paths they take, and how far those lead: `names.ts` and `sandbox.ts`. */
export interface BuiltInOptions {
  /** What `@project` means: absolute path of a folder. */
  readonly project: string;
  /** The file behind `@state/logs/tool-results/<conversation>/<entry>.json`. */
  readonly outputs: (conversation: string, entry: string) => string;
  /** Where outputs are no files of this machine: the text of one; null: there is none. */
  readonly storedOutput?: ((conversation: string, entry: string) => Promise<string | null>) | undefined;
  /** What `recall` reads; without it no call of that tool finds anything. */
  readonly conversations?: Conversations;
  /** Folders that stay closed though they may lie in the project: the data directory, with its credentials. */
  readonly closed?: readonly string[];
  /** What is protected besides the names that always are. */
  readonly protection?: Protection;
  /** All that commands are handed: nothing else of the daemon's environment reaches them. */
  readonly environment?: Readonly<Record<string, string>>;
  /** How commands are started; as they are unless told. */
  readonly enclose?: Enclose | undefined;
  /** For one command; 120 seconds unless told. */
  readonly shellTimeoutMs?: number;
  readonly log?: ToolLog;
}

const ABORTED: ToolOutcome = { kind: 'aborted' };

const TOOLS: ReadonlyMap<string, BuiltInTool> = new Map(
  [recallTool, readTool, listTool, searchTool, writeTool, editTool, shellTool].map((tool) => [
    tool.definition.name,
    tool,
  ]),
);

/** For a command to be ended and to say so, before it is no longer waited for. */
const ENDING_MS = 10_000;

interface Running {
  readonly link: LinkedAbort;
  readonly outcome: Promise<ToolOutcome>;
}

export function createBuiltInTools(options: BuiltInOptions): Toolbox {
  const { project, outputs, storedOutput, environment = {}, log = SILENT } = options;
  const { shellTimeoutMs = SHELL_TIMEOUT_MS, conversations = NO_CONVERSATIONS, enclose = asIs } = options;
  const closedFolders = options.closed ?? [];
  const protection = options.protection ?? { names: [], folders: [] };
  const given = {
    project,
    closed: closedFolders,
    protection,
    outputs,
    storedOutput,
    conversations,
    environment,
    shellTimeoutMs,
    enclose,
    log,
  };
  const definitions = new Map([...TOOLS].map(([name, { definition }]) => [name, definition]));
  const running = new Set<Running>();
  let closed = false;

  async function run(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome> {
    const tool = TOOLS.get(call.name);
    if (!tool) return failed('TOOL_NOT_AVAILABLE', missing(call.name));
    const wrong = tool.check(call.arguments);
    if (wrong !== null) return failed('INVALID_ARGUMENTS', wrong);
    const work = (told: AbortSignal) =>
      tool
        .run(call.arguments, { ...given, ...ofCall(call), signal: told })
        .catch((error: unknown) => (told.aborted ? ABORTED : failureOf(call.name, error, log)));
    const timeoutMs = tool.timeoutMs ?? shellTimeoutMs + ENDING_MS;
    return runGuarded(work, signal, { name: call.name, timeoutMs });
  }

  async function runUntilClosed(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome> {
    if (closed) return ABORTED;
    const link = linkedAbort(signal);
    const life = { link, outcome: run(call, link.signal) };
    running.add(life);
    try {
      return await life.outcome;
    } finally {
      running.delete(life);
      link.unlink();
    }
  }

  return {
    definitions: () => definitions,
    check: (name, arguments_) => {
      const tool = TOOLS.get(name);
      return tool ? tool.check(arguments_) : missing(name);
    },
    locate: (name, arguments_) => {
      const subject = TOOLS.get(name)?.definition.subject;
      if (subject?.kind !== 'path') return null;
      try {
        return whereLeads(arguments_[subject.argument] ?? WHOLE_PROJECT, subject.writes, given);
      } catch (error) {
        const outcome = failureOf(name, error, log);
        return outcome.kind === 'failed' ? { ...outcome, kind: 'refused' } : null;
      }
    },
    run: runUntilClosed,
    close: async () => {
      closed = true;
      for (const { link } of running) link.abort(new Error('the tools are closed'));
      await Promise.all([...running].map(({ outcome }) => outcome));
    },
  };
}

function ofCall({ conversation, agent, permits }: ToolRun) {
  return { conversation, agent, permits };
}

/** What a path that may be left out means. */
const WHOLE_PROJECT = '@project';

type Lands = Pick<ToolContext, 'project' | 'closed' | 'protection'>;

/** What throws is what the run would throw. A stored output is no link, and its tool reads no other conversation's. */
function whereLeads(path: unknown, writes: boolean, lands: Lands): Located | null {
  if (typeof path !== 'string' || path.startsWith('@state/')) return null;
  const named = parsePath(path, '');
  if (named.kind !== 'project') return null;
  const sandbox = openSandbox(lands.project, lands.closed, lands);
  const { real, missing: below } = locate(sandbox, named.names);
  return { kind: 'place', place: placeOf(sandbox, join(real, ...below), named.names, writes) };
}

function missing(name: string): string {
  return `there is no tool ${name}`;
}
