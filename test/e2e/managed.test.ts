import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Entry, readConnectionFile } from '../../src/client/index.ts';
import { launcher } from '../support/cli.ts';
import { perTest, sharedFolder } from '../support/lifetime.ts';
import { checkLog } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, servesNats } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';
import { hasPython, openTerminal } from '../support/terminal.ts';

describe('a nats-server on the PATH', { timeout: 90_000 }, () => {
  const tools = sharedFolder();
  const PATH = `${tools}:${process.env.PATH}`;
  const used = join(tools, 'used');

  it.each([
    ['NATS_BIN names it', 'nats-server'],
    ['it comes before those of the usual folders', ''],
  ])('is run if %s', async (_, NATS_BIN) => {
    const { PATH: usual, NATS_BIN: real = 'nats-server' } = process.env;
    const script = `#!/bin/sh\necho "$@" >> '${used}'\nPATH='${usual}' exec '${real}' "$@"\n`;
    await writeFile(join(tools, 'nats-server'), script, { mode: 0o755 });
    await writeFile(used, '');
    const project = await openProject({ env: { PATH, NATS_BIN } });
    try {
      await project.up();
      expect(await readFile(used, 'utf8')).toMatch(/^--version\n-c /);
    } finally {
      await project.close();
    }
  });
});

