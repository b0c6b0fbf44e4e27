import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { launcher, strangersEnvironment } from '../support/cli.ts';
import { itLong } from '../support/long.ts';
import { type ProtectedMcp, startProtectedMcp } from '../support/mcp-oauth.ts';
import { openProject, type Project, scriptedSettings } from '../support/project.ts';

describe('parley mcp login', () => {
  let server: ProtectedMcp;
  let project: Project;

  beforeEach(async () => {
    server = await startProtectedMcp();
    project = await openProject({
      settings: scriptedSettings({ tools: { mcpServers: { web: { url: server.mcp.url } } } }),
      agents: { lead: '---\nname: Lead\n---\nYou lead.' },
      script: [{ reply: { text: 'Fine.' } }],
    });
  });
  afterEach(async () => {
    await project.close();
    await server.close();
  });

  async function login() {
    const args = ['mcp', 'login', 'web', '--config', project.config, '--data', project.data];
    const child = spawn(process.execPath, [launcher, ...args], {
      cwd: project.root,
      env: strangersEnvironment(),
    });
    const lines = createInterface(child.stderr);
    for await (const line of lines)
      if (line.startsWith('http')) {
        await server.browse(line);
        break;
      }
    return child.exitCode ?? new Promise((resolve) => child.once('close', resolve));
  }

  itLong(
    'a running daemon says that a server needs a login, uses one at once, and none after a logout',
    async () => {
      const daemon = await project.up();
      const doctor = async () => (await project.parley('doctor', '--config', project.config)).stdout;
      expect(await doctor()).toContain('parley mcp login web');
      expect((await project.parley('status')).stdout).toContain('needs login');
      expect(await login()).toBe(0);
      await expect.poll(doctor).toContain('connected with 4 tools');
      const out = await project.parley('mcp', 'logout', 'web', '--config', project.config);
      expect([out.code, out.stdout]).toEqual([0, 'logged out of web\n']);
      const again = await project.parley('mcp', 'logout', 'web', '--config', project.config);
      expect(again.stdout).toBe('there was no login at web\n');
      const said = [daemon.stderr(), out.stderr].join('');
      for (const token of server.valid) expect(said).not.toContain(token);
    },
  );

  it('an unknown server, a program and a wrong port are refused', async () => {
    const unknown = await project.parley('mcp', 'login', 'wep', '--config', project.config);
    expect(unknown.stderr).toContain('did you mean web?');
    const port = await project.parley('mcp', 'login', 'web', '--port', '0');
    expect([port.code, port.stderr]).toEqual([2, expect.stringContaining('expected a port')]);
    expect(await readFile(join(project.data, 'mcp-logins', 'key'), 'utf8').catch(() => null)).toBeNull();
  });
});
