import { type Config, type ConfigFlags, loadConfig } from '../../../src/config/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { newFolder } from '../../support/lifetime.ts';

/** The smallest agent. */
export const AGENT = { 'agents/dev.md': 'You write code.\n' };

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
  const directory = await newFolder(hasAgents ? files : { ...AGENT, ...files });
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
  return error.message.replaceAll(/\S*parley-test-[^/\s:]+\/?/g, '');
}
