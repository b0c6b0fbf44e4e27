import { expect, it } from 'vitest';
import { fakeDaemon, parley } from './support.ts';

/** A daemon whose team has an agent that is a program, and one that is not. */
async function join(name: string, ...args: readonly string[]) {
  const daemon = fakeDaemon({
    agents: {
      agents: [
        { slug: 'dev', runtime: 'bus' },
        { slug: 'pm', runtime: 'local' },
      ],
    },
  });
  const client = { ...daemon.client, agent: async () => ({ instance: 'one', stop: async () => {} }) };
  const onSignal = (handler: (signal: 'SIGINT') => void) => {
    const timer = setTimeout(() => handler('SIGINT'), 50);
    return () => clearTimeout(timer);
  };
  return parley(['join', name, '--command', 'agent', '--cwd', '.', ...args], {
    workingDirectory: import.meta.dirname,
    daemon: { ...daemon, client },
    io: { onSignal },
  });
}

it('join says when no turn can come: the team has no such agent, or it is no program', async () => {
  expect(await join('dev')).toMatchObject({ code: 0, err: '' });
  expect((await join('devv')).err).toMatch(/^the team has no agent devv, so no turn .*: dev\)\n$/);
  expect((await join('pm')).err).toMatch(/^pm has no runtime: bus, so no turn .*: dev\)\n$/);
});

it('join refuses a folder that does not exist', async () => {
  const { code, err } = await join('dev', '--cwd', 'no-such-folder');
  expect(code).toBe(2);
  expect(err).toMatch(/no-such-folder: it does not exist\n.*--cwd FOLDER/);
});
