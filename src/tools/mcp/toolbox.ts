import type { Tool } from '@modelcontextprotocol/client';
import type {
  Toolbox,
  ToolDefinition,
  ToolOutcome,
  ToolRun,
  ToolServer,
  Unaccepted,
} from '../../agents/tool-port.ts';
import { escapeTokens, wireParameters } from '../../conversation/index.ts';
import { cut, groupedBy, hideValues, messageOf, monotonicClock, sha256Of } from '../../kernel/index.ts';
import type { Enclose } from '../processes.ts';
import { failed } from '../toolbox.ts';
import { ChildTransport } from './child-transport.ts';
import {
  DEFAULT_TIMES,
  type Link,
  type McpLog,
  type McpServerSettings,
  type McpTimes,
  type SecretValue,
} from './connection.ts';
import { reasonFor, unavailable } from './failure.ts';
import { HttpTransport } from './http-transport.ts';
import { Authorization } from './oauth/authorization.ts';
import { type LoginStore, needsLogin } from './oauth/logins.ts';
import { type ArgumentsCheck, argumentsCheck, McpServer, type ServerStatus } from './server.ts';

/**
 * The tools of all servers, as one toolbox.
 *
 * MCP-TOOLBOX-1 Only `run` and `settled` wait for servers: the daemon starts even if no server does.
 * MCP-TOOLBOX-2 A tool is safe only if its server declares it read-only and the configuration trusts that server.
 * MCP-TOOLBOX-3 A call is checked against the tool that exists when it runs.
 * MCP-TOOLBOX-4 A tool that is not accepted in its current form does not run, even if the call was allowed.
 */

interface OfferedTool {
  readonly server: string;
  readonly tool: string;
  readonly owner: McpServer;
  readonly check: ArgumentsCheck;
  readonly listed: Tool;
}

const LONGEST_DESCRIPTION = 8000;

export class McpToolbox implements Toolbox {
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

