import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Toolbox, ToolFile, ToolOutcome } from '../../agents/index.ts';
import { BUILT_IN_TOOLS, type Config, secretValuesOf, settingDigest } from '../../config/index.ts';
import {
  type HideValues,
  hideValues,
  isRecord,
  type Log,
  messageOf,
  ParleyError,
} from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import { openLazyDocument } from '../../persistence/jsonl/index.ts';
import {
  asIs,
  type Conversations,
  createBuiltInTools,
  createInProcessTools,
  createToolbox,
  type Enclose,
  hideFolder,
  hidingFault,
  type InProcessTool,
  LONGEST_CALL_MS,
  loadToolFiles,
  type StoredBlobs,
} from '../../tools/index.ts';
import type { AcceptedTools, McpToolbox } from '../../tools/mcp/index.ts';
import { acceptedToolsPath } from './archives.ts';
import type { Given } from './given.ts';
import { loginStore } from './login-store.ts';

/** Selects the tools for a configuration. MCP tools are loaded only if a server is configured. */

/** Longer than the timeout of any tool, so that the tool's own error is reported. */
const TOOL_TIMEOUT_MS = LONGEST_CALL_MS + 30_000;

/** The names of the tools of MCP servers begin with it. */
const MCP_PREFIX = 'mcp__';

/** Files of the data directory with credentials. The whole folder is closed, and these also by a hard link elsewhere. */
const CREDENTIALS = ['connection.json', 'http-token', 'nats/user.nk'];

/** What tools need while calls run. */
export interface ToolContext extends Conversations {
  /** Has the stored outputs; absent: there are none. */
  readonly store?: ConversationStore;
  readonly enclose?: Enclose;
}

/** Tools without a process of their own; enough to explain a request, even with no open conversation. */
export function composeBuiltInTools(config: Config, log?: Log, context?: ToolContext): Toolbox {
  const { data } = config.daemon;
  const records = context?.store?.toolRecords;
  const outputs = records && ((...named: [string, string]) => records.readOutput(...named));
  const { project, environment, protected: names } = config.tools;
  const protection = { names, folders: [config.directory] };
  const closed = [data, ...CREDENTIALS.map((name) => join(data, name)), ...config.secretFiles];
  const blobs = context?.store && blobsIn(context.store);
  const { maxBytes: maxFileBytes } = config.blobs;
  const given = { project, environment, outputs, blobs, maxFileBytes, closed, protection, log };
  return createBuiltInTools({ ...given, conversations: context, enclose: context?.enclose });
}

function blobsIn({ blobs }: ConversationStore): StoredBlobs {
  return async (sha256) => {
    const pieces = await blobs.read(sha256);
    return pieces && buffer(pieces);
  };
}

/** A toolbox whose owner did not change keeps running over a reload. */
interface Part {
  /** Digest of everything that it was made of. */
  readonly made: string;
  readonly toolbox: Toolbox;
}

/** The next toolbox: `commit` closes what it no longer uses, `discard` what it would have added. */
export interface NextToolbox {
  readonly toolbox: Toolbox;
  commit(): void;
  discard(): Promise<void>;
}

/**
 * The tools of a daemon.
 *
 * TEAM-TOOLS-1 An MCP server whose settings did not change keeps its connection over a reload. A changed one is connected
 *              before the old connection closes, which happens when all calls that were running have ended.
 * TEAM-TOOLS-2 No outcome of a tool has a key, token or password of the daemon or the value of a variable that the configuration
 *              names, so the log, the models and people get none.
 */
export class TeamTools {
  readonly #log: Log;
  readonly #context: ToolContext;
  readonly #wrap: (toolbox: Toolbox) => Toolbox;
  readonly #given: readonly InProcessTool[];
  #parts: ReadonlyMap<string, Part> = new Map();
  readonly #open = new Set<Toolbox>();
  readonly #running = new Set<Promise<unknown>>();
  #accepted: Promise<AcceptedTools> | null = null;
  /** By `tools.unhidden`. */
  readonly #enclose = new Map<boolean, Promise<Enclose>>();

  constructor(log: Log, context: ToolContext, { tools = [], simulation }: Given = {}) {
    this.#log = log;
    this.#context = context;
    this.#wrap = simulation?.wrapTools ?? ((toolbox) => toolbox);
    if (simulation) {
      for (const unhidden of [true, false]) this.#enclose.set(unhidden, Promise.resolve(asIs)); // no data directory
      this.#accepted = Promise.resolve(acceptedInMemory());
    }
    this.#given = tools;
  }

  async open(config: Config): Promise<Toolbox> {
    const { toolbox, commit } = await this.prepare(config);
    commit();
    return toolbox;
  }