/** One command and two agents without any key, and what signals to the daemon do to its nats-server. */
describe('a first use from the command line only', { timeout: 90_000 }, () => {
  const project = perTest(() => openProject());

  it('two agents of the offline team answer, and SIGTERM ends daemon and server', async () => {
    const daemon = await project.up();
    expect(daemon.ready).toMatchObject({ event: 'ready', pid: daemon.pid, http: null, store: 'file' });
    expect(daemon.ready.agents).toEqual(['dev', 'planner', 'pm', 'reviewer']);
    expect(await readConnectionFile(project.data)).toMatchObject({ url: daemon.ready.nats, managed: true });
    expect(daemon.ready.nats).toMatch(/^nats:\/\/127\.0\.0\.1:\d+$/);

    const said = await project.parley('say', 'demo', 'hi @dev and @planner', '--wait', '--json');
    expect(said.code).toBe(0);
    const answers = (said.json() as Entry[]).filter(
      (entry) => entry.type === 'message' && entry.role === 'assistant',
    );
    expect(answers.map((entry) => entry.author.id).sort()).toEqual(['dev', 'planner']);

    const shown = await project.parley('show', 'demo', '--json');
    expect(shown.code).toBe(0);
    expect(shown.json().map((entry) => entry.index)).toEqual(shown.json().map((_, at) => at));
    const server = await project.natsServerProcess();
    expect(await servesNats(project.data, server)).toBe(true);

    const stranger = await project.parley('say', 'demo', 'hi', '--nats-user', 'alice');
    expect([stranger.code, stranger.stdout]).toEqual([1, '']);
    expect(stranger.stderr).toContain('refused the credentials'); // This server has no such user.
    const named = await project.parley(
      'say',
      'demo',
      'hi',
      '--publisher',
      'office',
      '--as',
      'Al',
      '--wait',
      '--json',
    );
    expect((named.json() as Entry[])[0]?.author).toMatchObject({ kind: 'person', id: 'office/Al' });

    expect(await daemon.stop()).toBe(0);
    expect(await servesNats(project.data, server)).toBe(false);
    expect(checkLog(await project.logFile('demo'))).toEqual([]);

    const gone = await project.parley('ls');
    expect(gone.code).toBe(1);
    expect(gone.stderr).toMatch(/no running daemon/);
  });

  itLong('a start that fails elsewhere while its nats-server starts leaves no server', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    project.defer(() => other.close());
    const { port } = other.address() as AddressInfo;
    await expect(project.up('--http', `127.0.0.1:${port}`)).rejects.toThrow('HTTP_PORT_IN_USE');
    expect(await servesNats(project.data, await project.natsServerProcess().catch(() => 0))).toBe(false);
    await project.up(); // nor anything that would block the next start
  });

  itLong(
    'the managed server is kept when a daemon with the other store starts on the same data',
    async () => {
      const daemon = await project.up();
      const server = await project.natsServerProcess();
      await expect(project.up('--store', 'jetstream')).rejects.toThrow(`is in use by process ${daemon.pid}`);
      expect(await project.natsServerProcess()).toBe(server);
      expect(await servesNats(project.data, server)).toBe(true);
    },
  );

  it('the next daemon finds the same server and log after a kill -9', async () => {
    const first = await project.up();
    expect((await project.parley('say', 'demo', 'hi', '--id', 'once', '--wait')).code).toBe(0);
    const before = await project.logFile('demo');
    const server = await project.natsServerProcess();
    await first.kill9();
    expect(await servesNats(project.data, server)).toBe(true);

    const second = await project.up();
    expect(second.ready.nats).toBe(first.ready.nats);
    expect(await project.natsServerProcess()).toBe(server);
    expect(await project.logFile('demo')).toBe(before);
    const again = await project.parley('say', 'demo', 'hi', '--id', 'once', '--json');
    expect(again.json()).toEqual([expect.objectContaining({ index: 0, duplicate: true })]);
    expect(await second.stop()).toBe(0);
    expect(await servesNats(project.data, server)).toBe(false);
  });

  itLong(
    'SIGHUP without a terminal does not end the daemon or its server, also if it arrives twice',
    async () => {
      const daemon = await project.up();
      const server = await project.natsServerProcess();
      daemon.signal('SIGHUP');
      daemon.signal('SIGHUP');
      await expect.poll(daemon.stderr).toMatch(/SIGHUP.*the configuration is unchanged/su);
      expect(await servesNats(project.data, server)).toBe(true);
      expect(await daemon.stop()).toBe(0);
      expect(await servesNats(project.data, server)).toBe(false);
    },
  );

  it.runIf(hasPython && hasLongTests)('closing the terminal ends daemon and server', async () => {
    const terminal = openTerminal([
      launcher,
      'up',
      '--config',
      project.config,
      '--data',
      project.data,
      '--http',
      'off',
    ]);
    project.defer(() => terminal.end());
    await expect.poll(terminal.screen).toContain('Ctrl-C stops it.');
    const server = await project.natsServerProcess();
    expect(await servesNats(project.data, server)).toBe(true);
    terminal.tell({ close: true });
    await expect.poll(terminal.screen).toContain('exit -1'); // by SIGHUP, after its shutdown
    expect(await servesNats(project.data, server)).toBe(false);
  });

  it.runIf(hasPython && hasLongTests)(
    'a chat posts pasted lines as one message, and resets the terminal',
    async () => {
      await project.up();
      const terminal = openTerminal([launcher, 'chat', 'demo', '--data', project.data]);
      project.defer(() => terminal.end());
      await expect.poll(terminal.screen).toContain('\u001b[?2004h');
      terminal.tell({ type: '\u001b[200~one\rtwo\rthree\u001b[201~' });
      await expect.poll(terminal.screen).toContain('3 lines pasted');
      terminal.tell({ type: '\r' });
      const posted = async () => (await project.parley('show', 'demo', '--json')).json() as Entry[];
      await expect
        .poll(async () => (await posted())[0])
        .toMatchObject({
          content: 'one\ntwo\nthree',
        });
      terminal.tell({ type: '\u0004' });
      await expect.poll(terminal.screen).toContain('exit 0');
      expect(terminal.screen().lastIndexOf('\u001b[?2004l')).toBeGreaterThan(
        terminal.screen().lastIndexOf('\u001b[?2004h'),
      );
      const messages = (await posted()).filter(
        (entry) => entry.type === 'message' && entry.author.kind === 'person',
      );
      expect(messages).toHaveLength(1);
    },
  );
});
