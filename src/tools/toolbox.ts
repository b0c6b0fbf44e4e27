import type { Risk, Toolbox, ToolDefinition, ToolFile, ToolOutcome, ToolRun } from '../agents/tool-port.ts';
import { forTool } from '../conversation/index.ts';
import { type LinkedAbort, type Log, linkedAbort, messageOf, PausableTimers } from '../kernel/index.ts';

/**
 * Combines several toolboxes into one; `toolboxOf`: one of tools of this process.
 *
 * TOOLS-TOOLBOX-1 A name belongs to the first part that offers it; a clash is logged once.
 * TOOLS-TOOLBOX-2 The configured risk has precedence over the risk that a tool declares.
 * TOOLS-TOOLBOX-3 Every call ends with an outcome within `timeoutMs` (GUARDED-1).
 * TOOLS-TOOLBOX-4 Closing closes every part, even if one of them fails.
 */
export interface ToolboxOptions {
  /** By wire name or pattern. */
  readonly risk: Readonly<Record<string, Risk>>;
  /** For one call; longer than the tools' own limits, so that their own error is reported. */
  readonly timeoutMs: number;
  /** For a tool to return after an abort. */
  readonly graceMs?: number;
  readonly log?: ToolLog;
}

interface Offer {
  readonly definition: ToolDefinition;
  readonly part: Toolbox;
}

interface Offered {
  /** The maps of the parts that `all` was made of. */
  readonly of: readonly ReadonlyMap<string, ToolDefinition>[];
  readonly all: ReadonlyMap<string, Offer>;
  readonly definitions: ReadonlyMap<string, ToolDefinition>;
}

