import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Toolbox } from '../../../src/agents/index.ts';
import { loadConfig } from '../../../src/config/index.ts';
import { probe } from '../../../src/daemon/compose/probe.ts';
import { TeamTools } from '../../../src/daemon/compose/tools.ts';
import { changedSettings } from '../../../src/daemon/reload/reloader.ts';
import {
  createMemoryDisk,
  createMemoryStore,
  type MemoryDisk,
} from '../../../src/persistence/memory/index.ts';
import {
  expectToolCall,
  expectTurn,
  type ModelFunction,
  type TestTeam,
  tool,
} from '../../../src/testing/index.ts';
import { NO_CONVERSATIONS } from '../../../src/tools/builtin/tool.ts';
import { newFolder } from '../../support/lifetime.ts';
import { agentFile, start } from './support.ts';

/** Calls one tool, then repeats its result. */
const calls =
  (name: string, given: Record<string, unknown> = {}): ModelFunction =>
  ({ tool, last }) =>
    tool === name ? `Result: ${last}` : [{ name, arguments: given }];

const AGENT = {
  'agents/front.md': agentFile('Front', ['mail', 'lookup', 'fs_write', 'shell', 'mcp__crm__*']),
};
const NO_INPUT = z.object({});

function mail(run: (input: { to: string; copies: number }) => unknown, risk?: 'safe' | 'risky') {
  const input = z.object({
    to: z.string().min(3).describe('an address'),
    copies: z.number().int().default(1),
  });
  return tool({ name: 'mail', description: 'Sends a mail.', input, run, ...(risk && { risk }) });
}

