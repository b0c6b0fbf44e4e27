import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { natsConfig } from '../../../src/daemon/index.ts';
import { HASHES } from '../../support/server-users.ts';

/** Subjects that a user may publish on and subscribe to, and whether it may answer. */
interface Allowed {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
  readonly answers: boolean;
}

let directory: string;
let page: string;
let printed: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-docs-'));
  page = await readFile(new URL('../../../docs/security.md', import.meta.url), 'utf8');
  const users = join(directory, 'users.yaml');
  const key = (name: string) => `U${name.toUpperCase().padEnd(55, 'A')}`;
  const described = blockFrom('# users.yaml')
    .replaceAll('"$2a$11$…"', JSON.stringify(HASHES.alice))
    .replaceAll('nkey: U…', `nkey: ${key('critic')}`);
  await writeFile(users, described);
  printed = await natsConfig(users);
  await writeFile(join(directory, 'printed.conf'), printed);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** The indented block of the page that begins with this line. */
function blockFrom(first: string): string {
  const lines = page.slice(page.indexOf(`    ${first}\n`)).split('\n');
  const end = lines.findIndex((line) => line !== '' && !line.startsWith('    '));
  return lines
    .slice(0, end)
    .map((line) => line.slice(4))
    .join('\n');
}

/** Of each user, as the server's configuration has it. */
function inConfiguration(): Record<string, Allowed> {
  const users = printed.split(/# (?:daemon|operator|publisher|agent) (?=\S+; inbox)/).slice(1);
  return Object.fromEntries(
    users.map((text) => {
      const list = (kind: string) =>
        JSON.parse(new RegExp(`${kind}: { allow: (\\[.*\\]) }`).exec(text)?.[1] ?? '[]');
      const answers = text.includes('allow_responses: { max: 1, expires: "1m" }');
      return [
        text.split(';')[0],
        { publish: list('publish').sort(), subscribe: list('subscribe').sort(), answers },
      ];
    }),
  );
}

/** Runs the page's commands with an `nsc` that writes down what it is given. */
async function inCommands(): Promise<Record<string, Allowed>> {
  const script = [
    `nsc() { printf '%s\\n' "$@" >> "$CALLS"; echo >> "$CALLS"; }`,
    'parley() { cat printed.conf; }',
    blockFrom('nsc add account acme'),
  ].join('\n');
  const env = { ...process.env, CALLS: join(directory, 'calls') };
  await promisify(execFile)('sh', ['-eu', '-c', script], { cwd: directory, env });
  const calls = (await readFile(env.CALLS, 'utf8')).split('\n\n').map((call) => call.split('\n'));
  const users = calls.filter((call) => call.join(' ').startsWith('add user --account acme '));
  return Object.fromEntries(
    users.map((call) => {
      const list = (flag: string) => call[call.indexOf(flag) + 1]?.split(',').sort() ?? [];
      const answers = call.join(' ').includes('--allow-pub-response=1 --response-ttl 1m');
      return [call[4], { publish: list('--allow-pub'), subscribe: list('--allow-sub'), answers }];
    }),
  );
}

describe('docs/security.md', () => {
  it('gives each user of its JWT account the subjects that nats-config prints for it', async () => {
    const expected = inConfiguration();
    expect(Object.keys(expected)).toEqual(['daemon', 'olga', 'alice', 'critic']);
    expect(expected.daemon?.publish.length).toBeGreaterThan(50);
    expect(await inCommands()).toEqual(expected);
  });
});