export function createToolbox(parts: readonly Toolbox[], options: ToolboxOptions): Toolbox {
  const { log = SILENT } = options;
  const clashes = new Set<string>();
  let closing: Promise<void> | null = null;

  let offered: Offered = { of: [], all: new Map(), definitions: new Map() };

  /** The same maps until a part offers another map: the tools of parts change while the daemon runs. */
  function current(): Offered {
    const of = parts.map((part) => part.definitions());
    if (of.length === offered.of.length && of.every((map, at) => map === offered.of[at])) return offered;
    const all = offersNow();
    const definitions = new Map([...all].map(([name, { definition }]) => [name, definition]));
    offered = { of, all, definitions };
    return offered;
  }

  function offersNow(): Map<string, Offer> {
    const all = new Map<string, Offer>();
    for (const part of parts) {
      for (const [name, definition] of part.definitions()) {
        if (!all.has(name)) {
          const risk = forTool(options.risk, name);
          all.set(name, { definition: risk === undefined ? definition : { ...definition, risk }, part });
        } else if (!clashes.has(name)) {
          clashes.add(name);
          log.warn({ tool: name }, `two toolboxes offer a tool ${name}; the first one counts`);
        }
      }
    }
    return all;
  }

  function run(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome> {
    const { timeoutMs, graceMs } = options;
    const guard = { name: call.name, timeoutMs, ...(graceMs === undefined ? {} : { graceMs }) };
    return runGuarded(
      async (inner, paused) => {
        const offer = current().all.get(call.name);
        const { ask } = call;
        const given = ask
          ? { ...call, ask: (...asked: Parameters<typeof ask>) => paused(() => ask(...asked)) }
          : call;
        return offer ? offer.part.run(given, inner) : failed('TOOL_NOT_AVAILABLE', missing(call.name));
      },
      signal,
      guard,
    );
  }

  async function closeAll(): Promise<void> {
    const results = await Promise.allSettled(parts.map(async (part) => part.close()));
    for (const result of results) {
      if (result.status === 'rejected') {
        log.error({ err: result.reason }, `tools did not close: ${messageOf(result.reason)}`);
      }
    }
  }

  return {
    definitions: () => current().definitions,
    check: (name, given) => {
      const offer = current().all.get(name);
      return offer ? offer.part.check(name, given) : missing(name);
    },
    locate: (name, given) => current().all.get(name)?.part.locate?.(name, given) ?? null,
    change: async (call, signal) => (await current().all.get(call.name)?.part.change?.(call, signal)) ?? null,
    run,
    accept: async (name, digest) => current().all.get(name)?.part.accept?.(name, digest),
    servers: () => parts.flatMap((part) => part.servers?.() ?? []),
    close: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}

function missing(name: string): string {
  return `there is no tool ${name}`;
}

/** A tool of this process. */
export interface OwnTool {
  readonly definition: ToolDefinition;
  /** Null: the arguments match the schema. */
  check(given: unknown): string | null;
  run(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome>;
}

/** Closing aborts what runs and waits for it. */
export function toolboxOf(tools: readonly OwnTool[]): Toolbox {
  const named = new Map(tools.map((tool) => [tool.definition.name, tool]));
  const definitions = new Map(tools.map(({ definition }) => [definition.name, definition]));
  const running = new Map<LinkedAbort, Promise<ToolOutcome>>();
  let isClosed = false;
  return {
    definitions: () => definitions,
    check: (name, given) => {
      const tool = named.get(name);
      return tool ? tool.check(given) : missing(name);
    },
    run: async (call, signal) => {
      const tool = named.get(call.name);
      if (!tool) return failed('TOOL_NOT_AVAILABLE', missing(call.name));
      const wrong = tool.check(call.arguments);
      if (wrong !== null) return failed('INVALID_ARGUMENTS', wrong);
      if (isClosed) return { kind: 'aborted' };
      const link = linkedAbort(signal);
      const outcome = tool.run(call, link.signal);
      running.set(link, outcome);
      try {
        return await outcome;
      } finally {
        running.delete(link);
        link.unlink();
      }
    },
    close: async () => {
      isClosed = true;
      for (const link of running.keys()) link.abort(new Error('the tools are closed'));
      await Promise.allSettled(running.values());
    },
  };
}

/** For a tool to return after an abort; longer than the time to end a process group. */
const GRACE_MS = 5_000;

export interface GuardOptions {
  readonly name: string;
  readonly timeoutMs: number;
  readonly graceMs?: number;
}

type Paused = <Value>(wait: () => Promise<Value>) => Promise<Value>;
type Work = (signal: AbortSignal, paused: Paused) => Promise<ToolOutcome>;

/**
 * Runs a tool with a deadline and turns every failure into an outcome.
 *
 * GUARDED-1 The run ends: at its deadline or on abort the tool gets the signal; `graceMs` later the run stops waiting.
 * GUARDED-2 It never rejects: an error is a failure that the model reads.
 * GUARDED-3 A missing or malformed outcome is a failure.
 * GUARDED-4 It leaves no timer and no listener.
 * GUARDED-5 While the tool waits for a person its time stops; then it begins again.
 */
export async function runGuarded(
  work: Work,
  signal: AbortSignal,
  options: GuardOptions,
): Promise<ToolOutcome> {
  if (signal.aborted) return { kind: 'aborted' };
  const inner = linkedAbort(signal);
  let expired = false;
  let graceTimer: NodeJS.Timeout | undefined;
  const expire = () => {
    expired = true;
    inner.abort(new Error('the time for this call is over'));
  };
  const deadline = new PausableTimers(() => [setTimeout(expire, options.timeoutMs)]);
  const gaveUp = new Promise<ToolOutcome>((resolve) => {
    const wait = () => {
      graceTimer = setTimeout(() => resolve({ kind: 'aborted' }), options.graceMs ?? GRACE_MS);
    };
    inner.signal.addEventListener('abort', wait, { once: true });
  });
  try {
    const outcome = await Promise.race([
      outcomeOf((own) => work(own, (wait) => deadline.paused(wait)), inner.signal, options.name),
      gaveUp,
    ]);
    if (outcome.kind !== 'aborted' || !expired) return outcome;
    return failed('TIMEOUT', `${options.name} did not end within ${options.timeoutMs / 1_000} seconds`);
  } finally {
    deadline.stop();
    clearTimeout(graceTimer);
    inner.unlink();
  }
}

async function outcomeOf(
  work: (signal: AbortSignal) => Promise<ToolOutcome>,
  signal: AbortSignal,
  name: string,
): Promise<ToolOutcome> {
  try {
    const outcome: unknown = await work(signal);
    return isOutcome(outcome) ? outcome : failed('NO_RESULT', `${name} ended without a result`);
  } catch (error) {
    return signal.aborted ? { kind: 'aborted' } : failed('TOOL_FAILED', `${name}: ${messageOf(error)}`);
  }
}

function isOutcome(value: unknown): value is ToolOutcome {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false;
  if (value.kind === 'completed') return 'content' in value && typeof value.content === 'string';
  if (value.kind !== 'failed') return value.kind === 'aborted';
  const { code, message } = value as Record<string, unknown>;
  return typeof code === 'string' && typeof message === 'string';
}

export function completed(content: string, files: readonly ToolFile[] = []): ToolOutcome {
  return { kind: 'completed', content, ...(files.length > 0 && { files }) };
}

export function failed(
  code: string,
  message: string,
  files: readonly ToolFile[] = [],
): Extract<ToolOutcome, { kind: 'failed' }> {
  return { kind: 'failed', code, message, ...(files.length > 0 && { files }) };
}

/** The total time of a tool call, for every kind of tool. */
export const LONGEST_CALL_MS = 900_000;

export type ToolLog = Pick<Log, 'warn' | 'error'>;

export const SILENT: ToolLog = { warn: () => {}, error: () => {} };
