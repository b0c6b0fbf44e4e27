import { Readable, Writable } from 'node:stream';
import {
  type AgentConnection,
  type AgentContext,
  agent,
  type ContentBlock,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type SessionModeState,
  type StopReason,
} from '@agentclientprotocol/sdk';
import {
  type ConversationDetail,
  logEntries,
  type ParleyClient,
  type RequestOf,
  type WorkflowSummary,
} from '../../client/index.ts';
import type { Entry, FilePart, OpenCall } from '../../conversation/index.ts';
import { hasVisible, VERSION } from '../../kernel/index.ts';
import { bytesOf, notKept, postOf, shownBlocks } from '../blocks.ts';
import { INTERNAL, type Person, Prompt, type SessionContext } from './prompt.ts';
import { Updates } from './updates.ts';

/**
 * Parley as an agent of the protocol: its sessions, which are conversations of a running daemon, and who answers in them.
 *
 * EDITOR-SERVER-1 It starts without a daemon: each request connects if it has to, and its error says what to do.
 * EDITOR-SERVER-2 It ends when its input ends. Running turns continue.
 */

export interface AcpOptions extends Person {
  readonly input: Readable;
  readonly output: Writable;
  readonly workingDirectory: string;
  connect(): Promise<ParleyClient>;
}

const SESSIONS_LISTED = 200;

/** Codes of JSON-RPC. */
const NOT_FOUND = -32002;
const INVALID_PARAMS = -32602;

/** What it can do. */
const CAPABILITIES = {
  protocolVersion: PROTOCOL_VERSION,
  agentInfo: { name: 'parley', title: 'Parley', version: VERSION },
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, audio: true, embeddedContext: true },
    sessionCapabilities: { list: {}, resume: {}, close: {} },
  },
};

/** Resolves when the client has disconnected. */
export async function serveAcp(options: AcpOptions): Promise<void> {
  const sessions = new Sessions(options);
  const { session } = methods.agent;
  const asAnswer =
    <Context, Answer>(work: (context: Context) => Promise<Answer>) =>
    (context: Context): Promise<Answer> =>
      work(context).catch((error: unknown) => {
        throw requestError(options, error);
      });
  const app = agent({ name: 'parley' })
    .onRequest(methods.agent.initialize, () => CAPABILITIES)
    .onRequest(
      session.new,
      asAnswer(({ params, client }) => sessions.begin(params.cwd, client)),
    )
    .onRequest(
      session.load,
      asAnswer(({ params, client }) => sessions.open(params.sessionId, params.cwd, client, true)),
    )
    .onRequest(
      session.resume,
      asAnswer(({ params, client }) => sessions.open(params.sessionId, params.cwd, client, false)),
    )
    .onRequest(
      session.list,
      asAnswer(({ params }) => sessions.list(params)),
    )
    .onRequest(
      session.setMode,
      asAnswer(async ({ params }) => {
        await sessions.named(params.sessionId).enterMode(params.modeId);
        return {};
      }),
    )
    .onRequest(
      session.prompt,
      asAnswer(async ({ params, signal }) => {
        const prompted = sessions.named(params.sessionId);
        return { stopReason: await prompted.prompt(params.prompt, signal, connection.signal) };
      }),
    )
    .onRequest(
      session.close,
      asAnswer(async ({ params }) => {
        sessions.named(params.sessionId).cancel();
        sessions.forget(params.sessionId);
        return {};
      }),
    )
    .onNotification(session.cancel, ({ params }) => sessions.find(params.sessionId)?.cancel());
  const output = Writable.toWeb(options.output);
  const input = Readable.toWeb(options.input) as ReadableStream<Uint8Array>;
  const connection: AgentConnection = app.connect(ndJsonStream(output, input));
  void sessions.connected().catch(() => {}); // the first request reports it
  await connection.closed;
  await sessions.close();
}

class Sessions {
  readonly #options: AcpOptions;
  readonly #open = new Map<string, Session>();
  #client: Promise<ParleyClient> | null = null;

  constructor(options: AcpOptions) {
    this.#options = options;
  }

  find(id: string): Session | undefined {
    return this.#open.get(id);
  }

  named(id: string): Session {
    const found = this.#open.get(id);
    if (found) return found;
    const message = `there is no session ${JSON.stringify(id)} here: begin one with session/new, or load it with session/load`;
    throw new RequestError(NOT_FOUND, message, { sessionId: id });
  }

