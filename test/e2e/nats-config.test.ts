import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { runCommand } from '../support/in-process.ts';
import { folderPerTest } from '../support/lifetime.ts';
import { NATS_SERVER_BINARY } from '../support/nats-server.ts';
import { HASHES } from '../support/server-users.ts';

const root = folderPerTest();

it('nats-config prints a configuration that the server accepts, with TLS and limits, and reports errors in its input', async () => {
  const file = join(root, 'users.yaml');
  const made = async (description: object | string) => {
    await writeFile(file, typeof description === 'string' ? description : JSON.stringify(description));
    return runCommand(['nats-config', file]);
  };
  const server = { listen: '127.0.0.1:14222', store: root, disk: '20GB' };
  const users = { daemon: { role: 'daemon', password: HASHES.daemon } };
  const whole = await made({ server, tenants: { acme: { prefix: 'team.one', disk: '5GB', users } } });
  await writeFile(join(root, 'nats.conf'), whole.stdout);
  const path = `${process.env.PATH}:/usr/sbin`;
  await promisify(execFile)(NATS_SERVER_BINARY, ['-t', '-c', join(root, 'nats.conf')], {
    env: { PATH: path },
  });
  expect(whole.stdout).toContain('"team.one.log.*"');
  const secured = {
    ...server,
    sync: 'always',
    tls: { cert: '/c.pem', key: '/k.pem', ca: '/ca.pem', verify: true },
  };
  const { stdout } = await made({ server: secured, tenants: { acme: { users } } });
  expect(stdout).toContain(
    'tls { cert_file: "/c.pem", key_file: "/k.pem", ca_file: "/ca.pem", verify: true }',
  );
  expect(stdout).toContain('sync_interval: "always"');

  const plain = await made({
    tenants: { acme: { users: { alice: { role: 'publisher', password: 'geheim' } } } },
  });
  expect(plain.code).toBe(2);
  expect(plain.stderr).toContain('tenants.acme.users.alice.password');
  expect(plain.stderr).toContain('a bcrypt hash');
  expect(plain.stderr + plain.stdout).not.toContain('geheim');
  const twice = await made({ tenants: { a: { users }, b: { users } } });
  expect(twice.stderr).toContain('a name or key that no other user has');
  const wrong = { role: 'daemon', conversations: 'all', password: HASHES.daemon };
  expect((await made({ tenants: { a: { users: { daemon: wrong } } } })).stderr).toContain(
    'only for a publisher',
  );
  const unnamed = { Critic: { role: 'agent', password: HASHES.critic } };
  expect((await made({ tenants: { a: { users: unnamed } } })).stderr).toContain('not the slug of an agent');
  expect((await made('')).stderr).toContain('at least one tenant');
  expect((await runCommand(['nats-config', join(root, 'none')])).stderr).toContain('a file that can be read');
});
