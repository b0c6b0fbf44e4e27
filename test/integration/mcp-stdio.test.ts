import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { errorWith } from '../support/error-with.ts';
import { itLong } from '../support/long.ts';
import {
  EVERYTHING,
  FILESYSTEM,
  isAlive,
  type McpTestTools,
  openMcpTools,
  packaged,
  program,
} from '../support/mcp-tools.ts';

/** Real programs over standard streams. */

let toolbox: McpTestTools;

afterEach(() => toolbox.close());

async function withProgram(env: Record<string, string> = {}, times?: Parameters<typeof openMcpTools>[1]) {
  toolbox = await openMcpTools((directory) => ({ it: program(directory, env) }), times);
  await toolbox.tools.settled();
  return toolbox;
}

async function contentOf(name: string, given: Record<string, unknown> = {}): Promise<string> {
  const outcome = await toolbox.run(name, given);
  if (outcome.kind !== 'completed') throw new Error(JSON.stringify(outcome));
  return outcome.content;
}

async function marked(line: string): Promise<void> {
  await expect.poll(() => toolbox.marks()).toContain(line);
}

describe('published MCP servers over stdio', () => {
  itLong('agents get the tools and results of published servers', async () => {
    toolbox = await openMcpTools((directory) => ({
      everything: packaged(EVERYTHING, ['stdio']),
      files: { ...packaged(FILESYSTEM, [directory]), trustReadOnlyHint: true },
    }));
    const { tools, directory } = toolbox;
    await tools.settled();
    expect(tools.status().map(({ state }) => state)).toEqual(['ready', 'ready']);
    expect(tools.definitions().get('mcp__files__read_text_file')?.risk).toBe('safe');
    expect(tools.definitions().get('mcp__files__write_file')?.risk).toBe('risky');

    expect(await contentOf('mcp__everything__echo', { message: 'hello' })).toBe('Echo: hello');
    expect(await contentOf('mcp__everything__get-tiny-image')).toMatch(/\[file 1: image\/png, \d+ k?B\]/);
    const links = await contentOf('mcp__everything__get-resource-links', { count: 2 });
    expect(links).toMatch(/\[link to .+ \(demo:\/\/.+\)/);
    expect(tools.check('mcp__everything__get-sum', { a: 'one' })).toContain('must be number');

    await writeFile(join(directory, 'note.txt'), 'remember');
    const path = join(directory, 'note.txt');
    expect(await contentOf('mcp__files__read_text_file', { path })).toBe('remember');
    const refused = await toolbox.run('mcp__files__read_text_file', { path: '/etc/hostname' });
    expect(refused).toMatchObject({ kind: 'failed', message: expect.stringMatching(/denied/i) });
  });

  itLong('a published server that is killed fails its call, and restarts for the next one', async () => {
    toolbox = await openMcpTools((directory) => ({
      everything: packaged(EVERYTHING, ['stdio']),
      it: program(directory),
    }));
    await toolbox.tools.settled();
    const pid = Number(await contentOf('mcp__it__pid'));
    const call = toolbox.run('mcp__it__hang');
    const long = toolbox.run('mcp__everything__trigger-long-running-operation', { duration: 1, steps: 2 });
    await marked('hanging');
    process.kill(pid, 'SIGKILL');
    expect(await call).toMatchObject(errorWith('MCP_CONNECTION_LOST', 'not known'));
    expect(Number(await contentOf('mcp__it__pid'))).not.toBe(pid);
    expect(await long).toMatchObject({ kind: 'completed' }); // nothing else noticed
  });
});

describe('an MCP server over stdio', () => {
  it('a program that ends during a call fails it, and its last output is in the log', async () => {
    await withProgram();
    expect(await toolbox.run('mcp__it__exit')).toMatchObject({ code: 'MCP_CONNECTION_LOST' });
    expect(await contentOf('mcp__it__pid')).toMatch(/^\d+$/);
    expect(toolbox.said.join('\n')).toContain('out of paper');
  });

  it('a program is notified of a cancelled call, and continues', async () => {
    await withProgram();
    const pid = await contentOf('mcp__it__pid');
    const controller = new AbortController();
    const call = toolbox.run('mcp__it__hang', {}, controller.signal);
    await marked('hanging');
    controller.abort();
    expect(await call).toEqual({ kind: 'aborted' });
    await marked('cancelled');
    expect(await contentOf('mcp__it__pid')).toBe(pid);
  });

  it('output of a program that is not a message is ignored', async () => {
    await withProgram();
    expect(await contentOf('mcp__it__chatter')).toBe('said');
  });

  it('a picture of 3 MB and a binary resource are files of the result', async () => {
    await withProgram();
    const outcome = await toolbox.run('mcp__it__picture');
    if (outcome.kind !== 'completed') throw new Error(JSON.stringify(outcome));
    expect(outcome.content).toBe(
      '[file 1: image/png, 3.0 MB]\n[file 2: file:///big, application/octet-stream, 1.5 MB]',
    );
    expect(outcome.files?.map(({ bytes, ...about }) => [bytes.length, about])).toEqual([
      [3_000_000, { mediaType: 'image/png' }],
      [1_500_000, { name: 'big', mediaType: 'application/octet-stream' }],
    ]);
  });

  it('a program runs in the project with the environment of its settings and no secret of the daemon (CHILD-TRANSPORT-4)', async () => {
    process.env.PARLEY_TEST_SECRET = 'ours';
    try {
      await withProgram({ TOKEN: 'its-own' });
    } finally {
      delete process.env.PARLEY_TEST_SECRET;
    }
    const { directory, env } = JSON.parse(await contentOf('mcp__it__surroundings'));
    expect(directory).toBe(toolbox.directory);
    expect(env).toMatchObject({ TOKEN: 'its-own', PATH: process.env.PATH });
    expect(env.PARLEY_TEST_SECRET).toBeUndefined();
  });

  it('a program that cannot be started is reported with the reason', async () => {
    toolbox = await openMcpTools(() => ({
      none: { transport: 'command', command: '/nowhere/server', args: [], env: {} },
      odd: { transport: 'command', command: process.execPath, args: ['-e', 'throw "paper jam"'], env: {} },
    }));
    await toolbox.tools.settled();
    const [none, odd] = toolbox.tools.status();
    expect(none).toMatchObject({ state: 'failed', error: expect.stringContaining('ENOENT') });
    expect(odd).toMatchObject({ state: 'failed', error: expect.stringContaining('paper jam') });
    expect(toolbox.tools.servers?.()).toEqual([
      { ...none, tools: [] },
      { ...odd, tools: [] },
    ]);
  });
});

describe('closing an MCP server over stdio', () => {
  it('closing ends a program by ending its input', async () => {
    await withProgram();
    const pid = Number(await contentOf('mcp__it__pid'));
    await toolbox.tools.close();
    expect(isAlive(pid)).toBe(false);
    expect(await toolbox.marks()).toContain('input ended');
  });

  it('closing kills a program that does not end (CHILD-TRANSPORT-2), and what it started (CHILD-TRANSPORT-1)', async () => {
    await withProgram({ STUBBORN: 'yes' }, { endMs: 200 });
    const pids = [await contentOf('mcp__it__pid'), await contentOf('mcp__it__child')].map(Number);
    expect(pids.map(isAlive)).toEqual([true, true]);
    await toolbox.tools.close();
    await expect.poll(() => pids.map(isAlive)).toEqual([false, false]);
    // The group got SIGTERM before SIGKILL.
    expect(await toolbox.marks()).toEqual(expect.arrayContaining(['input ended', 'SIGTERM']));
  });

  itLong('closing ends a program that is just starting', async () => {
    toolbox = await openMcpTools((directory) => ({ it: program(directory) }));
    toolbox.tools.start();
    await toolbox.tools.close();
    const [started] = await toolbox.marks();
    if (started !== undefined) expect(isAlive(Number(started.split(' ')[1]))).toBe(false);
    expect(toolbox.tools.status()[0]?.state).toBe('failed');
  });
});

describe('an MCP server whose leading process is killed', () => {
  it('the rest of the group is killed, and its call fails though a child holds the pipes (CHILD-TRANSPORT-1, CHILD-TRANSPORT-3)', async () => {
    await withProgram();
    const pid = Number(await contentOf('mcp__it__pid'));
    const child = Number(await contentOf('mcp__it__child'));
    const call = toolbox.run('mcp__it__hang');
    await marked('hanging');
    process.kill(pid, 'SIGKILL');
    expect(await call).toMatchObject({ code: 'MCP_CONNECTION_LOST' });
    await expect.poll(() => isAlive(child)).toBe(false);
  });
});
