import { execFileSync, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '../../src/gateway/rest/routes.ts';
import { hideFolder } from '../../src/tools/processes.ts';
import { launcher } from '../support/cli.ts';
import { shared } from '../support/lifetime.ts';
import { followUntil, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, type RunningDaemon, scriptedSettings } from '../support/project.ts';
import { on } from '../support/route-rules.ts';
import { hasLongTests } from '../support/runs.ts';
import { hasPython, openTerminal } from '../support/terminal.ts';

/**
 * Other programs, other users and the tools of agents on this machine are not the operator. The daemon has its
 * defaults and a managed server. Code in the project searches for secrets.
 */

/** Why this system cannot hide files from programs; null: it can. */
const { fault } = await hideFolder('.');
const SECRET_FILES = ['connection.json', 'http-token', 'nats/user.nk'];
/** In the daemon's environment: other processes on the machine may have variables of other daemons. */
const MARK = `mark-${randomUUID()}`;

/** Processes of root with fewer capabilities, such as tools of other daemons, are a limit (docs/threat-model.md). */
const RIGHTS = /^CapPrm:\s+\w+$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[0] ?? '';
/** Run by `npm test`, which the policy allows. */
const ATTACK = `
env | grep PARLEY && echo variable found
for file in ${SECRET_FILES.join(' ')}; do cat "$DATA/$file"; done
ls -la "$DATA"
for process in /proc/[0-9]*; do
  grep -q "^${RIGHTS}$" "$process/status" || continue
  echo searched "$process"
  tr '\\0' '\\n' < "$process/environ" | grep MARK
  for file in ${SECRET_FILES.join(' ')}; do cat "$process/root$DATA/$file" "$process/cwd/data/$file"; done
done
umount "$DATA" && cat "$DATA/connection.json"
unshare --user --map-root-user --mount sh -c 'umount "$DATA"; cat "$DATA/connection.json"'
nsenter --target "$PPID" --mount cat "$DATA/connection.json"
echo written > "$DATA/connection.json"
echo searched
exit 3
`;

let daemon: RunningDaemon;
let url: string;
let token: string;

const AGENT = '---\nname: Dev\nphases: [chat]\ntools: [shell, fs_read]\n---\nDEV';
const CALLS: Readonly<Record<string, object>> = {
  attack: { name: 'shell', arguments: '{"command":"npm test"}' },
  read: { name: 'fs_read', arguments: '{"path":"@project/data/connection.json"}' },
};

const project = shared(() =>
  openProject({
    settings: {
      defaultAgent: 'dev',
      tools: {
        project: '.',
        policy: [{ agent: 'dev', tool: 'shell', match: { command: '^npm test$' }, allow: true }],
      },
    },
    model: ({ json }) => {
      const call = CALLS[json.messages?.at(-1)?.content ?? ''];
      return call ? { toolCalls: [call as never] } : { text: 'noted' };
    },
    agents: { dev: AGENT },
    env: { PARLEY_HTTP_TOKEN: '', MARK },
  }),
);
beforeAll(async () => {
  const test = `DATA=${project.data} sh attack.sh > found.txt 2>&1`;
  await writeFile(join(project.root, 'package.json'), JSON.stringify({ scripts: { test } }));
  await writeFile(join(project.root, 'attack.sh'), ATTACK);
  daemon = await project.up('--http', '127.0.0.1:0');
  url = String(daemon.ready.http);
  token = (await project.parley('token')).stdout.trimEnd();
});

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

/** Every route except health, the console's files and the A2A cards. */
const GUARDED = [
  ...ROUTES.map(({ method, path }) => [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'demo')] as const),
  ...[
    '/api/identity',
    '/api/openapi.json',
    '/api/conversations/demo/events',
    '/api/events?follow=demo',
    '/metrics',
  ].map(get),
  ...['/v1/models', '/v1/models/dev', '/a2a', '/nothing', '/api', '/data/connection.json'].map(get),
  ...['/v1/chat/completions', '/mcp', '/ag-ui/dev', '/a2a/dev'].map((path) => ['POST', path] as const),
];