describe('a tool of the program', () => {
  it('is in the request with the JSON Schema of its input', async () => {
    const team = await start({ config: await newFolder(AGENT), models: () => 'ok', tools: [mail(() => '')] });
    await team.say('Hello');
    const offered = team.requests('front')[0]?.tools.find((one) => one.function.name === 'mail');
    expect(offered?.function).toEqual({
      name: 'mail',
      description: 'Sends a mail.',
      parameters: {
        type: 'object',
        properties: {
          to: { type: 'string', minLength: 3, description: 'an address' },
          copies: { type: 'integer', default: 1, minimum: -9007199254740991, maximum: 9007199254740991 },
        },
        required: ['to'],
      },
    });
  });

  it('needs an approval by default, gets the parsed input and the call, and its value becomes JSON', async () => {
    const run = vi.fn((_input: unknown, _call: unknown) => ({ sent: true }));
    const input = z.object({ to: z.string(), copies: z.number().default(1) });
    const team = await start({
      config: await newFolder(AGENT),
      models: calls('mail', { to: 'bob' }),
      tools: [tool({ name: 'mail', description: 'Sends.', input, run })],
    });
    await team.say('mail Bob');
    expect(await team.approvals()).toMatchObject([{ tool: 'mail', agent: 'front', mayHaveRun: false }]);
    expect(run).not.toHaveBeenCalled();
    await team.approve();
    await expect(team.approve({ tool: 'mail' })).rejects.toThrow(
      'no call of mail waits for an approval in the conversation test. Calls: There is:\n  front mail({"to":"bob"}): "{\\"sent\\":true}"',
    );
    expect(run.mock.calls).toEqual([
      [
        { to: 'bob', copies: 1 },
        {
          conversation: 'test',
          agent: 'front',
          turnId: expect.any(String),
          idempotencyKey: expect.any(String),
          signal: expect.any(AbortSignal),
        },
      ],
    ]);
    expectToolCall(team, { tool: 'mail', arguments: { to: 'bob' }, result: '{"sent":true}' });
    expectTurn(team, { agent: 'front', text: 'Result: {"sent":true}' });
  });

  it('does not run when it is denied, and the model reads why', async () => {
    const run = vi.fn();
    const team = await start({
      config: await newFolder(AGENT),
      models: calls('mail', { to: 'bob' }),
      tools: [mail(run)],
    });
    await team.say('mail Bob');
    await team.deny({ tool: 'mail', reason: 'not today' });
    expect(run).not.toHaveBeenCalled();
    expectToolCall(team, { tool: 'mail', result: 'not today' });
  });

  it('an approval expires on the simulated clock', async () => {
    const yaml = 'approvals: { expireAfterMs: 3600000 }\n';
    const team = await start({
      config: await newFolder({ ...AGENT, 'parley.yaml': yaml }),
      models: calls('mail', { to: 'bob' }),
      tools: [mail(() => 'sent')],
    });
    await team.say('mail Bob');
    await team.advance(3_599_999);
    expect(await team.approvals()).toHaveLength(1);
    await team.advance(1);
    expect(await team.approvals()).toEqual([]);
    expectTurn(team, { agent: 'front', text: 'APPROVAL_EXPIRED' });
  });

  it('runs at once if it is safe, or if the policy allows it; the policy can forbid it', async () => {
    const models = calls('mail', { to: 'bob' });
    const safe = await start({ config: await newFolder(AGENT), models, tools: [mail(() => 'sent', 'safe')] });
    expect((await safe.say('mail Bob')).text).toBe('Result: sent');
    const withPolicy = (allow: boolean) =>
      newFolder({ ...AGENT, 'parley.yaml': `tools: { policy: [{ tool: mail, allow: ${allow} }] }\n` });
    const allowed = await start({ config: await withPolicy(true), models, tools: [mail(() => 'sent')] });
    expect((await allowed.say('mail Bob')).text).toBe('Result: sent');
    const forbidden = await start({ config: await withPolicy(false), models, tools: [mail(() => 'sent')] });
    expect((await forbidden.say('mail Bob')).text).not.toContain('sent');
    expect(await forbidden.approvals()).toEqual([]);
  });

  it('an error goes to the model as that of other tools, and so does an input that does not match', async () => {
    const failing = mail(() => {
      throw new Error('the mailbox is full');
    }, 'safe');
    const config = await newFolder(AGENT);
    const failed = await start({ config, models: calls('mail', { to: 'bob' }), tools: [failing] });
    expect((await failed.say('mail')).text).toBe(
      'Result: {"error":{"code":"TOOL_FAILED","message":"mail: the mailbox is full"}}',
    );
    const invalid = await start({ config, models: calls('mail', { to: 'b' }), tools: [failing] });
    expect((await invalid.say('mail')).text).toMatch(/INVALID_ARGUMENTS.*mail: to: Too small/);
  });

  it('a schema whose own code throws is an invalid input, not a failure of the daemon', async () => {
    const input = z.object({ to: z.string().refine(() => Promise.resolve(true)) });
    const odd = tool({ name: 'mail', description: '', input, risk: 'safe', run: () => 'sent' });
    const team = await start({
      config: await newFolder(AGENT),
      models: calls('mail', { to: 'b' }),
      tools: [odd],
    });
    expect((await team.say('mail')).text).toContain('INVALID_ARGUMENTS');
  });

  it('a stop of the turn aborts its signal, and a tool that ignores its time limit is given up', async () => {
    let aborted = false;
    const waiting = tool({
      name: 'lookup',
      description: '',
      input: NO_INPUT,
      risk: 'safe',
      timeoutMs: 20,
      run: (_, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted = true;
            reject(new Error('stopped'));
          });
        }),
    });
    const team = await start({ config: await newFolder(AGENT), models: calls('lookup'), tools: [waiting] });
    expect((await team.say('look')).text).toContain('TIMEOUT');
    expect(aborted).toBe(true);
  });
});

