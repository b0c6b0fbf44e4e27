import { describe, expect, it } from 'vitest';
import { errorWith } from '../../../support/error-with.ts';
import { callOf, openSignal, openTools, serverWith, type TestTools, toolOf } from './support.ts';

const fileServer = () => serverWith(toolOf('a'));

function waitsIn(said: TestTools['said']): unknown[] {
  return said
    .map(({ fields }) => ('nextTryMs' in fields ? fields.nextTryMs : null))
    .filter((wait) => wait !== null);
}

const CALL = callOf('mcp__files__a');

describe('an MCP server whose process ends', () => {
  it('the running call fails with an unknown outcome when the server process ends (TOOLS-MCP-SERVER-4)', async () => {
    const files = fileServer();
    const toolbox = openTools({ files });
    await toolbox.tools.settled();
    files.answer = async () => {
      await files.newest.close();
      return {};
    };
    const outcome = await toolbox.tools.run(CALL, openSignal());
    expect(outcome).toMatchObject(errorWith('MCP_CONNECTION_LOST', 'not known'));
    expect(files.calls).toHaveLength(1);
  });

  it('the server is restarted, its tools stay listed, and new calls wait for it (TOOLS-MCP-SERVER-3)', async () => {
    const files = fileServer();
    const toolbox = openTools({ files });
    const { tools, until } = toolbox;
    await tools.settled();
    await files.newest.close();
    await until(() => tools.status()[0]?.state === 'connecting');
    expect(tools.definitions().has('mcp__files__a')).toBe(true);
    expect(await tools.run(CALL, openSignal())).toEqual({ kind: 'completed', content: 'done' });
    expect(files.lives).toHaveLength(2);
  });

  it('the tools disappear when a restart fails, and return when one succeeds', async () => {
    const files = fileServer();
    const toolbox = openTools({ files });
    const { tools, until } = toolbox;
    await tools.settled();
    files.isDown = true;
    await files.newest.close();
    await until(() => tools.status()[0]?.state === 'failed');
    expect(tools.status()).toEqual([{ server: 'files', state: 'failed', tools: 0, error: 'it is down' }]);
    expect(tools.definitions().size).toBe(0);
    expect(await tools.run(CALL, openSignal())).toMatchObject(
      errorWith('MCP_SERVER_UNAVAILABLE', 'it is down'),
    );
    files.isDown = false;
    await until(() => tools.definitions().has('mcp__files__a'));
  });

  it('repeated restarts back off up to a limit (TOOLS-MCP-SERVER-2)', async () => {
    const files = fileServer();
    files.isDown = true;
    files.countsTries = true;
    const toolbox = openTools({ files }, { restartMs: 2, restartMaxMs: 10 });
    const { said } = toolbox;
    toolbox.tools.start();
    await toolbox.until(() => said.length >= 5);
    expect(waitsIn(said).slice(0, 5)).toEqual([1, 2, 4, 5, 5]);
  });

  it('repeated ends for the same reason are logged once', async () => {
    const files = fileServer();
    files.isDown = true;
    const toolbox = openTools({ files });
    let changes = 0;
    toolbox.tools.start();
    await toolbox.until(() => {
      changes += 1;
      return changes > 4;
    });
    expect(toolbox.said).toHaveLength(1);
  });

  it.each([
    ['does not grow after long lives', 0, [1, 1, 1]],
    ['grows after short lives', 60_000, [1, 2, 4]],
  ])('the restart delay of a server %s (TOOLS-MCP-SERVER-2)', async (_, stableMs, waits) => {
    const files = fileServer();
    const toolbox = openTools({ files }, { restartMs: 2, restartMaxMs: 10, stableMs });
    const { tools, until, said } = toolbox;
    tools.start();
    for (const life of [1, 2, 3]) {
      await until(() => tools.status()[0]?.state === 'ready' && files.lives.length === life);
      await files.newest.close();
      await until(() => tools.status()[0]?.state !== 'ready');
    }
    await until(() => waitsIn(said).length === 3);
    expect(waitsIn(said)).toEqual(waits);
  });

  it('a call that waits for a restart ends with its signal', async () => {
    const files = fileServer();
    const toolbox = openTools({ files }, { restartMs: 60_000, restartMaxMs: 60_000 });
    const { tools, until } = toolbox;
    await tools.settled();
    await files.newest.close();
    await until(() => tools.status()[0]?.state === 'connecting');
    const controller = new AbortController();
    const outcome = tools.run(CALL, controller.signal);
    controller.abort();
    expect(await outcome).toEqual({ kind: 'aborted' });
  });
});

describe('an MCP server that does not start', () => {
  it('a server that does not start is reported with the reason, and does not delay the others', async () => {
    const broken = fileServer();
    broken.isDown = true;
    const toolbox = openTools({ broken, files: fileServer() });
    await toolbox.tools.settled();
    expect(toolbox.tools.status()).toEqual([
      { server: 'broken', state: 'failed', tools: 0, error: 'it is down' },
      { server: 'files', state: 'ready', tools: 1 },
    ]);
  });

  it('a server that starts and never answers is given up after a timeout', async () => {
    const files = fileServer();
    files.isMute = true;
    const toolbox = openTools({ files }, { connectMs: 10, restartMs: 60_000, restartMaxMs: 60_000 });
    await toolbox.tools.settled();
    expect(toolbox.tools.status()[0]?.error).toMatch(/^it did not answer within 0\.0\d+ s$/);
  });

  it('a call that arrives while the server starts is run', async () => {
    const toolbox = openTools({ files: fileServer() });
    expect(toolbox.tools.check('mcp__files__a', {})).toBeNull();
    expect(await toolbox.tools.run(CALL, openSignal())).toEqual({ kind: 'completed', content: 'done' });
  });
});

describe('closing MCP servers', () => {
  it('closing ends the servers and their calls, and nothing restarts', async () => {
    const files = fileServer();
    const toolbox = openTools({ files });
    const { tools } = toolbox;
    await tools.settled();
    const begun = new Promise<void>((resolve) => {
      files.answer = () => {
        resolve();
        return new Promise(() => undefined);
      };
    });
    const outcome = tools.run(CALL, openSignal());
    await begun;
    await Promise.all([tools.close(), tools.close()]);
    expect(await outcome).toMatchObject({ code: 'MCP_CONNECTION_LOST' });
    expect(files.lives).toHaveLength(1);
    expect(tools.definitions().size).toBe(0);
    expect(await tools.run(CALL, openSignal())).toMatchObject({ code: 'MCP_SERVER_UNAVAILABLE' });
  });

  it('closing before the first use starts nothing', async () => {
    const files = fileServer();
    const toolbox = openTools({ files });
    await toolbox.tools.close();
    toolbox.tools.start();
    await toolbox.tools.settled();
    expect(files.lives).toEqual([]);
  });
});
