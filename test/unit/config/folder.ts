import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Config, type ConfigFlags, loadConfig } from '../../../src/config/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';

/** The smallest agent. */
export const AGENT = { 'agents/dev.md': 'You write code.\n' };

/** A configuration folder of these files, removed after the test (which a hook of this module would not do: its worker
 *  loads it once for many files). */
export async function folderOf(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'parley-config-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

interface Surroundings {
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: ConfigFlags;
}

/** Loads a folder of these files, with one agent unless the files include one. */
export async function load(
  files: Readonly<Record<string, string | Uint8Array>>,
  { env = {}, flags = {} }: Surroundings = {},
): Promise<Config> {
  const hasAgents = Object.keys(files).some((path) => path.startsWith('agents'));
  const directory = await folderOf(hasAgents ? files : { ...AGENT, ...files });
  return loadConfig({ configDirectory: directory, env, flags, workingDirectory: directory });
}

/** Loads a folder with this `parley.yaml`. */
export function loadYaml(yaml: string, surroundings: Surroundings = {}): Promise<Config> {
  return load({ 'parley.yaml': yaml }, surroundings);
}

/** The text of the error, without the folder's name. */
export async function refusalOf(loading: Promise<unknown>): Promise<string> {
  const error = await loading.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ParleyError)) throw new Error(`was not refused: ${String(error)}`);
  if (error.code !== 'CONFIG_INVALID') throw new Error(`refused with ${error.code}: ${error.message}`);
  return error.message.replaceAll(/\S*parley-config-[^/\s:]+\/?/g, '');
}