describe('a tool of a file in config/tools', () => {
  const source = (name: string, body: string, before = '') => `
    import { tool } from 'parleyd';
    import { z } from 'zod';
    ${before}
    interface Input { readonly word: string }
    export default tool({
      name: '${name}', description: 'd', risk: 'safe', input: z.object({ word: z.string() }),
      run: ({ word }: Input): unknown => ${body},
    });`;
  const withFiles = (files: Record<string, string>) => newFolder({ ...AGENT, ...files });
  const lookup = calls('lookup', { word: 'cups' });

  it('is TypeScript that runs in the daemon, with the files of that folder and packages that it imports', async () => {
    const count = `import { hostname } from 'node:os';
      import { shout } from './shared/words.ts';
      let calls = 0;`;
    const config = await withFiles({
      'tools/lookup.ts': source('lookup', '[shout(word), (calls += 1), typeof hostname()].join(" ")', count),
      'tools/shared/words.ts': 'export const shout = (word: string): string => word.toUpperCase();',
    });
    for (const _ of ['first', 'second']) {
      const team = await start({ config, models: lookup });
      expect((await team.say('look')).text).toBe('Result: CUPS 1 string');
    }
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ['that does not parse', { 'lookup.ts': 'const a: = 1;' }, /tools\/lookup\.ts:1:10: Unexpected "="/],
    [
      'that fails while it is loaded',
      { 'lookup.ts': "throw new Error('no table')" },
      /tools\/lookup\.ts: no table/,
    ],
    [
      'without a tool',
      { 'lookup.ts': 'export default { name: "lookup" };' },
      /lookup\.ts: its default export was not made by tool/,
    ],
    ['without a default export', { 'lookup.ts': 'export const a = 1;' }, /lookup\.ts: its default export/],
    [
      'with a tool of another name',
      { 'lookup.ts': source('find', 'word') },
      /lookup\.ts: its tool has the name find/,
    ],
    [
      'that imports a missing package',
      { 'lookup.ts': "import 'no-such-package';" },
      /lookup\.ts:1:\d+: the package no-such-package is not installed/,
    ],
    [
      'that imports another part of the daemon',
      { 'lookup.ts': "import { createDaemon } from 'parleyd'; createDaemon();" },
      /lookup\.ts:1:\d+: No matching export.*createDaemon/,
    ],
    [
      'whose tool cannot be offered',
      { 'lookup.ts': source('lookup', 'word').replace('z.string()', 'z.date()') },
      /lookup\.ts: the tool lookup cannot be offered/,
    ],
    ...(
      [
        ['input', 'input: z.object({ word: z.string() }),', '', /its input is no z\.object\(\) of zod 4/],
        [
          'input of JSON Schema',
          'z.object({ word: z.string() })',
          '{ type: "object" }',
          /its input is no z\.obj/,
        ],
        ['description', "description: 'd',", '', /it has no description/],
        ['function', 'run:', 'execute:', /it has no function run/],
        ['known risk', "risk: 'safe'", "risk: 'none'", /its risk is "none", not safe or risky/],
      ] as const
    ).map(([what, is, becomes, message]): [string, Record<string, string>, RegExp] => [
      `whose tool has no ${what}`,
      { 'lookup.ts': source('lookup', 'word').replace(is, becomes) },
      message,
    ]),
  ])('a file %s prevents the start, and the error names it', async (_, files, message) => {
    const named = Object.entries(files).map(([name, text]) => [`tools/${name}`, text]);
    const config = await withFiles(Object.fromEntries(named));
    const refused = await start({ config, models: lookup }).then(
      () => null,
      (error: unknown) => error,
    );
    expect(refused).toMatchObject({ code: 'TOOL_FILE_INVALID', message: expect.stringMatching(message) });
  });

  it('`doctor --probe` loads the files and names one that prevents the start', async () => {
    const probed = async (text: string) => {
      const configDirectory = await withFiles({ 'tools/lookup.ts': text });
      const models = { default: { provider: 'scripted', script: { rules: [] } } };
      const config = await loadConfig({
        configDirectory,
        workingDirectory: configDirectory,
        env: { OPENAI_API_KEY: 'x' },
      });
      return probe({ ...config, models: models as never });
    };
    expect(await probed(source('lookup', 'word'))).toMatchObject([
      { kind: 'functions', fault: null, tools: ['lookup'] },
    ]);
    expect(await probed('export default 1 +;')).toMatchObject([
      { kind: 'functions', fault: { message: expect.stringMatching(/lookup\.ts:1:19: Unexpected/) } },
    ]);
  });

  it('a file cannot import one that agents may write without an approval of its path', async () => {
    const outside = await newFolder({ 'words.ts': 'export const words = 1;' });
    const config = await withFiles({
      'tools/lookup.ts': `import { words } from '${join(outside, 'words.ts')}'; words;`,
    });
    await expect(start({ config, models: lookup })).rejects.toThrow(/words\.ts is not in .*move it there/);
  });

  it('a reload with a broken file is refused and keeps the tools that run; a correct one replaces them', async () => {
    const config = await withFiles({ 'tools/lookup.ts': source('lookup', '"old " + word') });
    const load = () =>
      loadConfig({ configDirectory: config, workingDirectory: config, env: { OPENAI_API_KEY: 'x' } });
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const tools = new TeamTools(silent, NO_CONVERSATIONS);
    const named = { conversation: 'c', agent: 'front', turnId: 't', idempotencyKey: 'k', name: 'lookup' };
    const run = async (toolbox: Toolbox) =>
      toolbox.run({ ...named, arguments: { word: 'cups' } }, new AbortController().signal);
    const first = await load();
    const before = await tools.open(first);
    await writeFile(join(config, 'tools/lookup.ts'), 'export default 1 +;');
    expect(changedSettings(first, await load())).toEqual(['tools, mcpServers, tools/*.ts']);
    await expect(tools.prepare(await load(), true)).rejects.toMatchObject({ code: 'TOOL_FILE_INVALID' });
    expect(await run(before)).toMatchObject({ content: 'old cups' });
    await writeFile(join(config, 'tools/lookup.ts'), source('lookup', '"new " + word'));
    const next = await tools.prepare(await load(), true);
    next.commit();
    expect(await run(next.toolbox)).toMatchObject({ content: 'new cups' });
    await tools.close();
  });
});

