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

/** Calls of tools that are counted from outside, and held where a test wants them (`mcp-steps.mjs`). */
export interface Steps {
  /** For `tools.mcpServers`. */
  readonly server: {
    readonly command: string;
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly trustReadOnlyHint: boolean;
  };
  /** Calls of this name wait, before or after they take effect. */
  hold(name: string, moment: 'before' | 'after'): void;
  release(name: string): void;
  /** How often a call of this name began. */
  entered(name: string): Promise<number>;
  /** How often it took effect. */
  effects(name: string): Promise<number>;
  /** Resolves when no program of a daemon that was killed is left. */
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

/** Longer than anything that is waited for: what never comes fails its test. */
const PATIENCE_MS = 45_000;

/** Resolves when the condition holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const givenUp = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > givenUp) throw new Error(`this never came to be: ${condition}`);
    await delay(10);
  }
}
