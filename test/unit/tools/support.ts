import { mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Toolbox, ToolOutcome, ToolRun } from '../../../src/agents/tool-port.ts';
import type { BuiltInOptions } from '../../../src/tools/builtin/toolbox.ts';
import { createBuiltInTools } from '../../../src/tools/index.ts';
import { newFolder } from '../../support/lifetime.ts';

/** A project, its surroundings, and the built-in tools on it. */
export interface TestTools {
  /** Contains `project`, `outputs`, and a file `secret` that no tool may read. */
  readonly directory: string;
  readonly project: string;
  readonly tools: Toolbox;
  readonly logged: string[];
  /** Writes files below `directory` and creates folders. Returns the path. */
  file(path: string, content: string | Buffer): Promise<string>;
  run(name: string, given: Record<string, unknown>, signal?: AbortSignal): Promise<ToolOutcome>;
}

interface TestToolsOptions extends Partial<BuiltInOptions> {
  /** By their path below `directory`. */
  readonly files?: Readonly<Record<string, string | Buffer>>;
}

export const SECRET = 'not for tools';

/** Lasts until the test that runs is over. */
export async function openTools({ files, ...options }: TestToolsOptions = {}): Promise<TestTools> {
  const directory = await newFolder(files);
  const toolbox = await makeYard(directory, options);
  onTestFinished(async () => {
    await toolbox.tools.close();
    // Whatever the results of the calls: all files that they opened are closed.
    expect((await openFiles()).filter((path) => path.startsWith(directory))).toEqual([]);
  });
  return toolbox;
}

async function makeYard(directory: string, options: Partial<BuiltInOptions>): Promise<TestTools> {
  const project = join(directory, 'project');
  const logged: string[] = [];
  const log = { warn: () => {}, error: (_: object, message: string) => void logged.push(message) };
  await mkdir(project, { recursive: true });
  await writeFile(join(directory, 'secret'), SECRET);
  const tools = createBuiltInTools({
    project,
    outputs: (conversation, entry) =>
      readFile(join(directory, 'outputs', conversation, `${entry}.json`), 'utf8').catch(() => null),
    environment: { PATH: process.env.PATH ?? '' },
    closed: [join(project, 'data')],
    log,
    ...options,
  });
  return {
    directory,
    project,
    tools,
    logged,
    file: async (path, content) => {
      const full = join(directory, path);
      await mkdir(dirname(full), { recursive: true });
      await writeFile(full, content);
      return full;
    },
    run: (name, given, signal = new AbortController().signal) => tools.run(toolRun(name, given), signal),
  };
}

export function toolRun(name: string, given: Record<string, unknown> = {}): ToolRun {
  return {
    conversation: 'work',
    agent: 'dev',
    turnId: 'turn',
    name,
    arguments: given,
    idempotencyKey: 'key',
  };
}

export function content(outcome: ToolOutcome): string {
  if (outcome.kind !== 'completed') throw new Error(`not completed: ${JSON.stringify(outcome)}`);
  return outcome.content;
}

export function failed(code: string, message: string) {
  return { kind: 'failed', code, message: expect.stringContaining(message) };
}

/** Open files of this process, by target. Empty where the system does not list them. */
async function openFiles(): Promise<string[]> {
  const names = await readdir('/proc/self/fd').catch(() => []);
  return Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
}
