import { describe, expect, it } from 'vitest';
import { commandLine, withFlags } from '../../../src/cli/options/taken-options.ts';
import { ParleyError } from '../../../src/client/index.ts';
import { fakeDaemon, parley } from './support.ts';

const io = { invocation: 'parley' };

describe('a suggested command', () => {
  it('a suggested command has the flags that lead to the same daemon, quoted for a shell', () => {
    const options = { data: "/my data/it's", natsUser: 'bob', prefix: 'p', json: true, verbose: true };
    expect(commandLine(io, options, 'chat')).toBe(
      String.raw`parley chat --data '/my data/it'\''s' --nats-user bob --prefix p`,
    );
  });

  it('a suggested command contains no password, no token, and not the default `managed`', () => {
    const secret = {
      natsPassword: 'sesame',
      natsToken: 'sesame',
      nats: 'nats://u:sesame@h:1,nats://u:sesame@i:1',
    };
    expect(commandLine(io, secret, 'ls')).toBe('parley ls --nats nats://h:1,nats://i:1');
    const odd = { nats: 'nats://u:se,same@h:1, nats://u:sesa/me@i:1,tls://u:ses@me@j:1' };
    expect(commandLine(io, odd, 'ls')).toBe('parley ls --nats nats://h:1,nats://i:1,tls://j:1');
    expect(commandLine(io, { nats: 'managed' }, 'ls')).toBe('parley ls');
  });

  it('a suggested command has no flag that it would refuse', () => {
    const both = { data: 'd', nats: 'nats://h:1', prefix: 'p' };
    expect(commandLine(io, both, 'ls')).toBe('parley ls --nats nats://h:1 --prefix p');
    expect(commandLine(io, both, 'dead show 1')).toBe('parley dead show 1 --nats nats://h:1 --prefix p');
    expect(commandLine(io, both, 'up')).toBe('parley up --data d --nats nats://h:1');
    expect(commandLine(io, both, 'fsck')).toBe('parley fsck --data d');
    expect(commandLine(io, { ...both, nats: 'managed' }, 'ls')).toBe('parley ls --data d --prefix p');
  });

  it('a command in the text of a daemon is completed with the flags of this call', () => {
    const npm = { invocation: 'npm run --silent parley --' };
    expect(withFlags(npm, { data: 'd' }, 'see `parley ls`, or `parley show c`; parley is up')).toBe(
      'see `npm run --silent parley -- ls --data d`, or `npm run --silent parley -- show c --data d`; parley is up',
    );
  });
});

describe('commands with --data', () => {
  const env = { PARLEY_NATS_URL: '' };

  it.each([
    [['ls', '--data', '/a b'], "`parley up --data '/a b'`"],
    [['--data', '/a b', 'ls'], "`parley up --data '/a b'`"],
    [['chat', 'c', '--json', '--data', '/a b'], "`parley up --data '/a b'`"],
    [['resolve', 'x', '--data', '/a b'], "`parley resolve ID --rerun --data '/a b'`"],
    [['doctor', '--data', '/a b'], "`parley up --data '/a b'`"],
  ])('%j suggests the commands that work on a data directory', async (argv, wanted) => {
    const ran = await parley(argv, { env });
    const said = argv.includes('--json') ? JSON.stringify(ran.json()) : ran.err + ran.out;
    expect(said).toContain(wanted);
  });

  it('commands with --data complete the commands that a daemon suggests', async () => {
    const hint = 'post a message to begin one; `parley ls` lists the conversations';
    const daemon = fakeDaemon({ agents: new ParleyError('NOT_FOUND', 'there is none', { hint }) });
    const ran = await parley(['agents', '--nats', 'nats://h:1'], { daemon });
    expect(ran.err).toContain('`parley ls --nats nats://h:1` lists');
  });

  it('commands with --data complete the commands that answer an approval', async () => {
    const common = { conversation: 'demo', agent: 'dev', tool: 'shell', risk: 'risky', arguments: '{}' };
    const approvals = [
      { ...common, approvalId: 'a1', mayHaveRun: false },
      { ...common, approvalId: 'a2', mayHaveRun: true },
    ];
    const daemon = fakeDaemon({ approvals: { approvals } });
    const { out } = await parley(['approvals', '--nats', 'nats://h:1'], { daemon });
    expect(out).toContain(
      'parley approve a1 --nats nats://h:1   or   parley deny a1 --reason "…" --nats nats://h:1',
    );
    expect(out).toContain('--result JSON --nats nats://h:1');
  });
});
