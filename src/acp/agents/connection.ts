import {
  type AnyMessage,
  type ClientConnection,
  client,
  type InitializeResponse,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { cut, errnoOf, escapeHidden, messageOf, ParleyError, VERSION, within } from '../../kernel/index.ts';
import { type ChildSettings, ChildTransport } from '../../tools/mcp/index.ts';

/**
 * One process of a coding agent, and the connection over its standard streams.
 *
 * ACP-CONNECTION-1 The process and its descendants end together, also after `kill -9` of this process (CHILD-TRANSPORT).
 * ACP-CONNECTION-2 Lines that are not messages are skipped and kept for the error: many programs print a greeting.
 * ACP-CONNECTION-3 The agent gets no file system and no terminal of this side: it works with its own.
 */

export interface AgentCommand {
  readonly command: readonly string[];
  /** Absolute. */
  readonly directory: string;
  /** The whole environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** Wraps the start of the program. */
  readonly enclose?: ChildSettings['enclose'];
}

interface SessionEvents {
  update(session: string, update: SessionUpdate): void;
  permission(request: RequestPermissionRequest): Promise<RequestPermissionResponse>;
}

/** `npx` downloads the program first. */
export const START_MS = 120_000;
const END_MS = 2_000;

export class AgentConnection {
  readonly about: InitializeResponse;
  /** What it printed beside messages (ACP-CONNECTION-2). */
  readonly noise: readonly string[];
  readonly #transport: ChildTransport;
  readonly #connection: ClientConnection;
  readonly #command: AgentCommand;
  /** Why Parley ended it. */
  #endedFor: string | null = null;

  static async open(command: AgentCommand, events: SessionEvents, startMs: number): Promise<AgentConnection> {
    const [program = '', ...args] = command.command;
    const { env, directory, enclose } = command;
    const transport = new ChildTransport({ command: program, args, env, directory, enclose, endMs: END_MS });
    const { stream, noise } = streamOver(transport);
    const connection = client({ name: 'parley' })
      .onRequest(methods.client.session.requestPermission, ({ params }) => events.permission(params))
      .onNotification(methods.client.session.update, ({ params }) =>
        events.update(params.sessionId, params.update),
      )
      .connect(stream);
    try {
      await transport.start();
      const about = await within(
        startMs,
        connection.agent.request(methods.agent.initialize, {
          protocolVersion: PROTOCOL_VERSION,
          clientCapabilities: {}, // ACP-CONNECTION-3
          clientInfo: { name: 'parley', version: VERSION },
        }),
      );
      if (about === null) throw new Error(`it did not answer within ${startMs / 1_000} s`);
      if (about.protocolVersion !== PROTOCOL_VERSION) throw otherVersion(about.protocolVersion);
      return new AgentConnection(about, noise, transport, connection, command);
    } catch (error) {
      await transport.close();
      throw startFailure(command, error, saidOf(noise, transport));
    }
  }

  private constructor(
    about: InitializeResponse,
    noise: readonly string[],
    transport: ChildTransport,
    connection: ClientConnection,
    command: AgentCommand,
  ) {
    this.about = about;
    this.noise = noise;
    this.#transport = transport;
    this.#connection = connection;
    this.#command = command;
  }

  get agent(): ClientConnection['agent'] {
    return this.#connection.agent;
  }

  /** How a session is continued; null: it cannot be. */
  get reopens(): 'resume' | 'load' | null {
    const { sessionCapabilities, loadSession } = this.about.agentCapabilities ?? {};
    return sessionCapabilities?.resume ? 'resume' : loadSession ? 'load' : null;
  }

  /** Aborts when the process has ended. */
  get ended(): AbortSignal {
    return this.#connection.signal;
  }

  /** What a request that failed says to a person. */
  failure(error: unknown): ParleyError {
    const said = saidOf(this.noise, this.#transport);
    if (error instanceof ParleyError) {
      const { code, message, hint } = error;
      return code === 'ACP_SILENT' ? new ParleyError(code, message + said, { hint, cause: error }) : error;
    }
    const name = this.#command.command.join(' ');
    if (error instanceof RequestError && error.code === AUTH_REQUIRED) {
      const ways = this.about.authMethods?.map((method) => method.name).join(', ');
      return new ParleyError('ACP_NOT_AUTHENTICATED', `${name} is not signed in`, {
        hint: `sign in once as the user of this process${ways ? `: ${ways}` : ''}`,
        cause: error,
      });
    }
    if (this.ended.aborted) {
      const why = this.#endedFor === null ? said : `: ${this.#endedFor}`;
      return new ParleyError('ACP_AGENT_ENDED', `${name} ended in the middle of a turn${why}`, {
        hint: 'post again: it is started anew, and its session continues',
        cause: error,
      });
    }
    return new ParleyError('ACP_AGENT_FAILED', `${name} reports: ${cut(messageOf(error), 500)}`, {
      hint: 'its own log has more; post again to continue',
      cause: error,
    });
  }

  async close(reason: string | null = null): Promise<void> {
    this.#endedFor ??= reason;
    this.#connection.close();
    await this.#transport.close();
  }
}

const AUTH_REQUIRED = -32_000;
const MOST_NOISE = 5;

/** The SDK's stream over a child process (ACP-CONNECTION-2). */
function streamOver(transport: ChildTransport) {
  const noise: string[] = [];
  const readable = new ReadableStream<AnyMessage>({
    start(controller) {
      transport.onmessage = (message) => controller.enqueue(message as AnyMessage);
      transport.onerror = (error) =>
        errnoOf(error) !== 'EPIPE' && noise.push(error.message) > MOST_NOISE && noise.shift();
      transport.onclose = () => {
        try {
          controller.close();
        } catch {
          // the connection was closed before
        }
      };
    },
  });
  const writable = new WritableStream<AnyMessage>({
    write: (message) =>
      transport.send(message as Parameters<ChildTransport['send']>[0]).catch((cause: unknown) => {
        // It ended before it read this: the same as if it had ended afterwards.
        throw errnoOf(cause) === 'EPIPE' ? new Error('connection closed', { cause }) : cause;
      }),
  });
  return { stream: { readable, writable }, noise };
}

/** What it said beside messages, for the text of an error. */
function saidOf(noise: readonly string[], transport: ChildTransport): string {
  const words = [...noise, transport.lastWords()].filter((line) => line !== '').join('; ');
  return words && ` (it says: ${cut(words, 500)})`;
}

function otherVersion(version: unknown): ParleyError {
  const older = typeof version === 'number' && version < PROTOCOL_VERSION;
  return new ParleyError(
    'ACP_OTHER_VERSION',
    `it speaks version ${version} of the protocol, and Parley speaks version ${PROTOCOL_VERSION}`,
    {
      hint: older
        ? 'update the agent, or its adapter, to a release that speaks this version'
        : 'update Parley, or install a release of the agent that speaks this version',
    },
  );
}

function startFailure({ command, directory }: AgentCommand, error: unknown, said: string): ParleyError {
  const name = command.join(' ');
  if (error instanceof ParleyError)
    return new ParleyError(error.code, `${name} cannot be used: ${error.message}`, {
      hint: error.hint,
      cause: error,
    });
  const isMissing =
    (error instanceof Error && 'code' in error && error.code === 'ENOENT') ||
    /failed to execute .*: No such file or directory/.test(said); // what encloses it says so
  const why = isMissing ? `there is no program ${command[0]}, or no folder ${directory}` : messageOf(error);
  return new ParleyError('ACP_NOT_STARTED', `${name} is no running agent: ${why}${said}`, {
    hint: isMissing
      ? 'install it, or name it by its whole path in `command`'
      : 'run the command by hand: it must speak the Agent Client Protocol on its standard streams, and print nothing else on standard output',
    cause: error,
  });
}

/** Starts a coding agent, asks it for a session, which shows whether it is signed in, and ends it. */

interface Diagnosis {
  /** Its name, version, protocol and capabilities. */
  readonly about: string;
  /** What it printed on standard output beside messages. */
  readonly noise: readonly string[];
  /** Why it begins no session; null: it does. */
  readonly fault: ParleyError | null;
}

/** Rejects if it is no running agent. */
export async function diagnose(command: AgentCommand, timeoutMs: number): Promise<Diagnosis> {
  const nothing = { update: () => undefined, permission: () => Promise.reject(new Error('no turn runs')) };
  const connection = await AgentConnection.open(command, nothing, timeoutMs);
  try {
    const beginning = connection.agent.request(methods.agent.session.new, {
      cwd: command.directory,
      mcpServers: [],
    });
    const fault = await within(timeoutMs, beginning).then(
      (session) => (session === null ? silent(timeoutMs) : null),
      (error: unknown) => connection.failure(error),
    );
    return { about: aboutOf(connection.about), noise: connection.noise, fault };
  } finally {
    await connection.close();
  }
}

function silent(ms: number): ParleyError {
  return new ParleyError('ACP_SILENT', `it began no session within ${ms / 1_000} s`, {
    hint: 'run the command by hand; it may wait for a sign-in, or for the network',
  });
}

function aboutOf({ agentInfo, protocolVersion, agentCapabilities: can }: InitializeResponse): string {
  const name = agentInfo ? `${agentInfo.title ?? agentInfo.name} ${agentInfo.version}` : 'it gives no name';
  const { resume } = can?.sessionCapabilities ?? {};
  const abilities = [
    resume ? 'resumes sessions' : can?.loadSession ? 'loads sessions' : 'a restart begins a new session',
    can?.promptCapabilities?.image ? 'takes pictures' : 'takes no pictures',
    can?.mcpCapabilities?.http ? 'takes MCP over HTTP' : 'takes no MCP over HTTP',
  ];
  return escapeHidden(`${name}, protocol ${protocolVersion}, ${abilities.join(', ')}`);
}
