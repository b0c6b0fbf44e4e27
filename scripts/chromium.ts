import { delimiter, join } from 'node:path';
import { type Host, systemHost } from '../src/bus/nats/managed/host.ts';
import { installPackage } from '../src/bus/nats/managed/install.ts';

/**
 * The browser of the system, for the tests of the console. The one without windows comes first: it takes half of the
 * processor time.
 *
 * B1 What a person names (CHROMIUM_BIN) is taken as it is.
 * B2 One that is missing is installed unattended where that needs no password; else the command is named.
 */

type Environment = Readonly<Record<string, string | undefined>>;

export type Chromium =
  | { readonly path: string }
  | { readonly path: null; readonly why: string; readonly instruction: string };

const NAMES = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
];
const FOLDERS = ['/usr/bin', '/usr/local/bin', '/snap/bin', '/opt/homebrew/bin'];
const CHROMIUM = {
  name: 'chromium-headless-shell', // of Debian
  size: 'about 100 MB, for the tests of the web console',
  elsewhere: 'install Chromium or Chrome and name it in CHROMIUM_BIN',
};

export async function findChromium(env: Environment, host: Host = systemHost()): Promise<string | null> {
  if (env.CHROMIUM_BIN) return env.CHROMIUM_BIN; // B1
  const onPath = (env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
  for (const folder of new Set([...onPath, ...FOLDERS])) {
    for (const name of NAMES) {
      const path = join(folder, name);
      if (await host.isExecutable(path)) return path;
    }
  }
  return null;
}

/** B2 */
export async function ensureChromium(
  env: Environment,
  say: (line: string) => void,
  host: Host = systemHost(),
): Promise<Chromium> {
  const found = await findChromium(env, host);
  if (found) return { path: found };
  const wanted = host.platform === 'darwin' ? { ...CHROMIUM, name: 'chromium' } : CHROMIUM;
  const outcome = await installPackage(wanted, host, say, true);
  if (outcome.kind === 'impossible')
    return { path: null, why: `no chromium: ${outcome.why}`, instruction: outcome.instruction };
  const installed = await findChromium(env, host);
  if (installed) return { path: installed };
  return {
    path: null,
    why: 'the package was installed, yet no chromium is found',
    instruction: CHROMIUM.elsewhere,
  };
}