  /** `isReload`: rejects if a server that is new or changed does not start. */
  async prepare(config: Config, isReload = false): Promise<NextToolbox> {
    const before = this.#parts;
    const parts = new Map<string, Part>();
    const isNew = (part: Part) => ![...before.values()].includes(part);
    const added = () => [...parts.values()].filter(isNew).map(({ toolbox }) => toolbox);
    const discard = () => this.#closeAll(added());
    try {
      parts.set('', await this.#builtIn(config));
      parts.set(MCP_PREFIX, await this.#functions(config)); // no server has this name
      for (const name of Object.keys(config.tools.mcpServers))
        parts.set(name, await this.#server(config, name));
      await Promise.all(added().map((toolbox) => settledOf(toolbox)));
      if (isReload) for (const toolbox of added()) refuseFailed(toolbox);
    } catch (error) {
      await discard();
      throw error;
    }
    const { risk } = config.tools;
    const boxes = [...parts.values()].map(({ toolbox }) => toolbox);
    const toolbox = this.#wrap(createToolbox(boxes, { risk, timeoutMs: TOOL_TIMEOUT_MS, log: this.#log }));
    const commit = () => {
      this.#parts = parts;
      const unused = [...before.values()].map((part) => part.toolbox).filter((one) => !boxes.includes(one));
      if (unused.length > 0) void Promise.allSettled([...this.#running]).then(() => this.#closeAll(unused));
    };
    const hide = hideValues(secretsInResults(config));
    const run: Toolbox['run'] = async ({ onProgress, ...call }, signal) => {
      const shown = onProgress && { onProgress: (text: string) => onProgress(hide(text)) };
      return hidden(hide, await this.#track(toolbox.run({ ...call, ...shown }, signal)));
    };
    return { toolbox: { ...toolbox, run }, commit, discard };
  }

  async close(): Promise<void> {
    await this.#closeAll([...this.#open]);
  }

  async #builtIn(config: Config): Promise<Part> {
    const { project, environment, protected: names, unhidden } = config.tools;
    const made = settingDigest([
      project,
      environment,
      names,
      config.secretFiles,
      config.blobs.maxBytes,
      startsPrograms(config),
      unhidden,
    ]);
    return this.#reuse('', made, async () =>
      composeBuiltInTools(config, this.#log, { ...this.#context, enclose: await this.encloseFor(config) }),
    );
  }

  async #functions({ directory, tools: { files, filesDigest } }: Config): Promise<Part> {
    return this.#reuse(MCP_PREFIX, filesDigest, async () => {
      const loaded = Object.keys(files).length === 0 ? [] : await loadToolFiles(files, directory);
      return createInProcessTools([...this.#given, ...loaded], isTaken);
    });
  }

  async #server(config: Config, name: string): Promise<Part> {
    const { mcpServers, project, environment } = config.tools;
    const settings = mcpServers[name];
    const unhidden = settings?.transport === 'command' && settings.unhidden;
    const made = settingDigest([settings, project, environment, config.tools.loginKey]);
    return this.#reuse(name, made, async () => {
      const { createMcpTools } = await import('../../tools/mcp/index.ts');
      this.#accepted ??= openAcceptedTools(config.daemon.data, this.#log);
      const [accepted, enclose] = [await this.#accepted, await this.encloseFor(config, unhidden)];
      const servers = settings ? { [name]: settings } : {};
      const secrets = secretValuesOf(config);
      const tools = createMcpTools({
        servers,
        project,
        environment,
        enclose,
        accepted,
        secrets,
        logins: await loginStore(config),
        log: this.#log,
      });
      tools.start();
      return tools;
    });
  }

  async #reuse(name: string, made: string, make: () => Promise<Toolbox>): Promise<Part> {
    const known = this.#parts.get(name);
    if (known?.made === made) return known;
    const toolbox = await make();
    this.#open.add(toolbox);
    return { made, toolbox };
  }

  encloseFor(config: Config, unhidden = config.tools.unhidden): Promise<Enclose> {
    if (!startsPrograms(config)) return Promise.resolve(asIs);
    const enclose = this.#enclose.get(unhidden) ?? hideData(config, unhidden, this.#log);
    this.#enclose.set(unhidden, enclose);
    return enclose;
  }

  #track<T>(call: Promise<T>): Promise<T> {
    const tracked: Promise<T> = call.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
    return tracked;
  }

  async #closeAll(toolboxes: readonly Toolbox[]): Promise<void> {
    for (const toolbox of toolboxes) this.#open.delete(toolbox);
    for (const result of await Promise.allSettled(toolboxes.map((toolbox) => toolbox.close()))) {
      if (result.status === 'rejected')
        this.#log.error({ error: messageOf(result.reason) }, 'tools did not close');
    }
  }
}

