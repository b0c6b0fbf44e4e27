import { type InitializeResponse, methods } from '@agentclientprotocol/sdk';
import { escapeHidden, ParleyError, within } from '../../kernel/index.ts';
import { type AgentCommand, AgentConnection } from './connection.ts';

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
    return { about: aboutOf(connection.about), noise: connection.noise(), fault };
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
