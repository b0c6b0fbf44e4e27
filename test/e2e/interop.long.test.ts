import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { model } from '../interop/model.ts';
import { providerSettings, sharedProject } from '../support/project.ts';

/**
 * Clients of the standard protocols, each installed from the registry and run in a process of its own against a daemon.
 * `npm run interop` writes `docs/reference/interop.md`; without it, the page is compared.
 */

const FEATURES = [
  ...['text', 'stream', 'client tools', 'structured', 'picture', 'file', 'abort', 'error', 'usage'],
  'edited history',
];

interface Client {
  readonly title: string;
  readonly packages: readonly string[];
  readonly module: string;
  readonly name: string;
}

const CLIENTS: readonly Client[] = JSON.parse(
  await readFile(new URL('../interop/clients.json', import.meta.url), 'utf8'),
);
const PAGE = fileURLToPath(new URL('../../docs/reference/interop.md', import.meta.url));
const run = promisify(execFile);
const FORECAST = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'number' } },
  required: ['city', 'degrees'],
};

/** The folder with the client's packages, installed once. */
async function install({ packages, module }: Client): Promise<string> {
  const folder = join(homedir(), '.cache', 'parley', 'interop', packages.join('+').replaceAll('/', '-'));
  await mkdir(folder, { recursive: true });
  const manifest = join(folder, 'package.json');
  const isInstalled = await readFile(join(folder, 'installed'), 'utf8').catch(() => null);
  if (isInstalled === null) {
    await writeFile(manifest, '{"private":true,"type":"module"}');
    await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages], {
      cwd: folder,
    });
    await writeFile(join(folder, 'installed'), '');
  }
  const clients = fileURLToPath(new URL('../interop/clients/', import.meta.url));
  for (const file of ['run.mjs', 'expected.mjs', 'words.json', `${module}.mjs`])
    await cp(join(clients, file), join(folder, file));
  return folder;
}

describe('clients of the standard protocols', () => {
  const project = sharedProject({
    settings: (url) => {
      const settings = providerSettings(url, { retry: { attempts: 1 } });
      const { default: model } = settings.models as { default: object };
      return { ...settings, models: { default: { ...model, accepts: ['image', 'pdf'] } } };
    },
    model,
    agents: {
      pm: '---\nname: Pam\ndescription: plans\n---\nYou plan.',
      typed: `---\nname: Ty\ndescription: forecasts\nanswers: ${JSON.stringify(FORECAST)}\n---\nYou answer in JSON.`,
    },
    http: true,
  });
  const rows = new Map<Client, Record<string, string>>();
  const folders: string[] = [];
  beforeAll(async () => {
    for (const client of CLIENTS) folders.push(await install(client)); // some share a folder
  }, 600_000);

  it.each(CLIENTS.map((client, at) => [client.title, client, at] as const))(
    '%s: no feature fails without a reason',
    async (_, client, at) => {
      const args = ['run.mjs', client.module, client.name, project.http, 'none'];
      const { stdout } = await run(process.execPath, args, { cwd: folders[at], timeout: 240_000 });
      const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
      const outcomes = Object.fromEntries(
        lines.map((line) => JSON.parse(line)).map(({ feature, outcome }) => [feature, outcome]),
      );
      rows.set(client, outcomes);
      expect(Object.keys(outcomes).sort()).toEqual([...FEATURES].sort());
      for (const outcome of Object.values(outcomes)) expect(outcome).toMatch(/^(works|n\/a|refused: .+)$/);
    },
    300_000,
  );

  it('the page says what the run found', async () => {
    const page = pageOf(rows);
    if (process.env.PARLEY_WRITE_INTEROP) await writeFile(PAGE, page);
    expect(await readFile(PAGE, 'utf8')).toBe(page);
  });
});

function pageOf(rows: ReadonlyMap<Client, Record<string, string>>): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const reasons: string[] = [];
  const cell = (outcome = 'not run') => {
    if (!outcome.startsWith('refused: ')) return outcome;
    const reason = outcome.slice('refused: '.length);
    if (!reasons.includes(reason)) reasons.push(reason);
    return `refused [${reasons.indexOf(reason) + 1}]`;
  };
  const table = [...rows].map(([{ title }, outcomes]) =>
    line([title, ...FEATURES.map((feature) => cell(outcomes[feature]))]),
  );
  return [
    '# Interoperability',
    '',
    'Which features of Parley work with which client. `npm run interop` writes this page: it installs each client, and runs each feature against a',
    'daemon whose model is a stand-in. *n/a*: the client or its protocol has no such feature. How to connect: [standard protocols](../guides/standard-protocols.md).',
    '',
    line(['client', ...FEATURES]),
    line(['---', ...FEATURES.map(() => '---')]),
    ...table,
    '',
    ...reasons.map((reason, at) => `${at + 1}. ${reason}`),
    ...(reasons.length > 0 ? [''] : []),
  ].join('\n');
}
