import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import type { Toolbox, ToolDefinition, ToolOutcome, ToolRun, ToolServer } from '../../agents/tool-port.ts';
import { escapeTokens } from '../../conversation/index.ts';
import { cut, hideValues, messageOf, monotonicClock } from '../../kernel/index.ts';
import type { Enclose } from '../hide-folder.ts';
import { Acceptance, type AcceptedTools } from './acceptance.ts';
import { type ArgumentsCheck, argumentsCheck, wireParameters } from './arguments.ts';
import { ChildTransport } from './child-transport.ts';
import type { Link } from './connection.ts';
import { failed, reasonFor, unavailable } from './failure.ts';
import { HttpTransport } from './http-transport.ts';
import { isOfServer, wireNames } from './names.ts';
import { McpServer, type ServerStatus } from './server.ts';
import {
  DEFAULT_TIMES,
  type McpLog,
  type McpServerSettings,
  type McpTimes,
  type SecretValue,
} from './settings.ts';

/**
 * The tools of all servers, as one toolbox.
 *
 * MCP-TOOLBOX-1 Only `run` and `settled` wait for servers: the daemon starts even if no server does.
 * MCP-TOOLBOX-2 A tool is safe only if its server declares it read-only and the configuration trusts that server.
 * MCP-TOOLBOX-3 A call is checked against the tool that exists when it runs.
 * MCP-TOOLBOX-4 A tool that is not accepted in its current form does not run, even if the call was allowed.
 */

export interface McpToolbox extends Toolbox {
  /** Starts all servers and does not wait; the first `definitions()` does so too. */
  start(): void;
  /** Resolves when each server is ready or has failed once. */
  settled(): Promise<void>;
  /** In the order of the configuration. */
  status(): readonly ServerStatus[];
}

interface OfferedTool {
  readonly server: string;
  readonly tool: string;
  readonly owner: McpServer;
  readonly check: ArgumentsCheck;
  readonly listed: Tool;
}

const LONGEST_DESCRIPTION = 8000;

export class ServerTools implements McpToolbox {
  readonly #owners: readonly McpServer[];
  readonly #acceptance: Acceptance | null;
  #offered: ReadonlyMap<string, OfferedTool> | null = null;
  #defined: ReadonlyMap<string, ToolDefinition> | null = null;

  /** `servers` gets a function to call when the tools of a server change. */
  constructor(servers: (onChange: () => void) => readonly McpServer[], acceptance: Acceptance | null = null) {
    this.#acceptance = acceptance;
    this.#owners = servers(() => {
      this.#offered = null;
      this.#defined = null;
    });
  }

  async accept(name: string, digest: string): Promise<void> {
    const offered = this.#offers().get(name);
    if (!offered) return;
    await this.#acceptance?.accept(offered.server, offered.tool, digest);
    this.#defined = null;
  }

  start(): void {
    for (const server of this.#owners) server.start();
  }

  async settled(): Promise<void> {
    this.start();
    await Promise.all(this.#owners.map((server) => server.settled()));
  }

  status(): readonly ServerStatus[] {
    return this.#owners.map((server) => server.status());
  }

  servers(): readonly ToolServer[] {
    const offers = [...this.#offers()];
    return this.#owners.map((server) => {
      const own = offers.filter(([, { owner }]) => owner === server).map(([name]) => name);
      const unaccepted = own.filter((name) => this.definitions().get(name)?.unaccepted);
      const more = unaccepted.length > 0 ? { unaccepted } : {};
      return { ...server.status(), tools: own.sort(), ...more };
    });
  }

  definitions(): ReadonlyMap<string, ToolDefinition> {
    this.start();
    this.#defined ??= new Map(
      [...this.#offers()].map(([name, offered]) => [
        name,
        { ...define(name, offered), ...this.#unacceptedOf(offered) },
      ]),
    );
    return this.#defined;
  }

  check(name: string, given: unknown): string | null {
    const offered = this.#offers().get(name);
    if (offered !== undefined) return offered.check(given);
    return this.#mayCome(name) ? null : `there is no tool ${name}`; // MCP-TOOLBOX-3: `run` waits, and checks
  }

  async run(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome> {
    try {
      return await this.#runChecked(call, signal);
    } catch (error) {
      return failed('TOOL_FAILED', messageOf(error));
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#owners.map((server) => server.close()));
  }

  async #runChecked(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome> {
    this.start();
    const owners = this.#owners.filter(({ name }) => isOfServer(call.name, name));
    await Promise.all(owners.map((owner) => owner.settled(signal)));
    if (signal.aborted) return { kind: 'aborted' };
    const offered = this.#offers().get(call.name);
    if (offered === undefined) return this.#missing(call.name);
    const wrong = offered.check(call.arguments);
    if (wrong !== null) return failed('INVALID_ARGUMENTS', wrong);
    if (this.#unacceptedOf(offered).unaccepted)
      return failed(
        'TOOL_CHANGED',
        `${call.name} changed since the call was allowed. Nothing was done: call it again.`,
      );
    const { tool, owner } = offered;
    const { idempotencyKey, traceparent } = call;
    return owner.call({ tool, arguments: call.arguments, idempotencyKey, traceparent }, signal);
  }

  #unacceptedOf({ server, listed }: OfferedTool): Pick<ToolDefinition, 'unaccepted'> {
    const unaccepted = this.#acceptance?.unaccepted(server, listed);
    return unaccepted ? { unaccepted } : {};
  }

  #mayCome(name: string): boolean {
    return this.#owners.some((server) => server.isConnecting && isOfServer(name, server.name));
  }

  #missing(name: string): ToolOutcome {
    const owners = this.#owners.filter((server) => isOfServer(name, server.name));
    const down = owners.map((owner) => owner.status()).find(({ state }) => state === 'failed');
    if (down !== undefined) return unavailable(down.server, down.error ?? null);
    return failed('TOOL_NOT_AVAILABLE', `there is no tool ${name}`);
  }

  #offers(): ReadonlyMap<string, OfferedTool> {
    this.#offered ??= wireNames(this.#owners.flatMap(offersOf));
    return this.#offered;
  }
}

