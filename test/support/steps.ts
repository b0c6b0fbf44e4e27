import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isAlive } from './mcp-tools.ts';

const PROGRAM = fileURLToPath(new URL('./mcp-steps.mjs', import.meta.url));

export const LOOK = 'mcp__steps__look';
export const ACT = 'mcp__steps__act';

/** Tool calls that are counted from outside and held on request (`mcp-steps.mjs`). */
export interface Steps {
  /** For `tools.mcpServers`. */
  readonly server: {
    readonly command: string;
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly trustReadOnlyHint: boolean;
  };
  /** Holds calls of this name before or after their effect. */
  hold(name: string, moment: 'before' | 'after'): void;
  release(name: string): void;
  /** How often a call of this name began. */
  entered(name: string): Promise<number>;
  /** How often a call of this name took effect. */
  effects(name: string): Promise<number>;
  /** Resolves when no program of a killed daemon runs. */
  gone(): Promise<void>;
  remove(): void;
}

export function createSteps(): Steps {
  const folder = mkdtempSync(join(tmpdir(), 'parley-steps-'));
  const lines = async (file: string) =>
    (await readFile(join(folder, file), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
  const count = async (file: string, name: string) =>
    (await lines(file)).filter((line) => line === name).length;
  return {
    server: { command: process.execPath, args: [PROGRAM], env: { STEPS: folder }, trustReadOnlyHint: true },
    hold: (name, moment) => writeFileSync(join(folder, `${name}-${moment}`), ''),
    release(name) {
      for (const moment of ['before', 'after']) rmSync(join(folder, `${name}-${moment}`), { force: true });
    },
    entered: (name) => count('entered', name),
    effects: (name) => count('effects', name),
    gone: () => until(async () => !(await lines('processes')).map(Number).some(isAlive)),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Longer than any wait: an event that never happens fails its test. */
const PATIENCE_MS = 45_000;

/** Resolves when the condition is true. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const givenUp = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > givenUp) throw new Error(`this never came to be: ${condition}`);
    await delay(10);
  }
}