  forget(id: string): void {
    this.#open.delete(id);
  }

  /** The first message creates its conversation. */
  async begin(cwd: string, editor: AgentContext) {
    const sessionId = this.#options.newId();
    const opened = await this.#add(sessionId, cwd, editor);
    return { sessionId, modes: await opened.modes(null) };
  }

  async open(id: string, cwd: string, editor: AgentContext, isReplayed: boolean) {
    const client = await this.connected();
    const detail = await client.request('conversation', { conversation: id });
    const opened = await this.#add(id, cwd, editor);
    if (isReplayed) await opened.replay();
    else opened.skip(detail.length);
    return { modes: await opened.modes(detail) };
  }

  /** Conversations have no folder of their own: each is listed for every folder. */
  async list({ cwd, cursor }: { readonly cwd?: string | null; readonly cursor?: string | null }) {
    const client = await this.connected();
    const { conversations, next } = await client.request('conversations', {
      after: cursor ?? null,
      limit: SESSIONS_LISTED,
    });
    const sessions = conversations.flatMap(({ id, title, updatedAt, archived }) =>
      archived ? [] : [{ sessionId: id, cwd: cwd ?? this.#options.workingDirectory, title, updatedAt }],
    );
    return { sessions, nextCursor: next };
  }

  async close(): Promise<void> {
    await (await this.#client?.catch(() => null))?.close();
  }

  async #add(id: string, cwd: string, editor: AgentContext): Promise<Session> {
    const client = await this.connected();
    const { workflows } = await client.request('workflows', {});
    const opened = new Session({ ...this.#options, id, cwd, editor, client, workflows });
    this.#open.set(id, opened);
    return opened;
  }

  /** EDITOR-SERVER-1 */
  connected(): Promise<ParleyClient> {
    this.#client ??= this.#options.connect().catch((error: unknown) => {
      this.#client = null;
      throw error;
    });
    return this.#client;
  }
}

const OF_THE_CLIENT = new Set([
  'BAD_REQUEST',
  'INVALID_FIELD',
  'UNKNOWN_AGENT',
  'UNKNOWN_WORKFLOW',
  'TOO_LARGE',
  'BLOB_EMPTY',
  'BLOB_QUOTA',
  'BLOB_REFUSED',
  'BLOB_TOO_LARGE',
]);

function requestError({ explain }: Pick<AcpOptions, 'explain'>, error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  const { code, message, hint } = explain(error);
  const words = hint === undefined ? message : `${message}; ${hint}`;
  if (OF_THE_CLIENT.has(code)) return invalid(words, { code });
  return new RequestError(code === 'NOT_FOUND' ? NOT_FOUND : INTERNAL, words, { code });
}

interface SessionOptions extends Person, Pick<SessionContext, 'id' | 'cwd' | 'editor' | 'client'> {
  readonly workflows: readonly WorkflowSummary[];
}

/** One session: a conversation, and what of it the client was sent. */
class Session {
  readonly #options: SessionOptions;
  readonly #context: SessionContext;
  #prompt: Prompt | null = null;
  #question: OpenCall | null = null;
  #mode = '';

  constructor(options: SessionOptions) {
    this.#options = options;
    const { cwd, workflows, actor, editor, id: sessionId } = options;
    const ownId = actor.author ? `${actor.publisher}/${actor.author.name}` : actor.publisher;
    const isOwn = ({ author }: Entry) => author.kind === 'person' && author.id === ownId;
    const blocks = (files: readonly FilePart[]) =>
      shownBlocks(files, ({ sha256 }) => options.client.download(sessionId, sha256));
    this.#context = {
      ...options,
      updates: new Updates({ cwd, workflows, isOwn }),
      next: 0,
      async send(updates) {
        for (const given of updates) {
          const ready = 'files' in given ? given.with(await blocks(given.files)) : [given];
          for (const update of ready)
            await editor.notify(methods.client.session.update, { sessionId, update });
        }
      },
    };
  }

  /** `detail`: null for a conversation that does not exist yet. */
  async modes(detail: ConversationDetail | null): Promise<SessionModeState> {
    const { client, workflows } = this.#options;
    const { agents } = await client.request('agents', {});
    const availableModes = [
      TEAM,
      ...agents.map(({ slug, name, description }) => ({ id: `agent:${slug}`, name, description })),
      ...workflows.map(({ id, nodes }) => {
        const description = `the workflow: ${nodes.map(({ node }) => node).join(', ')}`;
        return { id: `run:${id}`, name: `Run ${id}`, description };
      }),
      CHAT,
    ];
    const currentModeId = detail === null ? TEAM.id : modeIdOf(detail);
    this.#mode = currentModeId;
    const isListed = availableModes.some(({ id }) => id === currentModeId);
    const [, name = currentModeId] = currentModeId.split(':'); // a hired agent, or a workflow that was removed
    return {
      currentModeId,
      availableModes: isListed ? availableModes : [...availableModes, { id: currentModeId, name }],
    };
  }

  /** Sends the whole log. */
  async replay(): Promise<void> {
    const { client, id } = this.#options;
    const { send, updates } = this.#context;
    for await (const entry of logEntries(client, id, 0)) {
      this.#context.next = entry.index + 1;
      await send(updates.past(entry));
    }
  }

  /** What is in the log is known to the client. */
  skip(length: number): void {
    this.#context.next = length;
  }

  async enterMode(modeId: string): Promise<void> {
    const { client, id: conversation, actor } = this.#options;
    this.#mode = modeIdOf(await client.request('mode', { conversation, ...modeRequest(modeId), ...actor }));
  }

  /** `signal`: aborts when the client cancels the request or disconnects. */
  async prompt(
    blocks: readonly ContentBlock[],
    signal: AbortSignal,
    closed: AbortSignal,
  ): Promise<StopReason> {
    if (this.#prompt)
      throw invalid(
        `a prompt of the session ${this.#options.id} runs; wait for its end, or cancel it with session/cancel`,
      );
    const { text, files } = postOf(blocks);
    if (!hasVisible(text) && files.length === 0) throw invalid('the prompt is empty; send some text');
    const uploads = files.map(({ name, ...file }) => ({ name, bytes: bytesOf(file) ?? brokenBase64(file) }));
    const prompt = new Prompt(this.#context);
    this.#prompt = prompt;
    const onAbort = () => (closed.aborted ? prompt.leave() : prompt.cancel());
    signal.addEventListener('abort', onAbort);
    try {
      const reason = await prompt.run({ text, uploads }, this.#question);
      this.#question = prompt.questions[0] ?? null;
      if (!closed.aborted) await this.#sendMode();
      return reason;
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#prompt = null;
    }
  }

  cancel(): void {
    this.#prompt?.cancel();
  }

  /** A handoff or a run may have changed who answers. */
  async #sendMode(): Promise<void> {
    const { client, id: conversation } = this.#options;
    const detail = await client.request('conversation', { conversation }).catch(() => null); // shown after the next prompt
    const currentModeId = detail === null ? this.#mode : modeIdOf(detail);
    if (currentModeId === this.#mode) return;
    this.#mode = currentModeId;
    await this.#context.send([{ sessionUpdate: 'current_mode_update', currentModeId }]);
  }
}

function brokenBase64(file: Parameters<typeof notKept>[0]): never {
  throw invalid(`nothing was posted: ${notKept(file, 'its base64 is broken')}`);
}

/** Who answers, as the modes of a session: `team`, `chat`, `agent:<slug>` and `run:<workflow>`. */

const TEAM = {
  id: 'team',
  name: 'Team',
  description: 'who answers follows the phase; agents hand over to each other',
};
const CHAT = {
  id: 'chat',
  name: 'Chat',
  description: 'a casual conversation, without the instructions of agents',
};

function modeIdOf({ mode, activeAgent, run }: ConversationDetail): string {
  if (mode === 'chat') return CHAT.id;
  if (run) return `run:${run.workflow}`;
  return activeAgent === null ? TEAM.id : `agent:${activeAgent}`;
}

/** The fields of the verb `mode`. */
function modeRequest(id: string): Pick<RequestOf<'mode'>, 'mode' | 'agent' | 'workflow'> {
  if (id === CHAT.id) return { mode: 'chat' };
  if (id === TEAM.id) return { mode: 'agent', agent: null };
  const [, kind, name] = /^(agent|run):(.+)$/.exec(id) ?? [];
  if (kind === 'agent') return { mode: 'agent', agent: name };
  if (kind === 'run') return { mode: 'run', workflow: name };
  const hint = 'choose one of availableModes, as session/new and session/load return them';
  throw invalid(`there is no mode ${JSON.stringify(id)}; ${hint}`);
}

/** A request that the client must correct. */
function invalid(message: string, data?: object): RequestError {
  return new RequestError(INVALID_PARAMS, message, data);
}
