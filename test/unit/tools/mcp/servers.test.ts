import { describe, expect, it } from 'vitest';
import { isOfServer, wireNames } from '../../../../src/tools/mcp/toolbox.ts';
import {
  callOf,
  FakeServer,
  openSignal,
  openTools,
  ready,
  served,
  serverWith,
  type TestTools,
  toolOf,
} from './support.ts';

const READS = { annotations: { readOnlyHint: true } };

const schema = (properties: object) => ({ inputSchema: { type: 'object', properties } });

describe('the tools of MCP servers', () => {
  it('listing tools starts the servers without waiting, and the tools appear when the servers are up (MCP-TOOLBOX-1)', async () => {
    const toolbox = openTools({ files: serverWith(toolOf('read')) });
    const { tools, until } = toolbox;
    expect(tools.status()).toEqual([{ server: 'files', state: 'connecting', tools: 0 }]);
    expect(tools.definitions().size).toBe(0);
    await until(() => tools.definitions().size === 1);
    expect(tools.status()).toEqual([{ server: 'files', state: 'ready', tools: 1 }]);
  });

  it('tools are risky whatever the server declares, unless the configuration trusts it (MCP-TOOLBOX-2)', async () => {
    const files = serverWith(toolOf('read', READS), toolOf('write'));
    const risks = ({ tools }: TestTools) => [...tools.definitions().values()].map(({ risk }) => risk);
    const distrusting = await ready({ files });
    expect(risks(distrusting)).toEqual(['risky', 'risky']);
    await distrusting.tools.close();
    const trusting = openTools({ files }, undefined, true);
    await trusting.tools.settled();
    expect(risks(trusting)).toEqual(['safe', 'risky']);
  });

  it('tools are listed with all that models need', async () => {
    const inputSchema = { type: 'object', properties: { path: { type: 'string' } } };
    const read = toolOf('read', { description: 'Reads.</s>', inputSchema, ...READS });
    const { tools } = await ready({ files: serverWith(read, toolOf('write')) });
    expect([...tools.definitions().values()]).toEqual([
      { name: 'mcp__files__read', description: 'Reads.<\\/s>', parameters: inputSchema, risk: 'risky' },
      {
        name: 'mcp__files__write',
        description: 'write, a tool of the server files.',
        parameters: { type: 'object', properties: {} },
        risk: 'risky',
      },
    ]);
  });

  it('tools are read from all pages of a list', async () => {
    const files = serverWith(toolOf('a'));
    files.furtherPages = [[toolOf('b')], [toolOf('c')]];
    const { tools } = await ready({ files });
    expect([...tools.definitions().keys()]).toEqual(['mcp__files__a', 'mcp__files__b', 'mcp__files__c']);
  });

  it('reading many pages causes no warning of Node about listeners', async () => {
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

  it('the list is cut after a hundred pages, and the log names the server', async () => {
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

  it('a server without tools contributes none', async () => {
    const files = new FakeServer();
    files.offersTools = false;
    const { tools } = await ready({ files });
    expect(tools.status()).toEqual([{ server: 'files', state: 'ready', tools: 0 }]);
  });

  it('an invalid tool is named in the log, and the other tools stay usable', async () => {
    const needsTask = toolOf('slow', { execution: { taskSupport: 'required' } });
    const { tools, said } = await ready({ files: serverWith(toolOf('a'), { name: 'bad' }, needsTask) });
    expect([...tools.definitions().keys()]).toEqual(['mcp__files__a']);
    const named = ['bad: it is no tool of the protocol', 'slow: it only runs as a task'];
    expect(said.map(({ fields }) => fields)).toContainEqual({ server: 'files', tools: named });
    expect(tools.status()).toEqual([{ server: 'files', state: 'ready', tools: 1, leftOut: named }]);
    expect(tools.servers()).toMatchObject([{ tools: ['mcp__files__a'], leftOut: named }]);
  });

  const ENDLESS = JSON.parse(`${'{"not":'.repeat(100)}{}${'}'.repeat(100)}`);
  const nested = (properties: unknown) => schema({ a: { type: 'object', properties } });
  it.each<[string, object, RegExp]>([
    [
      'a type that does not exist',
      schema({ a: { type: 'int' } }),
      /its schema is invalid: .*a\/type must be/,
    ],
    ['a nested type that does not exist', nested({ b: { type: 'any' } }), /b\/type/],
    ['properties that are a list', nested([]), /properties must be object/],
    ['required as a word', schema({ a: { type: 'string', required: true } }), /required must be array/],
    ['a reference to nothing', schema({ a: { $ref: '#/$defs/none' } }), /refers to "#\/\$defs\/none"/],
    ['a reference to another document', schema({ a: { $ref: 'https://a.test/b' } }), /refers to "https/],
    ['half a character in a text', { description: 'a\ud83d' }, /half a character/],
    ['half a character in a schema', schema({ a: { enum: ['\udc4d'] } }), /half a character/],
    ['half a character in a key', schema({ 'a\ud83d': {} }), /half a character/],
    ['a schema without end', schema({ a: ENDLESS }), /deeper than/],
  ])(
    'a tool with %s is left out and named: providers would refuse every request that offers it',
    async (_, more, why) => {
      const { files, tools, until } = await served(toolOf('a'), toolOf('bad', more));
      expect([...tools.definitions().keys()]).toEqual(['mcp__files__a']);
      expect(tools.status()[0]?.leftOut).toEqual([expect.stringMatching(why)]);
      files.tools = [toolOf('a'), toolOf('bad')];
      await files.newest.sendToolListChanged();
      await until(() => tools.definitions().has('mcp__files__bad'));
      expect(tools.status()[0]).not.toHaveProperty('leftOut');
    },
  );

  it('an unusual tool that is right is offered in the form that strict providers read', async () => {
    const inputSchema = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: {
        list: { type: 'array' },
        pair: {
          type: ['array', 'null'],
          items: [{ type: 'string' }, { type: 'array' }],
          additionalItems: false,
        },
        items: { type: 'array', items: { $ref: '#/definitions/a~1b%20c' }, default: { type: 'array' } },
      },
      anyOf: [
        { required: ['list'] },
        { properties: { more: { type: 'string' }, list: {} }, required: ['more'] },
      ],
      definitions: { 'a/b c': { type: 'array' } },
    };
    const description = `${'a'.repeat(7_999)}👍👍`;
    const { tools } = await ready({ files: serverWith(toolOf('odd', { inputSchema, description })) });
    const [defined] = tools.definitions().values();
    expect(defined?.description).toBe(`${'a'.repeat(7_999)}…`);
    expect(defined?.parameters).toEqual({
      type: 'object',
      properties: {
        list: { type: 'array', items: {} },
        pair: {
          type: ['array', 'null'],
          prefixItems: [{ type: 'string' }, { type: 'array', items: {} }],
          items: false,
        },
        items: { type: 'array', items: { $ref: '#/definitions/a~1b%20c' }, default: { type: 'array' } },
        more: { type: 'string' },
      },
      definitions: { 'a/b c': { type: 'array', items: {} } },
    });
    expect(tools.check('mcp__files__odd', { pair: ['x'] })).toContain('must');
    expect(tools.check('mcp__files__odd', { list: [] })).toBeNull();
  });

  it('a call goes to its own server when two servers offer the same tool', async () => {
    const one = serverWith(toolOf('read'));
    const other = serverWith(toolOf('read'));
    const { tools } = await ready({ one, other });
    await tools.run(callOf('mcp__other__read'), openSignal());
    expect([one.calls.length, other.calls.length]).toEqual([0, 1]);
  });

  it('the tools follow a list that changes', async () => {
    const { files, tools, until } = await served(toolOf('a'));
    files.tools = [toolOf('b'), toolOf('c')];
    await files.newest.sendToolListChanged();
    await until(() => tools.definitions().has('mcp__files__c'));
    expect(tools.definitions().has('mcp__files__a')).toBe(false);
  });

  it('arguments are checked by the schema that the server gave', async () => {
    const inputSchema = { type: 'object', properties: { n: { type: 'number' } } };
    const { files, tools } = await served(toolOf('a', { inputSchema }));
    expect(tools.check('mcp__files__a', { n: 1 })).toBeNull();
    expect(tools.check('mcp__files__a', { n: 'x' })).toContain('must be number');
    expect(tools.check('mcp__files__other', {})).toContain('no tool');
    const outcome = await tools.run(callOf('mcp__files__a', { n: 'x' }), openSignal());
    expect(outcome).toMatchObject({ kind: 'failed', code: 'INVALID_ARGUMENTS' });
    expect(files.calls).toEqual([]);
  });
});

describe('a call of an MCP tool', () => {
  it('a call carries its key and returns the text of the result', async () => {
    const { files, tools } = await served(toolOf('a'));
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

  it('a call fails with the text of the tool, or reports that there was none', async () => {
    const { files, tools } = await served(toolOf('a'));
    files.answer = () => ({ isError: true, content: [{ type: 'text', text: 'no such file' }] });
    const call = () => tools.run(callOf('mcp__files__a'), openSignal());
    expect(await call()).toEqual({ kind: 'failed', code: 'TOOL_FAILED', message: 'no such file' });
    files.answer = () => ({ isError: true, content: [] });
    expect(await call()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('did not say why'),
    });
  });

  it('a call fails when the server refuses it', async () => {
    const { files, tools } = await served(toolOf('a'));
    files.answer = () => {
      throw new Error('not today');
    };
    const call = () => tools.run(callOf('mcp__files__a'), openSignal());
    expect(await call()).toMatchObject({
      code: 'TOOL_FAILED',
      message: 'not today',
    });
  });

  it('a result that does not match the output schema of the tool is kept (MCP-CONNECTION-1)', async () => {
    const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const { tools } = await ready({ files: serverWith(toolOf('a', { outputSchema })) });
    expect(await tools.run(callOf('mcp__files__a'), openSignal())).toEqual({
      kind: 'completed',
      content: 'done',
    });
  });

  it('a question of the server is declined, and the result of the call contains it (MCP-CONNECTION-3)', async () => {
    const files = serverWith(toolOf('book'));
    const asking = async () => {
      const properties = { day: { type: 'string' as const } };
      return files.newest.elicitInput({
        message: 'Which\nday?',
        requestedSchema: { type: 'object', properties },
      });
    };
    const { tools } = await ready({ files });
    files.answer = async () => ({ content: [{ type: 'text', text: (await asking()).action }] });
    const done = await tools.run(callOf('mcp__files__book'), openSignal());
    expect(done).toMatchObject({
      kind: 'completed',
      content: expect.stringMatching(
        /^decline\n\[during this call the server asked: Which\\nday\? \(day\)\. It was declined: a call cannot wait here/,
      ),
    });
    files.answer = async () => {
      for (let at = 0; at < 9; at += 1) await asking();
      throw new Error('no day');
    };
    const refused = await tools.run(callOf('mcp__files__book'), openSignal());
    expect(refused).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('no day\n[during this call'),
    });
    expect(JSON.stringify(refused).split('Which').length - 1).toBe(5);
    files.answer = () => ({ content: [{ type: 'text', text: 'quiet' }] });
    expect(await tools.run(callOf('mcp__files__book'), openSignal())).toEqual({
      kind: 'completed',
      content: 'quiet',
    });
  });

  it('a call passes on what its tool reports, in one line of limited length', async () => {
    const { files, tools } = await served(toolOf('a'));
    files.answer = async ({ meta }) => {
      const { progressToken } = meta as { progressToken: string };
      for (const more of [{ total: 3, message: `a\nb${'x'.repeat(400)}` }, { progress: 2 }])
        await files.newest.notification({
          method: 'notifications/progress',
          params: { progressToken, progress: 1, ...more },
        });
      return { content: [] };
    };
    const reports: string[] = [];
    const onProgress = (text: string) => void reports.push(text);
    await tools.run({ ...callOf('mcp__files__a'), onProgress }, openSignal());
    expect(reports).toEqual([expect.stringMatching(/^1 of 3: a\\nbx{280,}$/), '2']);
    expect(reports[0]?.length).toBeLessThanOrEqual(301);
  });

  it('a call ends with its signal, and the server is notified', async () => {
    const { files, tools } = await served(toolOf('a'));
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

  it('a call whose signal is already aborted does not begin', async () => {
    const { files, tools } = await served(toolOf('a'));
    expect(await tools.run(callOf('mcp__files__a'), AbortSignal.abort())).toEqual({ kind: 'aborted' });
    expect(files.calls).toEqual([]);
  });

  it('a call without an answer ends at its timeout with an unknown outcome', async () => {
    const files = serverWith(toolOf('a'));
    const toolbox = openTools({ files }, { callMs: 5 });
    await toolbox.tools.settled();
    files.answer = () => new Promise(() => undefined);
    const outcome = await toolbox.tools.run(callOf('mcp__files__a'), openSignal());
    expect(outcome).toMatchObject({ code: 'TOOL_TIMEOUT', message: expect.stringContaining('not known') });
  });

  it('a call of an unknown tool fails', async () => {
    const { tools } = await ready({ files: serverWith() });
    const outcome = await tools.run(callOf('mcp__files__a'), openSignal());
    expect(outcome).toMatchObject({ kind: 'failed', code: 'TOOL_NOT_AVAILABLE' });
  });
});

function namesOf(...places: [server: string, tool: string][]): string[] {
  return [...wireNames(places.map(([server, tool]) => ({ server, tool }))).keys()];
}

describe('the names of MCP tools', () => {
  it('a tool name consists of the server name and the name of the tool', () => {
    expect(namesOf(['files', 'read_file'])).toEqual(['mcp__files__read_file']);
  });

  it('a tool name is a valid function name, whatever the server calls the tool (NAMES-1)', () => {
    for (const tool of ['a.b/c d', 'café', '😀', 'x'.repeat(200), '']) {
      expect(namesOf(['files', tool])[0]).toMatch(/^mcp__files__[A-Za-z0-9_-]{0,52}$/);
    }
    expect(namesOf(['files', 'a.b'])).toEqual(['mcp__files__a_b']);
  });

  it('two long names that begin alike stay distinct', () => {
    const [one, other] = namesOf(['s', `${'x'.repeat(80)}1`], ['s', `${'x'.repeat(80)}2`]);
    expect(one).toHaveLength(64);
    expect(other).toHaveLength(64);
    expect(one).not.toBe(other);
  });

  it('the same tool of two servers has two names', () => {
    expect(namesOf(['a', 'read'], ['b', 'read'])).toEqual(['mcp__a__read', 'mcp__b__read']);
  });

  it('two tools whose names collide both lose the plain name (NAMES-3), in any order (NAMES-2)', () => {
    const names = namesOf(['s', 'a.b'], ['s', 'a_b']);
    expect(names).toHaveLength(2);
    for (const name of names) expect(name).toMatch(/^mcp__s__a_b_[0-9a-f]{8}$/);
    const one = { server: 's', tool: 'a.b' };
    const other = { server: 's', tool: 'a_b' };
    expect([...wireNames([one, other])]).toEqual([...wireNames([other, one])]);
  });

  it('a plain name that equals the marked name of another tool is given to neither (NAMES-4), in any order', () => {
    const [marked = ''] = namesOf(['s', 'a.b'], ['s', 'a_b']);
    const thief = { server: 's', tool: marked.slice('mcp__s__'.length) };
    const alike = [
      { server: 's', tool: 'a.b' },
      { server: 's', tool: 'a_b' },
    ];
    const names = wireNames([...alike, thief]);
    expect([...names.keys()]).toHaveLength(1);
    expect(names.has(marked)).toBe(false);
    expect([...names.values()]).not.toContain(thief);
    expect([...wireNames([thief, ...alike])]).toEqual([...names]);
  });

  it('tool names of different servers never collide, whatever the servers call their tools', () => {
    const servers = ['a', 'a_b', 'a-b', 'b', 'x'.repeat(48), `${'x'.repeat(47)}y`];
    const tools = ['c', '_c', '__c', 'b__c', '_b__c', 'mcp__b__c', 'x'.repeat(90), '.'.repeat(90)];
    const places = servers.flatMap((server) => tools.map((tool) => ({ server, tool })));
    for (const [name, { server }] of wireNames(places))
      expect(servers.filter((one) => isOfServer(name, one))).toEqual([server]);
    expect(wireNames(places).size).toBe(places.length);
  });

  it('a tool name tells which server the tool belongs to', () => {
    expect(isOfServer('mcp__files__read', 'files')).toBe(true);
    expect(isOfServer('mcp__files2__read', 'files')).toBe(false);
  });
});
