import { describe, expect, it } from 'vitest';
import { Updates } from '../../../src/acp/editors/updates.ts';
import type { Entry } from '../../../src/conversation/index.ts';

type Shown = ConstructorParameters<typeof Updates>[0];

describe('the plan of an editor', () => {
  it('nodes that run side by side are in progress together, and one that waits for the others is not', () => {
    const node = (name: string, to: string[]) => ({ node: name, agent: name, outcomes: { done: to } });
    const nodes = [
      node('plan', ['build', 'describe']),
      node('build', ['check']),
      node('describe', ['check']),
    ];
    const check = { ...node('check', ['end']), after: ['build', 'describe'] };
    const workflows = [{ id: 'site', start: 'plan', nodes: [...nodes, check] }];
    const updates = new Updates({ workflows } as unknown as Shown);
    const plan = (type: Entry['type'], more: object) =>
      [...updates.past({ type, workflowId: 'site', outcome: 'done', ...more } as unknown as Entry)].flatMap(
        (update) => ('entries' in update ? [update.entries.map(({ status }) => status).join(' ')] : []),
      );
    plan('run-started', {});
    expect(plan('node-entered', { node: 'plan', agent: 'plan' })).toEqual([
      'in_progress pending pending pending',
    ]);
    plan('node-entered', { node: 'build', to: ['build'], branch: 'build', from: 'plan' });
    expect(
      plan('node-entered', { node: 'describe', to: ['describe'], branch: 'describe', from: 'plan' }),
    ).toEqual(['completed in_progress in_progress pending']);
    expect(plan('node-entered', { node: 'check', branch: 'describe', from: 'describe' })).toEqual([
      'completed in_progress completed pending',
    ]);
    expect(plan('node-entered', { node: 'check', to: ['check'], from: 'build' })).toEqual([
      'completed completed completed in_progress',
    ]);
  });
});

describe('a call in an editor', () => {
  it('that a person approved with words and that failed is failed, without the difference', () => {
    const updates = new Updates({ workflows: [], cwd: '/p' } as unknown as Shown);
    const given = '{"path":"@project/a.md","content":"new"}';
    const asking = {
      ...{
        type: 'message',
        index: 1,
        id: 'e1',
        role: 'assistant',
        author: { kind: 'agent', id: 'pm' },
        content: '',
      },
      tool_calls: [{ id: 'c1_0', function: { name: 'fs_write', arguments: given } }],
    };
    const said = '[rita approved this call: "mind the end"]\n{"error":{"code":"DISK_FULL","message":"full"}}';
    const result = { type: 'message', role: 'tool', call: { index: 1, position: 0 }, content: said };
    const shown = [asking, result].flatMap((entry) => [...updates.past(entry as unknown as Entry)]);
    const [last] = shown.flatMap((update) => ('with' in update ? update.with([]) : []));
    expect(last).toMatchObject({
      status: 'failed',
      content: [{ type: 'content', content: { text: 'DISK_FULL: full' } }],
    });
  });
});
