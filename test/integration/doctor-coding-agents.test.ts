import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { diagnose } from '../../src/acp/index.ts';
import { newFolder } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { openProject, type Project } from '../support/project.ts';

const PROGRAM = join(import.meta.dirname, '../support/acp/agent.mjs');
const KEY = 'key-4711-of-the-agent';
let project: Project | undefined;
afterEach(async () => {
  await project?.close();
  project = undefined;
});

function agentFile(command: readonly string[], state: string): string {
  const env = { ACP_STATE: state, ACP_KEY: KEY };
  return `---\nruntime: acp\ncommand: ${JSON.stringify(command)}\nenv: ${JSON.stringify(env)}\n---\nCode.`;
}

async function checksOf(...flags: readonly string[]) {
  const state = await newFolder();
  const file = (...more: readonly string[]) => agentFile([process.execPath, PROGRAM, ...more], state);
  project = await openProject({
    settings: { models: { default: { provider: 'scripted', script: 'script.yaml' } } },
    agents: {
      fine: file('--resume'),
      loud: file('--banner', '--no-http', '--no-load'),
      old: file('--version', '7'),
      guest: file('--no-auth'),
      gone: file('--crash'),
      missing: agentFile(['no-such-agent'], state),
    },
    files: { 'script.yaml': { rules: [{ reply: { text: 'x' } }] } },
  });
  const ran = await project.parley('doctor', '--config', project.config, '--json', ...flags);
  expect(ran.stdout + ran.stderr).not.toContain(KEY);
  expect(ran.code).toBe(1);
  const checks = new Map(ran.json().map((check) => [check.name, check]));
  return (slug: string) => checks.get(`agent ${slug} (runtime: acp)`);
}

describe('doctor and coding agents', () => {
  itLong(
    '`doctor --probe` starts each one, and says what it is and can, or why it does not work',
    async () => {
      const check = await checksOf('--probe');
      expect(check('fine')).toMatchObject({
        status: 'ok',
        message: expect.stringMatching(
          /^started in \d+ ms: test-agent 1\.2\.3, protocol 1, resumes sessions, takes no pictures, takes MCP over HTTP, signed in or without a sign-in$/,
        ),
      });
      expect(check('loud')).toMatchObject({
        status: 'warn',
        message: expect.stringMatching(
          /a restart begins a new session, .* takes no MCP over HTTP; it prints other lines .*Welcome/,
        ),
        fix: expect.stringContaining('standard error'),
      });
      expect(check('old')).toMatchObject({
        status: 'fail',
        message: expect.stringContaining('it speaks version 7 of the protocol, and Parley speaks version 1'),
        fix: expect.stringContaining('install a release of the agent that speaks this version'),
      });
      expect(check('guest')).toMatchObject({
        status: 'fail',
        message: expect.stringMatching(/test-agent 1\.2\.3.*is not signed in$/),
        fix: expect.stringContaining('Sign in with the browser'),
      });
      expect(check('gone')).toMatchObject({
        status: 'fail',
        message: expect.stringContaining('[secret] is wrong'),
      });
      expect(check('missing')).toMatchObject({
        status: 'fail',
        message: expect.stringContaining('there is no program no-such-agent'),
        fix: expect.stringContaining('install it'),
      });
    },
    60_000,
  );

  it('`doctor` alone starts none, and fails for a program that is missing', async () => {
    const check = await checksOf();
    expect(check('old')).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('not started: `parley doctor --probe` starts it'),
    });
    expect(check('missing')).toMatchObject({
      status: 'fail',
      message: 'program no-such-agent was not found',
      fix: expect.stringContaining('agents/missing.md'),
    });
  }, 60_000);

  itLong('an agent that answers nothing is ended in time, before and after it says what it is', async () => {
    const folder = await newFolder();
    const env = { PATH: process.env.PATH ?? '', ACP_STATE: folder };
    const command = (flag: string) => ({
      command: [process.execPath, PROGRAM, flag],
      directory: folder,
      env,
    });
    await expect(diagnose(command('--mute'), 500)).rejects.toMatchObject({
      code: 'ACP_NOT_STARTED',
      message: expect.stringContaining('it did not answer within 0.5 s'),
    });
    const { about, fault } = await diagnose(command('--no-session'), 1_000);
    expect(about).toContain('test-agent 1.2.3');
    expect(fault).toMatchObject({ code: 'ACP_SILENT', message: 'it began no session within 1 s' });
  });
});