function isTaken(name: string): boolean {
  return BUILT_IN_TOOLS.includes(name) || name.startsWith(MCP_PREFIX);
}

/** An outstanding call needs its tool. */
async function settledOf(toolbox: Toolbox): Promise<void> {
  if ('settled' in toolbox) await (toolbox as McpToolbox).settled();
}

/** Without what is written into the file as it is, such as `NODE_ENV: production`: hiding that would spoil results. */
function secretsInResults({ variables, daemon, models }: Config): string[] {
  const keys = Object.values(models).map((model) => 'apiKeys' in model && model.apiKeys);
  return secretValuesOf([variables, daemon, keys]);
}

/** TEAM-TOOLS-2 */
function hidden(hide: HideValues, outcome: ToolOutcome): ToolOutcome {
  switch (outcome.kind) {
    case 'completed': {
      const { files, note } = withoutSecrets(hide, outcome.files);
      return { ...outcome, content: hide(outcome.content) + note, ...(files && { files }) };
    }
    case 'failed': {
      const { files, note } = withoutSecrets(hide, outcome.files);
      return { ...outcome, message: hide(outcome.message) + note, ...(files && { files }) };
    }
    case 'aborted':
      return outcome;
  }
}

/** Bytes are never changed, so a file that contains a secret is left out. */
function withoutSecrets(hide: HideValues, files: readonly ToolFile[] | undefined) {
  const kept = files?.filter(({ bytes }) => {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    return hide(text) === text;
  });
  const left = (files?.length ?? 0) - (kept?.length ?? 0);
  const note = `\n[${left === 1 ? '1 file' : `${left} files`} not kept: a secret of the configuration is in it]`;
  return { files: kept, note: left === 0 ? '' : note };
}

function refuseFailed(toolbox: Toolbox): void {
  const failed = toolbox.servers?.().find(({ state }) => state === 'failed');
  if (!failed) return;
  throw new ParleyError(
    'MCP_SERVER_FAILED',
    `mcpServers.${failed.server} does not start: ${failed.error ?? ''}`,
    {
      hint: 'correct its settings or start the server, then reload; nothing was changed',
    },
  );
}

/** Hides the data directory from programs that tools start. */
async function hideData(config: Config, unhidden: boolean, log: Log): Promise<Enclose> {
  const { enclose, fault } = await hideFolder(config.daemon.data, unhidden);
  const found = { fault, fix: 'docs/guides/security.md, "Tools and the daemon"' };
  if (fault !== null && unhidden)
    log.warn(found, 'programs that tools start can read the data directory and operate this daemon');
  else if (fault !== null)
    log.error(found, 'tools start no program: this system cannot hide the data directory from it');
  return enclose;
}

/** Why the data directory cannot be hidden from programs of tools; null: it can, or there are no programs. */
export async function composeHidingFault(config: Config): Promise<string | null> {
  return startsPrograms(config) ? hidingFault() : null;
}

function startsPrograms({ agents, tools }: Config): boolean {
  const servers = Object.values(tools.mcpServers);
  return (
    agents.some((agent) => agent.runtime === 'acp' || agent.tools.includes('shell')) ||
    servers.some(({ transport }) => transport === 'command')
  );
}

/** The accepted tools of MCP servers, by server and tool. Stored in the data directory of each daemon. */
type Servers = Record<string, Record<string, string>>;

function acceptedInMemory(): AcceptedTools {
  const servers = new Map<string, Readonly<Record<string, string>>>();
  return {
    of: (server) => servers.get(server),
    save: async (server, digests) => void servers.set(server, digests),
  };
}

async function openAcceptedTools(data: string, log: Log): Promise<AcceptedTools> {
  const document = await openLazyDocument<Servers>({
    path: acceptedToolsPath(data),
    empty: {},
    parse,
    log: (event) => log.warn({ ...event }, 'the list of accepted tools of MCP servers'),
  });
  let servers = document.data;
  return {
    of: (server) => (Object.hasOwn(servers, server) ? servers[server] : undefined),
    async save(server, digests) {
      servers = { ...servers, [server]: { ...digests } };
      document.change(() => servers);
      await document.flush();
    },
  };
}

/** Throws for an invalid form: then the document starts empty. */
function parse(value: unknown): Servers {
  const isText = (one: unknown) => typeof one === 'string';
  const isFit =
    isRecord(value) && Object.values(value).every((one) => isRecord(one) && Object.values(one).every(isText));
  if (!isFit) throw new Error('it holds no digests of tools');
  return value as Servers;
}
