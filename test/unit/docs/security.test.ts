import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { natsConfig } from '../../../src/daemon/index.ts';
import { sharedFolder } from '../../support/lifetime.ts';
import { blocksOf, readPage } from '../../support/pages.ts';
import { HASHES } from '../../support/server-users.ts';

const directory = sharedFolder();
let users: string;
beforeAll(async () => {
  const blocks = blocksOf(await readPage('docs/guides/security.md'));
  const described = blocks.find(
    ({ language, text }) => language === 'yaml' && text.includes('tenants:'),
  )?.text;
  users = join(directory, 'users.yaml');
  await writeFile(users, (described ?? '').replaceAll('"$2a$11$…"', JSON.stringify(HASHES.alice)));
});

/** One line for each export, import and user. */
type Facts = readonly string[];

/** As the server's configuration has them. */
async function inConfiguration(): Promise<Facts> {
  let account = '';
  return (await natsConfig(users)).split('\n').flatMap((line) => {
    account = /^ {2}"(.*)" \{$/.exec(line)?.[1] ?? account;
    const exported = /^ {6}\{ (service|stream): "(\S+)"(?:, response_type: (\w+))?/.exec(line);
    if (exported) return [`${account} exports ${exported[1]} ${exported[2]} ${exported[3] ?? ''}`.trim()];
    const imported = /\{ (service|stream): \{ account: "(\S+)", subject: "(\S+)" \} \}/.exec(line);
    if (imported) return [`${account} imports ${imported[1]} ${imported[3]} from ${imported[2]}`];
    const listed = /^ +(publish|subscribe): \{ allow: (\[.*\]) \}$/.exec(line);
    if (listed) return [`${account} ${listed[1]} ${JSON.parse(listed[2] ?? '').join()}`];
    return line.includes('allow_responses: { max: 1, expires: "1m" }') ? [`${account} answers`] : [];
  });
}

/** As the commands give them to an `nsc` that writes down what it is given. */
async function inCommands(): Promise<Facts> {
  const nsc = [
    'nsc() {',
    `  if [ "$1" = describe ]; then echo "\\"$3\\""; return; fi`,
    `  printf '%s\\n' "$@" >> "$CALLS"; echo >> "$CALLS"`,
    '}',
  ];
  const env = { ...process.env, CALLS: join(directory, 'calls') };
  const script = [...nsc, await natsConfig(users, true)].join('\n');
  await promisify(execFile)('sh', ['-eu', '-c', script], { env });
  const calls = (await readFile(env.CALLS, 'utf8')).trim().split('\n\n');
  return calls.flatMap((call) => {
    const words = call.split('\n');
    const after = (flag: string) => words[words.indexOf(flag) + 1] ?? '';
    const kind = words.includes('--service') ? 'service' : 'stream';
    const account = after('--account');
    if (words[1] === 'export') {
      const type = kind === 'service' ? after('--response-type').toLowerCase() : '';
      return [`${account} exports ${kind} ${after('--subject')} ${type}`.trim()];
    }
    if (words[1] === 'import')
      return [`${account} imports ${kind} ${after('--remote-subject')} from ${after('--src-account')}`];
    if (words[1] !== 'user') return [];
    const answers = call.includes('--allow-pub-response=1\n--response-ttl\n1m') ? [`${account} answers`] : [];
    return [
      `${account} publish ${after('--allow-pub')}`,
      `${account} subscribe ${after('--allow-sub')}`,
      ...answers,
    ];
  });
}

describe('the users of docs/guides/security.md', () => {
  it('users get the same rights from the documented nsc commands as from the documented server configuration', async () => {
    const expected = await inConfiguration();
    expect(expected.length).toBeGreaterThan(30);
    expect(expected).toContain('acme.publisher.alice imports service parley.in.alice.demo from acme');
    expect(expected).toContain('acme.agent.critic answers');
    expect([...(await inCommands())].sort()).toEqual([...expected].sort());
  });
});
