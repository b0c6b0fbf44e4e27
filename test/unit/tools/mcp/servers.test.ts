import { afterEach, describe, expect, it } from 'vitest';
import { callOf, FakeServer, openSignal, type Rig, rigOf, toolOf } from './support.ts';

let rig: Rig | null = null;

afterEach(async () => {
  await rig?.tools.close();
  rig = null;
});

async function ready(servers: Readonly<Record<string, FakeServer>>): Promise<Rig> {
  rig = rigOf(servers);
  await rig.tools.settled();
  return rig;
}

function serverWith(...tools: object[]): FakeServer {
  const server = new FakeServer();
  server.tools = tools;
  return server;
}

const READS = { annotations: { readOnlyHint: true } };

describe('the tools of servers', () => {
  it('come when the servers are up; asking for them starts those and does not wait (MCP-TOOLBOX-1)', async () => {
    rig = rigOf({ files: serverWith(toolOf('read')) });
    const { tools, until } = rig;
    expect(tools.status()).toEqual([{ server: 'files', state: 'connecting', tools: 0 }]);
    expect(tools.definitions().size).toBe(0);
    await until(() => tools.definitions().size === 1);
    expect(tools.status()).toEqual([{ server: 'files', state: 'ready', tools: 1 }]);
  });

  it('are risky whatever the server says of them, unless it is trusted with that (MCP-TOOLBOX-2)', async () => {
    const files = serverWith(toolOf('read', READS), toolOf('write'));
    const risks = () => [...(rig?.tools.definitions().values() ?? [])].map(({ risk }) => risk);
    await ready({ files });
    expect(risks()).toEqual(['risky', 'risky']);
    await rig?.tools.close();
    rig = rigOf({ files }, undefined, true);
    await rig.tools.settled();
    expect(risks()).toEqual(['safe', 'risky']);
  });

  it('are shown with what models need', async () => {
    const inputSchema = { type: 'object', properties: { path: { type: 'string' } } };
    const read = toolOf('read', { description: 'Reads.', inputSchema, ...READS });
    const { tools } = await ready({ files: serverWith(read, toolOf('write')) });
    expect([...tools.definitions().values()]).toEqual([
      { name: 'mcp__files__read', description: 'Reads.', parameters: inputSchema, risk: 'risky' },
      {
        name: 'mcp__files__write',
        description: 'write, a tool of the server files.',
        parameters: { type: 'object', properties: {} },
        risk: 'risky',
      },
    ]);
  });

  it('are read from all pages', async () => {
    const files = serverWith(toolOf('a'));
    files.furtherPages = [[toolOf('b')], [toolOf('c')]];
    const { tools } = await ready({ files });
    expect([...tools.definitions().keys()]).toEqual(['mcp__files__a', 'mcp__files__b', 'mcp__files__c']);
  });

  it('are read from many pages without a warning of Node about listeners', async () => {
    const warnings: Error[] = [];
    const keep = (warning: Error) => void warnings.push(warning);
    process.on('warning', keep);
    const files = serverWith(toolOf('a'));
    files.furtherPages = Array.from({ length: 30 }, (_, page) => [toolOf(`t${page}`)]);
    const { tools, said } = await ready({ files });
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', keep);
    expect(tools.definitions().size).toBe(31);
    expect(warnings.map(({ name }) => name)).not.toContain('MaxListenersExceededWarning');
    expect(said.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('are cut after a hundred pages, and the log says of which server', async () => {
    const files = serverWith(toolOf('a'));
    files.furtherPages = Array.from({ length: 120 }, (_, page) => [toolOf(`t${page}`)]);
    const { tools, said } = await ready({ files });
    expect(tools.definitions().size).toBe(100);
    expect(said).toContainEqual({
      level: 'warn',
      fields: { server: 'files', pages: 100, tools: 100 },
      message: 'the list of tools of an MCP server does not end: the rest is left out',
    });
  });

  it('are none when a server has none', async () => {
    const files = new FakeServer();
    files.offersTools = false;
    const { tools } = await ready({ files });
    expect(tools.status()).toEqual([{ server: 'files', state: 'ready', tools: 0 }]);
  });

  it('are usable though one of them is odd, and that one is named', async () => {
    const needsTask = toolOf('slow', { execution: { taskSupport: 'required' } });
    const { tools, said } = await ready({ files: serverWith(toolOf('a'), { name: 'bad' }, needsTask) });
    expect([...tools.definitions().keys()]).toEqual(['mcp__files__a']);
    expect(said.map(({ fields }) => fields)).toContainEqual({ server: 'files', tools: ['bad', 'slow'] });
  });

  it('go to the server that offers them when two offer the same', async () => {
    const one = serverWith(toolOf('read'));
    const other = serverWith(toolOf('read'));
    const { tools } = await ready({ one, other });
    await tools.run(callOf('mcp__other__read'), openSignal());
    expect([one.calls.length, other.calls.length]).toEqual([0, 1]);
  });

  it('follow the list when it changes', async () => {
    const files = serverWith(toolOf('a'));
    const { tools, until } = await ready({ files });
    files.tools = [toolOf('b'), toolOf('c')];
    await files.newest.sendToolListChanged();
    await until(() => tools.definitions().has('mcp__files__c'));
    expect(tools.definitions().has('mcp__files__a')).toBe(false);
  });

  it('are checked by the schema that the server gave', async () => {
    const inputSchema = { type: 'object', properties: { n: { type: 'number' } } };
    const files = serverWith(toolOf('a', { inputSchema }));
    const { tools } = await ready({ files });
    expect(tools.check('mcp__files__a', { n: 1 })).toBeNull();
    expect(tools.check('mcp__files__a', { n: 'x' })).toContain('must be number');
    expect(tools.check('mcp__files__other', {})).toContain('no tool');
    const outcome = await tools.run(callOf('mcp__files__a', { n: 'x' }), openSignal());
    expect(outcome).toMatchObject({ kind: 'failed', code: 'INVALID_ARGUMENTS' });
    expect(files.calls).toEqual([]);
  });
});

describe('a call', () => {
  it('gives the text of the result, and carries the key of the call', async () => {
    const files = serverWith(toolOf('a'));
    const { tools } = await ready({ files });
    expect(await tools.run(callOf('mcp__files__a', { n: 1 }), openSignal())).toEqual({
      kind: 'completed',
      content: 'done',
    });
    expect(files.calls[0]).toMatchObject({
      name: 'a',
      arguments: { n: 1 },
      meta: { 'parley/idempotency-key': 'c1/9/0' },
    });
  });

  it('fails with the words of the tool, or says that there were none', async () => {
    const files = serverWith(toolOf('a'));
    const { tools } = await ready({ files });
    files.answer = () => ({ isError: true, content: [{ type: 'text', text: 'no such file' }] });
    const call = () => tools.run(callOf('mcp__files__a'), openSignal());
    expect(await call()).toEqual({ kind: 'failed', code: 'TOOL_FAILED', message: 'no such file' });
    files.answer = () => ({ isError: true, content: [] });
    expect(await call()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('did not say why'),
    });
  });

  it('fails when the server refuses it', async () => {
    const files = serverWith(toolOf('a'));
    const { tools } = await ready({ files });
    files.answer = () => {
      throw new Error('not today');
    };
    const call = () => tools.run(callOf('mcp__files__a'), openSignal());
    expect(await call()).toMatchObject({
      code: 'TOOL_FAILED',
      message: 'not today',
    });
  });

  it('keeps its result when that does not match the schema the tool gave for it (MCP-CONNECTION-1)', async () => {
    const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const { tools } = await ready({ files: serverWith(toolOf('a', { outputSchema })) });
    expect(await tools.run(callOf('mcp__files__a'), openSignal())).toEqual({
      kind: 'completed',
      content: 'done',
    });
  });

  it('ends with its signal, and the server is told', async () => {
    const files = serverWith(toolOf('a'));
    const { tools } = await ready({ files });
    const cancelled = new Promise<void>((resolve) => {
      files.answer = ({ signal }) => {
        signal.addEventListener('abort', () => resolve());
        controller.abort();
        return new Promise(() => undefined);
      };
    });
    const controller = new AbortController();
    const outcome = await tools.run(callOf('mcp__files__a'), controller.signal);
    expect(outcome).toEqual({ kind: 'aborted' });
    await cancelled;
  });

  it('does not begin when its signal has aborted', async () => {
    const files = serverWith(toolOf('a'));
    const { tools } = await ready({ files });
    expect(await tools.run(callOf('mcp__files__a'), AbortSignal.abort())).toEqual({ kind: 'aborted' });
    expect(files.calls).toEqual([]);
  });

  it('ends when the server says nothing for too long, and what happened is said to be unknown', async () => {
    const files = serverWith(toolOf('a'));
    rig = rigOf({ files }, { callMs: 5 });
    await rig.tools.settled();
    files.answer = () => new Promise(() => undefined);
    const outcome = await rig.tools.run(callOf('mcp__files__a'), openSignal());
    expect(outcome).toMatchObject({ code: 'TOOL_TIMEOUT', message: expect.stringContaining('not known') });
  });

  it('of a tool that nobody offers fails', async () => {
    const { tools } = await ready({ files: serverWith() });
    const outcome = await tools.run(callOf('mcp__files__a'), openSignal());
    expect(outcome).toMatchObject({ kind: 'failed', code: 'TOOL_NOT_AVAILABLE' });
  });
});