describe('names and schemas that are refused', () => {
  const named = (name: string) => tool({ name, description: '', input: NO_INPUT, run: () => '' });

  it.each([['shell'], ['handoff'], ['mcp__crm__add'], ['twice']])('%s is taken', async (name) => {
    const tools = name === 'twice' ? [named('twice'), named('twice')] : [named(name)];
    await expect(start({ config: await newFolder(AGENT), models: () => '', tools })).rejects.toMatchObject({
      code: 'TOOL_NAME_TAKEN',
    });
  });

  it('a name that is no function name, and an input without a JSON Schema', () => {
    expect(() => named('send mail')).toThrow('a name is 1 to 64 letters');
    const input = z.object({ at: z.date() });
    expect(() => tool({ name: 'x', description: '', input, run: () => '' })).toThrow('cannot be offered');
  });
});

describe('a fake of a tool', () => {
  it('replaces what a built-in tool does and keeps its approval', async () => {
    const team = await start({
      config: await newFolder(AGENT),
      models: calls('shell', { command: 'rm -rf everything' }),
      fakes: { shell: ({ command }) => `would run ${command}` },
    });
    await team.say('clean up');
    await team.approve({ tool: 'shell' });
    expectToolCall(team, { tool: 'shell', result: 'would run rm -rf everything' });
  });

  it('with a name that no tool and no agent has is refused: the tool that was meant would have its effects', async () => {
    const fakes = { shel: () => 'would run' };
    const refused = start({ config: await newFolder(AGENT), models: calls('shell', {}), fakes });
    await expect(refused).rejects.toMatchObject({ code: 'TOOL_INVALID', hint: 'did you mean "shell"?' });
  });

  it('replaces a tool of an MCP server that is not started', async () => {
    const yaml =
      'tools: { mcpServers: { crm: { command: no-such-program } }, risk: { mcp__crm__find: safe } }\n';
    const team = await start({
      config: await newFolder({ ...AGENT, 'parley.yaml': yaml }),
      models: calls('mcp__crm__find', { name: 'Bob' }),
      fakes: { mcp__crm__find: ({ name }) => `${name} is a customer` },
    });
    expect((await team.say('who is Bob?')).text).toBe('Result: Bob is a customer');
  });
});