function get(path: string): readonly ['GET', string] {
  return ['GET', path];
}

async function ask(method: string, path: string, headers: Record<string, string> = {}) {
  const body = method === 'POST' ? { body: '{}' } : {};
  const sent = { ...(method === 'POST' && { 'content-type': 'application/json' }), ...headers };
  const response = await fetch(`${url}${path}`, { method, headers: sent, ...body });
  const text = path.includes('/events') && response.ok ? '' : await response.text();
  if (text === '') await response.body?.cancel();
  return { status: response.status, text };
}

/** Arguments of bash, which every user can run, to send this request and print the response. */
function sending(request: string): string[] {
  const { hostname, port } = new URL(url);
  const script = 'exec 3<>"/dev/tcp/$0/$1" && printf "%s" "$2" >&3 && cat <&3';
  return ['-c', script, hostname, port, `${request}\r\nConnection: close\r\n\r\n`];
}

describe('a program without the token', () => {
  const WITHOUT: readonly Record<string, string>[] = [
    {},
    bearer('guess'),
    bearer(''),
    { authorization: 'guess' },
    { 'x-api-key': 'guess' },
  ];

  it.each(GUARDED)(
    'a program without the token is refused %s %s and learns nothing',
    async (method, path) => {
      for (const headers of WITHOUT) {
        const { status, text } = await ask(method, path, headers);
        expect(status).toBe(401);
        expect(text).not.toMatch(/operate|demo|Dev|console|publisher/);
        expect(text).not.toContain(token);
      }
    },
  );

  it('a request without the token is refused, and succeeds with it', async () => {
    for (const [method, path] of GUARDED)
      expect((await ask(method, path, bearer(token))).status).not.toBe(401);
    const { text } = await ask('GET', '/api/identity', bearer(token));
    expect(JSON.parse(text)).toEqual({ role: 'operate', publisher: null, name: null, isSession: false });
  });

  it('routes without a token do not reveal the token', async () => {
    for (const path of ['/', '/healthz', '/readyz', '/.well-known/agent-card.json'])
      expect((await ask('GET', path)).text).not.toContain(token);
  });

  it('a page of another host name is refused, even with the token', async () => {
    const request = `GET /api/identity HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer ${token}`;
    const out = execFileSync('bash', sending(request), { encoding: 'utf8' });
    expect(out).toMatch(/^HTTP\S+ 403 .*HOST_FORBIDDEN/s);
  });
});

describe('the generated token', () => {
  it('the token has 256 bits and is in no output of the daemon', async () => {
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(daemon.ready).not.toHaveProperty('httpToken');
    expect(JSON.stringify(daemon.ready) + daemon.stderr()).not.toContain(token);
  });

  it('the token is in files that only the owner can read', async () => {
    for (const name of SECRET_FILES) expect((await stat(join(project.data, name))).mode & 0o077).toBe(0);
    expect(await readFile(join(project.data, 'http-token'), 'utf8')).toBe(`${token}\n`);
  });

  it('the token is not in the address of `parley token --url`, whose code signs a browser in once', async () => {
    const address = (await project.parley('token', '--url')).stdout;
    expect(address).toMatch(/^http:\S+\/#code=[\w.-]+\n$/);
    expect(address).not.toContain(token);
    const [printed] = (await project.parley('token', '--json')).json();
    expect(printed).toEqual({ token, url: expect.stringContaining('/#code=') });
    const code = String(printed.url).split('#code=')[1] ?? '';
    const { cookie } = await exchange(url, code);
    expect(cookie).not.toContain(token);
    const who = await fetch(`${url}/api/identity`, { headers: { cookie } });
    expect(await who.json()).toMatchObject({ role: 'operate', isSession: true });
    for (const refused of [code, '', `${code}x`, code.replace(/^./, '9'), token])
      expect(await exchange(url, refused)).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } });
  });
});

