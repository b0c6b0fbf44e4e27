import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import type { ModelRequest, ToolFile, WireMessage } from '../agents/index.ts';
import type { AnswerOf, RequestOf, Verb } from '../bus/index.ts';
import { type Config, loadConfig } from '../config/index.ts';
import { type Entry, type FilePart, filesOf } from '../conversation/index.ts';
import { type Activity, createDaemon, type Daemon, type Log, type Simulation } from '../daemon/index.ts';
import { asError, ParleyError } from '../kernel/index.ts';
import type { ConversationStore } from '../persistence/index.ts';
import { createMemoryStore } from '../persistence/memory/index.ts';
import type { InProcessTool } from '../tools/index.ts';
import { askingIn, isAnswer, listedCalls } from './expectations.ts';
import { createMemoryBus, type MemoryBus, SimulatedTime } from './simulation.ts';
import { type FakeTool, type ModelSource, StandIns } from './stand-ins.ts';

export interface TestTeamOptions extends ConfigurationOptions {
  /**
   * A function or a script for all agents, or by the slug of an agent or the name of a model; `default`: for every other.
   * Without one, an agent whose model has a script in the configuration uses that.
   */
  readonly models?: ModelSource | Readonly<Record<string, ModelSource>>;
  /** Tools of the program, as `createDaemon` gets them. */
  readonly tools?: readonly InProcessTool[];
  /** By name: replaces what a built-in tool or a tool of a server that is not started does. */
  readonly fakes?: Readonly<Record<string, FakeTool>>;
  /** When the simulated clock begins; default: 2026-01-01T00:00:00Z. */
  readonly now?: number | string | Date;
  /** Default: an empty one in memory. */
  readonly store?: ConversationStore;
  /** Gets the lines of the daemon's log; default: they are dropped. */
  readonly log?: Log;
}

export interface Where {
  /** Default: `test`. */
  readonly conversation?: string;
  /** The publisher; default: `tester`. */
  readonly as?: string;
}

export interface SayOptions extends Where {
  /** The person's name. */
  readonly name?: string;
  /** Slugs of the agents that answer; default: as routed. */
  readonly to?: readonly string[];
  /** Starts a run of this workflow with the message as its input. */
  readonly workflow?: string;
  readonly id?: string;
  /** The JSON Schema that the answer must match: its value is in the last entry. */
  readonly schema?: Record<string, unknown>;
  /** Files of the message. */
  readonly files?: readonly ToolFile[];
}

/** What a post led to. */
export interface Said {
  /** The last answer; empty: there is none. */
  readonly text: string;
  /** Every text of an agent, in order. */
  readonly answers: readonly {
    readonly agent: string;
    readonly text: string;
    readonly files?: readonly FilePart[];
  }[];
  /** All entries from the post on. */
  readonly entries: readonly Entry[];
}

export interface Approving extends Where {
  /** Only a call of this tool. */
  readonly tool?: string;
  readonly reason?: string;
}

type Approval = AnswerOf<'approvals'>['approvals'][number];

const CONVERSATION = 'test';
const PUBLISHER = 'tester';
const START = '2026-01-01T00:00:00Z';
const NO_LOG: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Starts a team in memory. End it with `stop`. */
export async function testTeam(options: TestTeamOptions = {}): Promise<TestTeam> {
  const config = await testConfiguration(options);
  const time = new SimulatedTime(new Date(options.now ?? START).getTime());
  const standIns = await StandIns.create(options, config, time.timers.sleep);
  const store = options.store ?? createMemoryStore();
  const logs = await logsOf(store);
  const memory = createMemoryBus({
    now: time.now,
    onEntries: (conversation, entries) => {
      const before = entries[0]?.index === 0 ? [] : (logs.get(conversation) ?? []);
      logs.set(conversation, [...before, ...entries]);
    },
  });
  let activity: Activity = { running: 0, idle: async () => undefined };
  let files: Parts['files'] | null = null;
  const names = Object.keys(config.models);
  const daemon = createDaemon({
    config,
    log: options.log ?? NO_LOG,
    tools: options.tools,
    models: Object.fromEntries(names.map((name) => [name, standIns.model(name)])),
    store,
    simulation: {
      bus: memory.bus,
      remote: standIns.model('default'),
      time,
      wrapTools: (toolbox) => standIns.wrapTools(toolbox),
      onReady: (of, keeper) => {
        activity = of;
        files = keeper;
      },
    },
  });
  await daemon.start();
  if (!files) throw new Error('the daemon is not ready');
  const team = new TestTeam({ daemon, memory, time, standIns, activity, logs, store, files });
  await team.idle();
  return team;
}