  /** Starts all servers and does not wait; the first `definitions()` does so too. */
  start(): void {
    for (const server of this.#owners) server.start();
  }

  /** Resolves when each server is ready or has failed once. */
  async settled(): Promise<void> {
    this.start();
    await Promise.all(this.#owners.map((server) => server.settled()));
  }

  /** In the order of the configuration. */
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
    const { idempotencyKey, traceparent, onProgress, ask } = call;
    const given = { tool, arguments: call.arguments, idempotencyKey, traceparent, onProgress, ask };
    return owner.call(given, signal);
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
  /** Absent: there are none, and servers are used without a login. */
  readonly logins?: LoginStore | undefined;
  readonly times?: Partial<McpTimes>;
}

export function createMcpTools(options: McpToolsOptions): McpToolbox {
  const times = { ...DEFAULT_TIMES, ...options.times };
  const acceptance = options.accepted ? new Acceptance(options.accepted, options.log) : null;
  const servers = (onChange: () => void) =>
    Object.entries(options.servers).map(([name, settings]) => {
      const own = Object.values(settings.transport === 'http' ? settings.headers : settings.env);
      const known = hideValues([...own.map((value) => value.reveal()), ...(options.secrets ?? [])]);
      const authorization = authorizationOf(name, settings, options.logins);
      const hide = authorization ? (text: string) => known(authorization.hide(text)) : known;
      return new McpServer({
        name,
        ...(authorization && {
          changed: (signal) => authorization.changed(signal),
          hide: authorization.hide,
        }),
        trustsReadOnlyHint: settings.trustReadOnlyHint === true,
        link: () => ({ ...linkTo(settings, options, times, authorization), hide }),
        times,
        reason: reasonFor(hide, authorization ? needsLogin(name) : undefined),
        log: options.log,
        elapsed: monotonicClock,
        random: Math.random,
        onListed: (tools) => acceptance?.listed(name, tools),
        onChange,
      });
    });
  return new McpToolbox(servers, acceptance);
}

/** Null: the server has a program, or its token is configured. */
function authorizationOf(name: string, settings: McpServerSettings, logins: LoginStore | undefined) {
  if (settings.transport !== 'http' || !logins) return null;
  const isConfigured = Object.keys(settings.headers).some(
    (header) => header.toLowerCase() === 'authorization',
  );
  return isConfigured ? null : new Authorization(name, settings, logins);
}

function linkTo(
  settings: McpServerSettings,
  options: McpToolsOptions,
  times: McpTimes,
  authorization: Authorization | null,
): Omit<Link, 'hide'> {
  const { endMs, answerGraceMs } = times;
  if (settings.transport === 'http') {
    const headers = revealed(settings.headers);
    return {
      transport: new HttpTransport({ url: settings.url, headers, authorization, endMs, answerGraceMs }),
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

/** The accepted digests by server and tool. Kept over restarts. */
export interface AcceptedTools {
  /** Undefined: the server was never listed. */
  of(server: string): Readonly<Record<string, string>> | undefined;
  /** Durable when it resolves. */
  save(server: string, digests: Readonly<Record<string, string>>): Promise<void>;
}

/**
 * Records which tools a person has accepted: a server may change a tool's description and schema later.
 *
 * ACCEPTANCE-1 The tools of a server's first list are accepted. A tool that is new or changed later is reported, and is not
 *    accepted until a person approves a call of it.
 * ACCEPTANCE-2 Accepted is one digest of a tool: name, title, description, hints and schema.
 */
export class Acceptance {
  readonly #kept: AcceptedTools;
  readonly #log: McpLog;
  readonly #reported = new Set<string>();

  constructor(kept: AcceptedTools, log: McpLog) {
    this.#kept = kept;
    this.#log = log;
  }

  /** ACCEPTANCE-1. Of a tool that is listed twice, the first counts. */
  listed(server: string, tools: readonly Tool[]): void {
    if (tools.length === 0) return;
    if (this.#kept.of(server) === undefined) {
      const digests = tools.map((tool): [string, string] => [tool.name, digestOf(tool)]);
      void this.#save(server, Object.fromEntries(digests.reverse()));
      return;
    }
    const unknown = tools.flatMap((tool) => {
      const found = this.unaccepted(server, tool);
      const key = JSON.stringify([server, tool.name, found?.digest]);
      if (found === null || this.#reported.has(key)) return [];
      this.#reported.add(key);
      return [{ tool: tool.name, is: found.is }];
    });
    if (unknown.length > 0)
      this.#log.warn(
        { server, tools: unknown },
        'tools of an MCP server are new or changed since they were accepted: their calls wait for approval',
      );
  }

  /** Null: accepted in its current form. */
  unaccepted(server: string, tool: Tool): Unaccepted | null {
    const accepted = this.#kept.of(server);
    const digest = digestOf(tool);
    const known = accepted && Object.hasOwn(accepted, tool.name) ? accepted[tool.name] : undefined;
    if (accepted === undefined || known === digest) return null;
    return { digest, is: known === undefined ? 'new' : 'changed' };
  }

  async accept(server: string, tool: string, digest: string): Promise<void> {
    await this.#save(server, { ...this.#kept.of(server), [tool]: digest });
  }

  /** A list that cannot be saved is known until the daemon stops, and is accepted again at the next start. */
  async #save(server: string, digests: Readonly<Record<string, string>>): Promise<void> {
    await this.#kept.save(server, digests).catch((error: unknown) => {
      this.#log.warn({ server, error: messageOf(error) }, 'accepted tools of an MCP server are not kept');
    });
  }
}

function digestOf({ name, title, description, annotations, inputSchema }: Tool): string {
  const text = JSON.stringify({ name, title, description, annotations, inputSchema }, inOrder);
  return sha256Of(text).slice(0, 32);
}

/** Key order is irrelevant. */
function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const LONGEST = 64;
const MARK_DIGITS = 8;

export interface ServerTool {
  readonly server: string;
  /** As the server calls it. */
  readonly tool: string;
}

/**
 * The wire names of the tools of servers: `mcp__<server>__<tool>`.
 * By wire name.
 *
 * NAMES-1 A name is a valid function name: letters, digits, `_` and `-`, at most 64.
 * NAMES-2 A name depends on the set of tools, not on their order.
 * NAMES-3 If several tools get the same name, each gets a suffix derived from its own names, and none keeps the plain name:
 *    a name that a person approved must never name another tool.
 * NAMES-4 Tools whose names still collide are not offered: a server can name one tool like the suffixed name of another.
 * NAMES-5 Tools of two servers never share a name: the configuration refuses `__` in server names, and names so long that
 *    `mcp__<server>__` is cut (at most 55 characters).
 */
export function wireNames<T extends ServerTool>(places: readonly T[]): ReadonlyMap<string, T> {
  const named = [...groupedBy(places, plainName)].flatMap(([name, same]) =>
    same.map((place): [string, T] => [same.length === 1 ? name : marked(name, place), place]),
  );
  const alike = [...groupedBy(named, ([name]) => name).values()];
  const offered = alike.filter((same) => same.length === 1).flat(); // NAMES-4
  return new Map(offered.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Whether `name` is one that this server's tools can have. */
export function isOfServer(name: string, server: string): boolean {
  return name.startsWith(valid(`mcp__${server}__`));
}

function plainName(place: ServerTool): string {
  const name = valid(`mcp__${place.server}__${place.tool}`);
  return name.length <= LONGEST ? name : marked(name, place);
}

function marked(name: string, { server, tool }: ServerTool): string {
  const mark = sha256Of(`${server}\0${tool}`).slice(0, MARK_DIGITS);
  return `${name.slice(0, LONGEST - MARK_DIGITS - 1)}_${mark}`;
}

function valid(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_');
}