describe.skipIf(process.getuid?.() !== 0)('the user nobody', () => {
  const asNobody = (...command: string[]) => {
    const { stdout, stderr, status } = spawnSync(
      'setpriv',
      ['--reuid=65534', '--regid=65534', '--clear-groups', ...command],
      { encoding: 'utf8', cwd: '/' },
    );
    return { said: stdout + stderr, status };
  };

  it('another user can enter the parent of the data directory, and reads no secret there', async () => {
    await chmod(project.root, 0o755);
    expect(asNobody('ls', project.root).status).toBe(0);
    for (const name of SECRET_FILES) {
      const { said, status } = asNobody('cat', join(project.data, name));
      expect(status).not.toBe(0);
      expect(said).toContain('Permission denied');
    }
  });

  it('another user cannot operate the daemon over HTTP', () => {
    const request = `POST /api/conversations/demo/stop HTTP/1.1\r\nHost: ${new URL(url).host}`;
    expect(asNobody('bash', ...sending(request)).said).toMatch(/^HTTP\S+ 401 .*UNAUTHORIZED/s);
  });
});

describe('a tool of an agent', () => {
  /** The result of this call as the model gets it. */
  async function resultOf(call: string): Promise<string> {
    const client = await project.connect();
    await client.post({ conversation: call, publisher: 'alice', content: call });
    const entries = await followUntil(client, call, turnsEnded(1));
    const results = entries.flatMap((entry) =>
      entry.type === 'message' && entry.role === 'tool' ? [entry.content ?? ''] : [],
    );
    expect(results).toHaveLength(1);
    return results[0] ?? '';
  }

  it.skipIf(fault !== null)(
    'a tool that the policy allows finds no secret in its environment, the data directory and other processes',
    async () => {
      const seed = (await readFile(join(project.data, 'nats/user.nk'), 'utf8')).trim();
      expect(seed).toMatch(/^SU\w{50,}$/);
      const result = await resultOf('attack');
      expect(result).toMatch(/^\[exit code 3\]/);
      const found = await readFile(join(project.root, 'found.txt'), 'utf8');
      expect(found).toMatch(/searched\n$/);
      expect(found).toContain(`searched /proc/${daemon.pid}\n`);
      for (const secret of [token, seed, MARK, 'variable found']) expect(found).not.toContain(secret);
      expect(JSON.parse(await readFile(join(project.data, 'connection.json'), 'utf8'))).toMatchObject({
        httpToken: token,
      });
    },
  );

  it('a tool that reads files does not read a data directory inside its project', async () => {
    const result = await resultOf('read');
    expect(result).toContain('PATH_REFUSED');
    expect(result).not.toContain(token);
  });
});

/** As a container with the usual limits: user 10001 without capabilities, and no further namespaces. */
const CONTAINER = [
  ...['unshare', '--user', '--map-root-user', 'sh', '-c'],
  `echo 1 > /proc/sys/user/max_user_namespaces &&
exec unshare --user --map-user=10001 --map-group=10001 setpriv --no-new-privs "$@"`,
  'sh',
];
const hasContainer = spawnSync(CONTAINER[0] ?? '', [...CONTAINER.slice(1), 'true']).status === 0;