/** What a store contains before the team starts. */
async function logsOf(store: ConversationStore): Promise<Map<string, readonly Entry[]>> {
  const logs = new Map<string, readonly Entry[]>();
  for (const id of await store.conversations()) {
    const { log, entries } = await store.open(id);
    logs.set(id, entries);
    await log.close();
  }
  return logs;
}

interface Parts {
  readonly daemon: Daemon;
  readonly memory: MemoryBus;
  readonly time: SimulatedTime;
  readonly standIns: StandIns;
  readonly activity: Activity;
  readonly logs: ReadonlyMap<string, readonly Entry[]>;
  readonly store: ConversationStore;
  readonly files: Parameters<Simulation['onReady']>[1];
}

export class TestTeam {
  readonly #parts: Parts;
  #requests = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Posts a message. Resolves when its turns, and all that they led to, have ended or wait. Throws if the post is refused. */
  async say(text: string, { conversation, as, name, files = [], ...more }: SayOptions = {}): Promise<Said> {
    const at = { conversation: conversation ?? CONVERSATION, publisher: as ?? PUBLISHER };
    const author = name === undefined ? {} : { author: { name } };
    const parts: FilePart[] = [];
    for (const file of files) parts.push(await this.#parts.files.keep(file.bytes, file));
    const post = { ...at, ...author, content: text, ...(parts.length > 0 && { parts }), ...more };
    const { index } = await this.request('post', post);
    await this.idle();
    const entries = this.entries(at.conversation).filter((entry) => entry.index >= index);
    const answers = entries.filter(isAnswer).map((entry) => ({
      agent: entry.author.id,
      text: entry.content,
      ...(entry.parts && { files: filesOf(entry) }),
    }));
    return { text: answers.at(-1)?.text ?? '', answers, entries };
  }

  /** Answers the open question of an agent. */
  async answer(text: string, options: SayOptions = {}): Promise<Said> {
    if (askingIn(this.entries(options.conversation)).length === 0)
      throw nothingAsked('no agent has asked a question', options.conversation);
    return this.say(text, options);
  }

  /** Approves the oldest call that waits for an approval. */
  approve(which: Approving = {}): Promise<void> {
    return this.#decide('approve', which);
  }

  deny(which: Approving = {}): Promise<void> {
    return this.#decide('deny', which);
  }

  async #decide(answer: 'approve' | 'deny', { conversation, tool, as, reason }: Approving): Promise<void> {
    const waiting = await this.approvals(conversation);
    const found = waiting.find((approval) => tool === undefined || approval.tool === tool);
    if (!found) {
      const call = tool === undefined ? 'no call' : `no call of ${tool}`;
      const calls = listedCalls(this.entries(conversation));
      throw nothingAsked(`${call} waits for an approval`, conversation, `. Calls: ${calls}`);
    }
    await this.request('answer', { approvalId: found.approvalId, answer, publisher: as, reason });
    await this.idle();
  }

