import { describe, expect, it } from 'vitest';
import { permission, permitCall } from '../../../src/acp/agents/permission.ts';

type Call = Parameters<typeof permitCall>[0]['toolCall'];
const asked = (call: Partial<Call>) =>
  permitCall(
    { sessionId: 's', options: [], toolCall: { toolCallId: 't', title: 'T', ...call } },
    '/srv/shop',
  );
const diff = (path: string) => ({ type: 'diff' as const, path, newText: 'x' });

const edit = (call: Partial<Call>): Partial<Call> => ({ kind: 'edit', ...call });
const execute = (command: unknown, more: object = {}): Partial<Call> => ({
  kind: 'execute',
  rawInput: { command, ...more },
});
const PLACE = edit({ locations: [{ path: 'a' }] });

describe('a permission as a call of a tool', () => {
  it.each<[string, Partial<Call>, string, object]>([
    ['an edit', edit({ locations: [{ path: '/srv/shop/a.ts' }] }), 'permit_edit', { path: '/srv/shop/a.ts' }],
    ['a relative path', edit({ rawInput: { filePath: 'a.ts' } }), 'permit_edit', { path: '/srv/shop/a.ts' }],
    ['a path that leaves', edit({ rawInput: { path: 'x/../../b' } }), 'permit_edit', { path: '/srv/b' }],
    [
      'the same path twice',
      edit({ locations: [{ path: 'a' }], content: [diff('/srv/shop/a')] }),
      'permit_edit',
      { path: '/srv/shop/a' },
    ],
    ['a command', execute('npm test'), 'permit_execute', { command: 'npm test' }],
    [
      'a command in the folder of the agent',
      execute('npm test', { cwd: '/srv/shop/', workdir: '.', env: {} }),
      'permit_execute',
      { command: 'npm test' },
    ],
    ['a deletion', { ...PLACE, kind: 'delete' }, 'permit_edit', { path: '/srv/shop/a', kind: 'delete' }],
    ['a move', { ...PLACE, kind: 'move' }, 'permit_edit', { path: '/srv/shop/a', kind: 'move' }],
    ['a list as a command', execute(['npm', 'test']), 'permit_execute', { command: 'npm test' }],
    ['a fetch', { kind: 'fetch', rawInput: { url: 'http://x' } }, 'permit_other', { kind: 'fetch' }],
    ['nothing known', {}, 'permit_other', { kind: 'other' }],
  ])('%s is a call of the right tool', (_, call, name, given) => {
    expect(asked(call)).toMatchObject({ name, arguments: given });
  });

  const PASSWD = '/etc/passwd';
  it.each<[string, Partial<Call>]>([
    ['several places', edit({ locations: [{ path: 'a' }, { path: PASSWD }] })],
    ['a place and a difference of another file', { ...PLACE, content: [diff(PASSWD)] }],
    ['a place and other arguments', { ...PLACE, rawInput: { filePath: PASSWD } }],
    ['a list of paths', edit({ rawInput: { path: ['a', PASSWD] } })],
    ...['destination', 'newPath', 'to', 'target'].map((name): [string, Partial<Call>] => [
      `a move with ${name}`,
      { kind: 'move', rawInput: { path: 'a', [name]: '.git/hooks/pre-commit' } },
    ]),
    ['a command with arguments beside it', execute('git', { args: ['push'] })],
    ...['cwd', 'workdir'].map((name): [string, Partial<Call>] => [
      `a command with ${name}`,
      execute('npm test', { [name]: '/tmp/other' }),
    ]),
    ['a command in a folder that is no text', execute('npm test', { cwd: { path: '/tmp/other' } })],
    ['a command with variables', execute('npm test', { env: { NODE_OPTIONS: '--require /tmp/x.js' } })],
    ['a command with a list of variables', execute('npm test', { env: ['A=1'] })],
  ])('ACP-PERMISSION-1: no rule for one path or command decides about %s', (_, call) => {
    expect(asked(call).name).toBe('permit_other');
  });

  it('ACP-PERMISSION-2, ACP-PERMISSION-3: only this call is ever allowed', () => {
    const kinds = ['allow_always', 'allow_once', 'reject_once'] as const;
    const options = kinds.map((kind) => ({ optionId: kind, name: kind, kind }));
    expect(permission(options, true).outcome).toMatchObject({ optionId: 'allow_once' });
    expect(permission(options, false).outcome).toMatchObject({ optionId: 'reject_once' });
    expect(permission(options.slice(0, 1), true).outcome).toEqual({ outcome: 'cancelled' });
  });
});