/** A tool that a server lists twice counts once. */
function offersOf(owner: McpServer): OfferedTool[] {
  const byName = new Map<string, Tool>();
  for (const tool of owner.tools) if (!byName.has(tool.name)) byName.set(tool.name, tool);
  return [...byName.values()].map((listed) => ({
    server: owner.name,
    tool: listed.name,
    owner,
    check: argumentsCheck(listed.inputSchema, owner.checks),
    listed,
  }));
}

function define(name: string, { server, owner, listed }: OfferedTool): ToolDefinition {
  const said = listed.description ?? listed.title ?? listed.annotations?.title ?? '';
  const description = said.trim() === '' ? `${listed.name}, a tool of the server ${server}.` : said;
  return {
    name,
    description: escapeTokens(
      description.length <= LONGEST_DESCRIPTION ? description : `${cut(description, LONGEST_DESCRIPTION)}…`,
    ),
    parameters: wireParameters(listed.inputSchema),
    risk: owner.isSafe(listed) ? 'safe' : 'risky', // MCP-TOOLBOX-2
  };
}

interface McpToolsOptions {
  /** By name; names match `[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*`. */
  readonly servers: Readonly<Record<string, McpServerSettings>>;
  /** Working directory of child processes, absolute. */
  readonly project: string;
  /** Environment of child processes, besides their own settings. */
  readonly environment: Readonly<Record<string, string>>;
  /** Wraps the start of child processes; default: no wrapper. */
  readonly enclose?: Enclose | undefined;
  readonly log: McpLog;
  /** What is hidden in tools and errors of the servers, besides the secrets of their settings. */
  readonly secrets?: readonly string[];
  /** Absent: all tools are accepted. */
  readonly accepted?: AcceptedTools;
  readonly times?: Partial<McpTimes>;
}

export function createMcpTools(options: McpToolsOptions): McpToolbox {
  const times = { ...DEFAULT_TIMES, ...options.times };
  const acceptance = options.accepted ? new Acceptance(options.accepted, options.log) : null;
  const servers = (onChange: () => void) =>
    Object.entries(options.servers).map(([name, settings]) => {
      const own = Object.values(settings.transport === 'http' ? settings.headers : settings.env);
      const hide = hideValues([...own.map((value) => value.reveal()), ...(options.secrets ?? [])]);
      return new McpServer({
        name,
        trustsReadOnlyHint: settings.trustReadOnlyHint === true,
        link: () => ({ ...linkTo(settings, options, times), hide }),
        times,
        reason: reasonFor(hide),
        log: options.log,
        elapsed: monotonicClock,
        random: Math.random,
        onListed: (tools) => acceptance?.listed(name, tools),
        onChange,
      });
    });
  return new ServerTools(servers, acceptance);
}

function linkTo(settings: McpServerSettings, options: McpToolsOptions, times: McpTimes): Omit<Link, 'hide'> {
  const { endMs, answerGraceMs } = times;
  if (settings.transport === 'http') {
    const headers = revealed(settings.headers);
    return {
      transport: new HttpTransport({ url: settings.url, headers, endMs, answerGraceMs }),
      probe: true,
    };
  }
  const { command, args } = settings;
  const env = { ...options.environment, ...revealed(settings.env) };
  const { project: directory, enclose } = options;
  const transport = new ChildTransport({ command, args, env, directory, endMs, enclose });
  return { transport, probe: false, lastWords: () => transport.lastWords() };
}

function revealed(values: Readonly<Record<string, SecretValue>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.reveal()]));
}