  /** Outstanding approvals, oldest first. */
  async approvals(conversation: string = CONVERSATION): Promise<readonly Approval[]> {
    if (!this.#parts.logs.has(conversation)) return [];
    return (await this.request('approvals', { conversation })).approvals;
  }

  /** The log. */
  entries(conversation: string = CONVERSATION): readonly Entry[] {
    return this.#parts.logs.get(conversation) ?? [];
  }

  /** The bytes of a file that a message has or a model is shown. */
  async bytes({ sha256 }: Pick<FilePart, 'sha256'>): Promise<Buffer> {
    const pieces = await this.#parts.store.blobs.read(sha256);
    if (pieces) return buffer(pieces);
    throw new ParleyError('NOT_FOUND', `the file ${sha256} is not stored`);
  }

  /** Every request to a model, oldest first; `body` has the exact bytes. */
  requests(agent?: string): readonly ModelRequest[] {
    const { requests } = this.#parts.standIns;
    return agent === undefined ? requests : requests.filter((request) => request.agent === agent);
  }

  /** The newest request to the model of this agent, as text for a snapshot. */
  viewOf(agent: string, conversation: string = CONVERSATION): string {
    const request = this.requests(agent).findLast((one) => one.conversation === conversation);
    if (request) return requestText(request);
    throw new ParleyError(
      'NOT_FOUND',
      `no model was asked for ${agent} in the conversation ${conversation}`,
      {
        hint: 'post a message that it answers first',
      },
    );
  }

  /** Moves the clock: limits of turns and approvals that end by then, end. */
  async advance(ms: number): Promise<void> {
    await this.#parts.time.advance(ms, () => this.#blocked());
    await this.#blocked();
  }

  /** Any request of the API, as an operator: docs/reference/requests.md. */
  async request<V extends Verb>(verb: V, body: RequestOf<V>): Promise<AnswerOf<V>> {
    this.#requests += 1;
    try {
      const answer = await this.#parts.memory.request({ endpoint: verb, body, publisher: null });
      if (answer.ok) return answer.body as AnswerOf<V>;
      throw asError(answer.refusal);
    } finally {
      this.#requests -= 1;
    }
  }

  /** Resolves when every turn has ended or waits for a person. */
  idle(): Promise<void> {
    return this.#parts.activity.idle();
  }

  /** Idempotent. A call that still runs is aborted. */
  async stop(): Promise<void> {
    await this.#parts.daemon.stop();
  }

  /** Resolves when nothing can happen without the test: what is in progress waits for its functions. */
  async #blocked(): Promise<void> {
    const { activity, standIns } = this.#parts;
    while (this.#requests > 0 || activity.running > standIns.waiting) await setImmediate();
  }
}

function nothingAsked(what: string, conversation: string = CONVERSATION, instead = ''): ParleyError {
  return new ParleyError('NOT_FOUND', `${what} in the conversation ${conversation}${instead}`, {
    hint: `team.entries('${conversation}') has what happened`,
  });
}

/** A request as text: each message unchanged under its role, then the names of the tools. */
function requestText({ messages, tools }: ModelRequest): string {
  const names = tools.map((tool) => tool.function.name).join(', ');
  return [...messages.map(messageText), `── tools ──\n${names}`].join('\n\n');
}

function messageText({ role, content, tool_calls = [], tool_call_id }: WireMessage): string {
  const heading = `── ${[role, tool_call_id].filter(Boolean).join(' ')} ──`;
  const calls = tool_calls.map(({ id, function: called }) => `⚙ ${id} ${called.name} ${called.arguments}`);
  return [heading, ...(content ? [content] : []), ...calls].join('\n');
}

interface ConfigurationOptions {
  /** The folder of the configuration, or a loaded one; default: `config`, else the shipped team. */
  readonly config?: string | Config | undefined;
  /** The base of relative paths; default: the working directory of the process. */
  readonly workingDirectory?: string | undefined;
  /** The folder of the file tools; default: `tools.project`. */
  readonly project?: string | undefined;
  /**
   * Variables of `${NAME}`; one that is missing gets a placeholder. The environment of the process is not read: an MCP server
   * that is started by name needs `PATH`.
   */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Starts the configured MCP servers, all or these; default: none. */
  readonly mcp?: boolean | readonly string[] | undefined;
}

/**
 * The configuration of a team under test, with what no test needs replaced: HTTP, traces, retention, MCP servers, the data directory.
 */
async function testConfiguration(options: ConfigurationOptions): Promise<Config> {
  const config = typeof options.config === 'object' ? options.config : await load(options);
  const { mcp = false, project = config.tools.project } = options;
  const isStarted = (name: string) => (typeof mcp === 'boolean' ? mcp : mcp.includes(name));
  const servers = Object.entries(config.tools.mcpServers).filter(([name]) => isStarted(name));
  return {
    ...config,
    tools: { ...config.tools, project: resolve(project), mcpServers: Object.fromEntries(servers) },
    shutdown: { graceMs: 0 },
    traces: null,
    retention: { conversations: null, deadLetters: null },
    daemon: {
      ...config.daemon,
      http: null,
      data: join(tmpdir(), `parley-test-${process.pid}`), // only named: nothing creates it
    },
  };
}

async function load({ config, workingDirectory, env }: ConfigurationOptions): Promise<Config> {
  const base = workingDirectory ?? process.cwd();
  const directory = typeof config === 'string' ? resolve(base, config) : undefined;
  return loadConfig({
    configDirectory: directory,
    workingDirectory: base,
    env: { ...(await placeholders(directory ?? join(base, 'config'))), ...env },
  });
}

/** Long enough for a token. Not a secret: no provider and no server is called. */
const PLACEHOLDER = 'placeholder-of-parleyd-testing-for-';

/** A value for each variable that the files name, and for the keys of providers. */
async function placeholders(directory: string): Promise<Record<string, string>> {
  const names = new Set(['OPENAI_API_KEY', 'ANTHROPIC_API_KEY']);
  for (const folder of [directory, join(directory, 'agents')]) {
    for (const file of await readdir(folder).catch(() => [])) {
      if (!/\.(ya?ml|md)$/.test(file)) continue;
      const text = await readFile(join(folder, file), 'utf8').catch(() => '');
      for (const [, name] of text.matchAll(/\$\{([A-Za-z_]\w*)\}/g)) if (name) names.add(name);
    }
  }
  return Object.fromEntries([...names].map((name) => [name, `${PLACEHOLDER}${name}`]));
}