describe('a crash while a tool runs', () => {
  const PROGRAM = fileURLToPath(new URL('../../support/mcp-program.mjs', import.meta.url));
  const never = (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
  const YAML = `tools: { mcpServers: { crm: { command: ${process.execPath}, args: ["${PROGRAM}"] } } }\n`;

  /** Kills the daemon in the middle of a call: what the disk has then is what the next one finds. */
  async function restarted(
    team: TestTeam,
    disk: MemoryDisk,
    options: Parameters<typeof start>[0],
  ): Promise<TestTeam> {
    const left = { ...structuredClone(disk), inUse: false };
    await team.stop();
    return start({ ...options, store: createMemoryStore(left) });
  }

  async function crash(name: string, options: Omit<Parameters<typeof start>[0], 'store'>) {
    const disk = createMemoryDisk();
    const team = await start({ ...options, store: createMemoryStore(disk) });
    const began = () => team.entries().some((entry) => entry.type === 'tool-started');
    void team.say('go');
    await vi.waitUntil(async () => began() || (await team.approvals()).length > 0, { timeout: 10_000 });
    if (!began()) void team.approve({ tool: name });
    await vi.waitUntil(
      () => disk.audits.get('test')?.some((record) => record.includes('"ToolCallRequested"')) && began(),
    );
    return restarted(team, disk, options);
  }

  const shapeOf = (team: TestTeam, name: string) =>
    team
      .entries()
      .map(({ id: _, createdAt: __, ...entry }) =>
        JSON.parse(
          JSON.stringify(entry, (key, value) =>
            [
              'turnId',
              'approvalId',
              'requestHash',
              'definition',
              'duration',
              'argumentsHash',
              'usage',
              'estimatedTokens',
              'id',
            ].includes(key)
              ? undefined
              : value,
          ).replaceAll(name, 'TOOL'),
        ),
      );

  it('a risky tool waits for a person, in the same entries as a tool of an MCP server', async () => {
    const config = await newFolder({ ...AGENT, 'parley.yaml': YAML });
    const run = vi.fn(never);
    const own = await crash('lookup', {
      config,
      models: calls('lookup'),
      tools: [tool({ name: 'lookup', description: '', input: NO_INPUT, run })],
    });
    expect(await own.approvals()).toMatchObject([{ tool: 'lookup', mayHaveRun: true }]);
    expect(run).toHaveBeenCalledTimes(1);
    const served = await crash('mcp__crm__hang', { config, models: calls('mcp__crm__hang'), mcp: true });
    expect(shapeOf(own, 'lookup')).toEqual(shapeOf(served, 'mcp__crm__hang'));
  });

  it('a safe tool is run again', async () => {
    let runs = 0;
    const run: typeof never = async (input, call) => (++runs === 1 ? never(input, call) : 'found');
    const own = await crash('lookup', {
      config: await newFolder(AGENT),
      models: calls('lookup'),
      tools: [tool({ name: 'lookup', description: '', input: NO_INPUT, risk: 'safe', run })],
    });
    expect(runs).toBe(2);
    expectTurn(own, { agent: 'front', text: 'Result: found' });
    expect(own.entries()).toContainEqual(expect.objectContaining({ type: 'tool-started', rerun: true }));
  });
});
