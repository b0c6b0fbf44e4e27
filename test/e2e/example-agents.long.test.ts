import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { followUntil, turnsEnded } from '../support/log.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject, type Project, scriptedSettings } from '../support/project.ts';
import { describeUsers } from '../support/server-users.ts';

/** The agents of `examples/` on a server with an account for each user. */

const example = (path: string) => fileURLToPath(new URL(`../../examples/${path}`, import.meta.url));
const hasPython = spawnSync('python3', ['--version']).status === 0;
const TYPESCRIPT = [process.execPath, ['--import', 'tsx', example('remote-agent/agent.ts')]] as const;
const PYTHON = ['python3', [example('remote-agent-python/agent.py')]] as const;
const PROGRAMS = [
  ['TypeScript', 'nkey', ...TYPESCRIPT, true],
  ['Python', 'nkey', ...PYTHON, hasPython],
  ['Python', 'jwt', ...PYTHON, hasPython],
  ['Python', 'password', ...PYTHON, hasPython],
] as const;

let project: Project;
let nats: TestNatsServer | undefined;
afterEach(async () => {
  await project?.close();
  await nats?.stop();
});

describe.each(PROGRAMS)('the example agent in %s as a user with a %s', (_, kind, command, args, isThere) => {
  it.runIf(isThere)(
    'the example agent logs in with the credentials of its environment and answers a turn',
    async () => {
      project = await openProject({
        settings: scriptedSettings(),
        agents: { lead: '---\nname: Lead\n---\nL', critic: '---\nname: Critic\nruntime: bus\n---\nC' },
        files: { 'script.yaml': { rules: [{ reply: { text: 'noted' } }] } },
      });
      const users = await describeUsers(project.root, kind, {
        acme: { daemon: { role: 'daemon' }, ops: { role: 'operator' }, critic: { role: 'agent' } },
      });
      nats = await startNatsServer({ config: users.config });
      const daemon = await project.up(...users.flags('daemon', nats.url));
      const { nkey, credentials, passwordFile, inboxPrefix } = users.options('critic', nats.url);
      const password = passwordFile && (await readFile(passwordFile, 'utf8'));
      const url = password ? nats.url.replace('//', `//critic:${password}@`) : nats.url;
      const files = { PARLEY_NATS_NKEY: nkey, PARLEY_NATS_CREDENTIALS: credentials };
      const child = spawn(command, [...args, 'critic', url], {
        env: { ...process.env, ...files, PARLEY_NATS_INBOX_PREFIX: inboxPrefix },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const exited = once(child, 'exit');
      const ops = await connect(users.options('ops', nats.url));
      try {
        const first = await Promise.race([once(child.stdout, 'data'), exited]);
        expect(String(first[0])).toMatch(/ready|critic is there/);
        await ops.post({ conversation: 'c', publisher: 'alice', content: '@critic is this short?' });
        expect(JSON.stringify(await followUntil(ops, 'c', turnsEnded(1)))).toContain('Let me see. ');
      } finally {
        await ops.close();
        child.kill('SIGTERM');
        await exited;
      }
      expect(await daemon.stop()).toBe(0);
    },
  );
});
