import { describe, expect, it } from 'vitest';
import type { ToolRun } from '../../../../src/agents/tool-port.ts';
import { gate } from '../../../support/gate.ts';
import { callOf, type FakeServer, openSignal, ready, served, serverWith, toolOf } from './support.ts';

describe('a question of a server during a call (MCP-CONNECTION-3)', () => {
  it('a question of the server is put to a person, whose answer it gets', async () => {
    const { files, tools } = await served(toolOf('book'));
    const properties = { day: { type: 'string' as const } };
    const forms = [
      { message: 'Which day?', requestedSchema: { type: 'object' as const, properties } },
      { mode: 'url' as const, message: 'Sign in', url: 'https://example.com/sign', elicitationId: 'e1' },
    ];
    files.answer = async () => {
      const given: object[] = [];
      for (const form of forms) given.push(await files.newest.elicitInput(form));
      return { content: [{ type: 'text', text: JSON.stringify(given) }] };
    };
    const asked: object[] = [];
    const answers = [{ day: 'monday' }, {}, null, undefined];
    const ask: ToolRun['ask'] = async (asks) => {
      asked.push(asks);
      return answers.shift();
    };
    const run = () => tools.run({ ...callOf('mcp__files__book'), ask }, openSignal());
    expect(await run()).toEqual({
      kind: 'completed',
      content: '[{"action":"accept","content":{"day":"monday"}},{"action":"accept"}]',
    });
    expect(asked).toMatchObject([
      { server: 'files', message: 'Which day?', schema: { properties } },
      { server: 'files', message: 'Sign in', url: 'https://example.com/sign' },
    ]);
    expect(await run()).toEqual({ kind: 'completed', content: '[{"action":"decline"},{"action":"cancel"}]' });
  });

  it('a call may ask 20 questions; more are declined, and the agent reads it', async () => {
    const { files, tools } = await served(toolOf('book'));
    const form = { message: 'Again?', requestedSchema: { type: 'object' as const, properties: {} } };
    files.answer = async () => {
      const given: string[] = [];
      for (let n = 0; n < 22; n += 1) given.push((await files.newest.elicitInput(form)).action);
      return { content: [{ type: 'text', text: given.slice(18).join(' ') }] };
    };
    let asked = 0;
    const ask: ToolRun['ask'] = async () => {
      asked += 1;
      return {};
    };
    const run = () => tools.run({ ...callOf('mcp__files__book'), ask }, openSignal());
    expect(await run()).toMatchObject({
      content: expect.stringMatching(
        /^accept accept decline decline\n.*It was declined: it asked too often/s,
      ),
    });
    expect(asked).toBe(20);
    await run();
    expect(asked).toBe(40); // each call anew
  });

  it.each([
    [
      'a page that no browser opens',
      { mode: 'url', message: 'Open', url: 'file:///etc/passwd', elicitationId: 'e' },
    ],
    [
      'a form that is too large',
      { message: 'x'.repeat(20_000), requestedSchema: { type: 'object', properties: {} } },
    ],
  ])('%s is declined, and the agent reads it', async (_, form) => {
    const { files, tools } = await served(toolOf('book'));
    files.answer = async () => {
      const { action } = await files.newest.elicitInput(
        form as Parameters<FakeServer['newest']['elicitInput']>[0],
      );
      return { content: [{ type: 'text', text: action }] };
    };
    const ask = async () => expect.unreachable();
    const done = await tools.run({ ...callOf('mcp__files__book'), ask }, openSignal());
    expect(done).toMatchObject({
      content: expect.stringMatching(/^decline\n.*It was declined: it cannot be shown/s),
    });
  });

  it('a question while several calls run is declined: none says whose it is', async () => {
    const { files, tools } = await served(toolOf('book'));
    const { open: bothRun, passed: both } = gate();
    files.answer = async () => {
      if (files.calls.length === 2) bothRun();
      await both;
      const form = { message: 'Which?', requestedSchema: { type: 'object' as const, properties: {} } };
      return { content: [{ type: 'text', text: (await files.newest.elicitInput(form)).action }] };
    };
    const ask = async () => expect.unreachable();
    const run = () => tools.run({ ...callOf('mcp__files__book'), ask }, openSignal());
    const done = await Promise.all([run(), run()]);
    expect(JSON.stringify(done[0])).toContain('several calls of it ran');
  });

  it('the time of a call stops while a person is asked, and begins again with the answer', async () => {
    const files = serverWith(toolOf('book'));
    const { tools } = await ready({ files }, { callMs: 60, callInAllMs: 60 });
    const form = { message: 'Which?', requestedSchema: { type: 'object' as const, properties: {} } };
    files.answer = async ({ signal }) => {
      await files.newest.elicitInput(form);
      if (files.calls.length === 2) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return { content: [{ type: 'text', text: 'booked' }] };
    };
    const ask: ToolRun['ask'] = () => new Promise((resolve) => void setTimeout(resolve, 200, {}));
    const run = () => tools.run({ ...callOf('mcp__files__book'), ask }, openSignal());
    expect(await run()).toMatchObject({ kind: 'completed' });
    expect(await run()).toMatchObject({ kind: 'failed', code: 'TOOL_TIMEOUT' });
  });

  it.each([
    ['the first', [20, 300]],
    ['the last', [300, 20]],
  ])(
    'the time of a call that asks twice at once stops until both are answered, if %s comes first',
    async (_, waits) => {
      const files = serverWith(toolOf('book'));
      const { tools } = await ready({ files }, { callMs: 120, callInAllMs: 120 });
      const form = { message: 'Which?', requestedSchema: { type: 'object' as const, properties: {} } };
      files.answer = async () => {
        const given = await Promise.all(waits.map(() => files.newest.elicitInput(form)));
        return { content: [{ type: 'text', text: given.map(({ action }) => action).join(' ') }] };
      };
      const left = [...waits];
      const ask: ToolRun['ask'] = () => new Promise((resolve) => void setTimeout(resolve, left.shift(), {}));
      const run = () => tools.run({ ...callOf('mcp__files__book'), ask }, openSignal());
      expect(await run()).toEqual({ kind: 'completed', content: 'accept accept' });
    },
  );

  it('a server that waits no longer, and a call that ends, take the question back', async () => {
    const { files, tools } = await served(toolOf('book'));
    const form = { message: 'Which?', requestedSchema: { type: 'object' as const, properties: {} } };
    const ask: ToolRun['ask'] = (_, signal) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined)));
    files.answer = async () => {
      const gone = files.newest.elicitInput(form, { timeout: 30 }).catch(() => 'gave up');
      return { content: [{ type: 'text', text: String(await gone) }] };
    };
    const run = () => tools.run({ ...callOf('mcp__files__book'), ask }, openSignal());
    expect(await run()).toEqual({ kind: 'completed', content: 'gave up' });
    files.answer = () => {
      void files.newest.elicitInput(form).catch(() => undefined);
      return { content: [{ type: 'text', text: 'without an answer' }] };
    };
    expect(await run()).toEqual({ kind: 'completed', content: 'without an answer' });
  });
});
