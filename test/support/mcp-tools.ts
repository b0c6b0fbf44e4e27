import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ToolOutcome } from '../../src/agents/tool-port.ts';
import { passedOn } from '../../src/config/index.ts';
import {
  createMcpTools,
  type LoginStore,
  type McpServerSettings,
  type McpTimes,
  type McpToolbox,
} from '../../src/tools/mcp/index.ts';

const PROGRAM = fileURLToPath(new URL('./mcp-program.mjs', import.meta.url));

/** The tools of servers in a directory of their own, created as the daemon creates them. */
export interface McpTestTools {
  readonly directory: string;
  readonly tools: McpToolbox;
  /** The log lines, as JSON. */
  readonly said: readonly string[];
  run(name: string, given?: Record<string, unknown>, signal?: AbortSignal): Promise<ToolOutcome>;
  /** The records of the faulty program. */
  marks(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export async function openMcpTools(
  servers: (directory: string) => Readonly<Record<string, McpServerSettings>>,
  times: Partial<McpTimes> = { restartMs: 10, restartMaxMs: 100 },
  logins?: LoginStore,
): Promise<McpTestTools> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-mcp-'));
  const said: string[] = [];
  const say = (fields: object, message: string) => void said.push(JSON.stringify({ message, ...fields }));
  const log = { info: say, warn: say };
  const tools = createMcpTools({
    servers: servers(directory),
    project: directory,
    environment: passedOn(process.env),
    log,
    times,
    logins,
  });
  return {
    directory,
    tools,
    said,
    run: (name, given = {}, signal = new AbortController().signal) =>
      tools.run(
        { conversation: 'c', agent: 'dev', turnId: 't', name, arguments: given, idempotencyKey: 'c/1/0' },
        signal,
      ),
    marks: async () => (await readFile(marksIn(directory), 'utf8').catch(() => '')).split('\n').slice(0, -1),
    async close() {
      await tools.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The settings of the faulty program. */
export function program(directory: string, env: Readonly<Record<string, string>> = {}): McpServerSettings {
  return nodeProgram(PROGRAM, [], { MARKS: marksIn(directory), ...env });
}

/** A server of a package, by the path of its main file inside `node_modules`. */
export function packaged(path: string, args: readonly string[]): McpServerSettings {
  return nodeProgram(fileURLToPath(new URL(`../../node_modules/${path}`, import.meta.url)), args, {});
}

export const EVERYTHING = '@modelcontextprotocol/server-everything/dist/index.js';
export const FILESYSTEM = '@modelcontextprotocol/server-filesystem/dist/index.js';

/** Not alive: also a process that has ended and was not reaped, as in a container whose first process reaps none. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return process.platform !== 'linux'; // no /proc
  }
}

export function secrets(values: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { reveal: () => value }]));
}

function nodeProgram(file: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  return {
    transport: 'command',
    command: process.execPath,
    args: [file, ...args],
    env: secrets(env),
  } as const;
}

function marksIn(directory: string): string {
  return join(directory, 'marks');
}
