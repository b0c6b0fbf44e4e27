import { describe, expect, it } from 'vitest';
import { permission, permitCall } from '../../../src/acp/agents/permission.ts';

type Call = Parameters<typeof permitCall>[0]['toolCall'];
const asked = (call: Partial<Call>) =>
  permitCall(
    { sessionId: 's', options: [], toolCall: { toolCallId: 't', title: 'T', ...call } },
    '/srv/shop',
  );
const diff = (path: string) => ({ type: 'diff' as const, path, newText: 'x' });

describe('a permission as a call of a tool', () => {
  it.each<[string, Partial<Call>, string, object]>([
    [
      'an edit',
      { kind: 'edit', locations: [{ path: '/srv/shop/a.ts' }] },
      'permit_edit',
      { path: '/srv/shop/a.ts' },
    ],
    [
      'a relative path',
      { kind: 'edit', rawInput: { filePath: 'a.ts' } },
      'permit_edit',
      { path: '/srv/shop/a.ts' },
    ],
    [
      'a path that leaves',
      { kind: 'edit', rawInput: { path: 'x/../../b' } },
      'permit_edit',
      { path: '/srv/b' },
    ],
    [
      'the same path twice',
      { kind: 'edit', locations: [{ path: 'a' }], content: [diff('/srv/shop/a')] },
      'permit_edit',
      { path: '/srv/shop/a' },
    ],
    [
      'a command',
      { kind: 'execute', rawInput: { command: 'npm test' } },
      'permit_execute',
      { command: 'npm test' },
    ],
    [
      'a list as a command',
      { kind: 'execute', rawInput: { command: ['npm', 'test'] } },
      'permit_execute',
      { command: 'npm test' },
    ],
    ['a fetch', { kind: 'fetch', rawInput: { url: 'http://x' } }, 'permit_other', { kind: 'fetch' }],
    ['nothing known', {}, 'permit_other', { kind: 'other' }],
  ])('%s', (_, call, name, given) => {
    expect(asked(call)).toMatchObject({ name, arguments: given });
  });

  it.each<[string, Partial<Call>]>([
    ['several places', { kind: 'edit', locations: [{ path: 'a' }, { path: '/etc/passwd' }] }],
    [
      'a place and a difference of another file',
      { kind: 'edit', locations: [{ path: 'a' }], content: [diff('/etc/passwd')] },
    ],
    [
      'a place and other arguments',
      { kind: 'edit', locations: [{ path: 'a' }], rawInput: { filePath: '/etc/passwd' } },
    ],
    ['a command with arguments beside it', { kind: 'execute', rawInput: { command: 'git', args: ['push'] } }],
  ])('ACP-PERMISSION-1: no rule for one path or command decides about %s', (_, call) => {
    expect(asked(call).name).toBe('permit_other');
  });

  it('ACP-PERMISSION-2, ACP-PERMISSION-3: only this call is ever allowed', () => {
    const options = (['allow_always', 'allow_once', 'reject_once'] as const).map((kind) => ({
      optionId: kind,
      name: kind,
      kind,
    }));
    expect(permission(options, true).outcome).toMatchObject({ optionId: 'allow_once' });
    expect(permission(options, false).outcome).toMatchObject({ optionId: 'reject_once' });
    expect(permission(options.slice(0, 1), true).outcome).toEqual({ outcome: 'cancelled' });
  });
});