describe.skipIf(!hasContainer)('a daemon where the system has no mount namespaces', () => {
  const KEY = `key-${randomUUID()}`;

  async function attackUnder(tools: object) {
    const contained = await openProject({
      settings: scriptedSettings({
        tools: { ...tools, policy: [{ tool: 'shell', match: { command: '^sh attack\\.sh$' }, allow: true }] },
      }),
      agents: { lead: '---\nname: Lead\nphases: [chat]\ntools: [shell]\n---\nLEAD' },
      files: {
        'script.yaml': {
          rules: [
            on('attack', { tool_calls: [{ name: 'shell', arguments: { command: 'sh attack.sh' } }] }),
            { reply: { text: 'I tried.' } },
          ],
        },
      },
      env: { OPENAI_API_KEY: KEY, PARLEY_HTTP_TOKEN: `token-${KEY}` },
      under: CONTAINER,
    });
    try {
      const search = `id -u; for one in /proc/[0-9]*; do [ "\${one#/proc/}" = $$ ] || { cat "$one/environ" 2>&1 | tr '\\0' '\\n' | grep ${KEY}; }; done; cat data/connection.json; echo searched`;
      await writeFile(join(contained.root, 'attack.sh'), search);
      const { stderr } = await contained.up();
      const client = await contained.connect();
      await client.post({ conversation: 'attack', publisher: 'alice', content: 'attack' });
      const entries = await followUntil(client, 'attack', turnsEnded(1));
      const [result = ''] = entries.flatMap((entry) =>
        entry.type === 'message' && entry.role === 'tool' ? [entry.content ?? ''] : [],
      );
      return { result, stderr: stderr() };
    } finally {
      await contained.close();
    }
  }

  itLong('a program of a tool is not started where the data directory cannot be hidden from it', async () => {
    const { result, stderr } = await attackUnder({});
    expect(result).toContain('DATA_NOT_HIDDEN');
    expect(result).not.toContain('searched');
    expect(stderr).toContain('tools start no program');
  });

  itLong(
    'a program of a tool that the operator lets run unhidden finds no key in the environment of the daemon',
    async () => {
      const { result, stderr } = await attackUnder({ unhidden: true });
      expect(result).toMatch(/^\[exit code 0\]\n10001\n/);
      expect(result).toMatch(/"url".*searched\n$/s); // what it accepted: the data directory is open to it
      expect(result).not.toContain(KEY);
      expect(stderr).toContain('programs that tools start can read the data directory');
    },
  );
});

describe('a start of the daemon', () => {
  it('a start keeps the token of its data directory, and replaces one that others could read', async () => {
    await daemon.stop();
    daemon = await project.up('--http', '127.0.0.1:0');
    expect((await project.parley('token')).stdout.trimEnd()).toBe(token);
    await daemon.stop();
    await chmod(join(project.data, 'http-token'), 0o644);
    daemon = await project.up('--http', '127.0.0.1:0');
    const { stdout } = await project.parley('token');
    expect(stdout).toMatch(/^[\w-]{43}\n$/);
    expect(stdout.trimEnd()).not.toBe(token);
    expect((await stat(join(project.data, 'http-token'))).mode & 0o777).toBe(0o600);
    expect(daemon.stderr()).toContain('the HTTP token is replaced');
  }, 180_000); // three starts, each with its own server

  it('a start without a token requires `none`, and prints a warning', async () => {
    await daemon.stop();
    daemon = await project.up('--http', '127.0.0.1:0', '--http-token', 'none');
    expect((await fetch(`${daemon.ready.http}/api/identity`)).status).toBe(200);
    expect(daemon.stderr()).toContain('every user of this machine may operate this daemon');
    const { code, stdout, stderr } = await project.parley('token');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('this daemon needs no HTTP token');
  });
});

describe('a person at a terminal', () => {
  it.runIf(hasPython && hasLongTests)(
    'a person at a terminal gets an address of the console that opens it',
    async () => {
      await daemon.stop();
      const args = ['--config', project.config, '--data', project.data, '--http', '127.0.0.1:0'];
      const terminal = openTerminal([launcher, 'up', ...args]);
      project.defer(() => terminal.end());
      await expect.poll(terminal.screen).toContain('Ctrl-C stops it.');
      const [, at = '', code = ''] = /(http:\S+)\/#code=([\w.-]+)/.exec(terminal.screen()) ?? [];
      const { cookie } = await exchange(at, code);
      const answer = await fetch(`${at}/api/identity`, { headers: { cookie } });
      expect(await answer.json()).toMatchObject({ role: 'operate' });
    },
  );
});

/** As the console does it. */
async function exchange(at: string, code: string) {
  const headers = { authorization: `Code ${code}` };
  const answer = await fetch(`${at}/api/session`, { method: 'POST', headers });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  return { status: answer.status, cookie, body: answer.ok ? null : await answer.json() };
}
