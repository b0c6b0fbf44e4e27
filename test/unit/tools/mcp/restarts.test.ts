import { afterEach, describe, expect, it } from 'vitest';
import { errorWith } from '../../../support/error-with.ts';
import { callOf, FakeServer, openSignal, type Rig, rigOf, toolOf } from './support.ts';

let rig: Rig | null = null;

afterEach(async () => {
  await rig?.tools.close();
  rig = null;
});

function fileServer(): FakeServer {
  const files = new FakeServer();
  files.tools = [toolOf('a')];
  return files;
}

function waitsIn(said: Rig['said']): unknown[] {
  return said
    .map(({ fields }) => ('nextTryMs' in fields ? fields.nextTryMs : null))
    .filter((wait) => wait !== null);
}

const CALL = callOf('mcp__files__a');

describe('an MCP server whose process ends', () => {
  it('the running call fails with an unknown outcome when the server process ends (TOOLS-MCP-SERVER-4)', async () => {
    const files = fileServer();
    rig = rigOf({ files });
    await rig.tools.settled();
    files.answer = async () => {
      await files.newest.close();
      return {};
    };
    const outcome = await rig.tools.run(CALL, openSignal());
    expect(outcome).toMatchObject(errorWith('MCP_CONNECTION_LOST', 'not known'));
    expect(files.calls).toHaveLength(1);
  });

  it('the server is restarted, its tools stay listed, and new calls wait for it (TOOLS-MCP-SERVER-3)', async () => {
    const files = fileServer();
    rig = rigOf({ files });
    const { tools, until } = rig;
    await tools.settled();
    await files.newest.close();
    await until(() => tools.status()[0]?.state === 'connecting');
    expect(tools.definitions().has('mcp__files__a')).toBe(true);
    expect(await tools.run(CALL, openSignal())).toEqual({ kind: 'completed', content: 'done' });
    expect(files.lives).toHaveLength(2);
  });

  it('the tools disappear when a restart fails, and return when one succeeds', async () => {
    const files = fileServer();
    rig = rigOf({ files });
    const { tools, until } = rig;
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
    rig = rigOf({ files }, { restartMs: 2, restartMaxMs: 10 });
    const { said } = rig;
    rig.tools.start();
    await rig.until(() => said.length >= 5);
    expect(waitsIn(said).slice(0, 5)).toEqual([1, 2, 4, 5, 5]);
  });

  it('repeated ends for the same reason are logged once', async () => {
    const files = fileServer();
    files.isDown = true;
    rig = rigOf({ files });
    let changes = 0;
    rig.tools.start();
    await rig.until(() => {
      changes += 1;
      return changes > 4;
    });
    expect(rig.said).toHaveLength(1);
  });

  it.each([
    ['does not grow after long lives', 0, [1, 1, 1]],
    ['grows after short lives', 60_000, [1, 2, 4]],
  ])('the restart delay of a server %s (TOOLS-MCP-SERVER-2)', async (_, stableMs, waits) => {
    const files = fileServer();
    rig = rigOf({ files }, { restartMs: 2, restartMaxMs: 10, stableMs });
    const { tools, until, said } = rig;
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
    rig = rigOf({ files }, { restartMs: 60_000, restartMaxMs: 60_000 });
    const { tools, until } = rig;
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
    rig = rigOf({ broken, files: fileServer() });
    await rig.tools.settled();
    expect(rig.tools.status()).toEqual([
      { server: 'broken', state: 'failed', tools: 0, error: 'it is down' },
      { server: 'files', state: 'ready', tools: 1 },
    ]);
  });

  it('a server that starts and never answers is given up after a timeout', async () => {
    const files = fileServer();
    files.isMute = true;
    rig = rigOf({ files }, { connectMs: 10, restartMs: 60_000, restartMaxMs: 60_000 });
    await rig.tools.settled();
    expect(rig.tools.status()[0]?.error).toMatch(/^it did not answer within 0\.0\d+ s$/);
  });

  it('a call that arrives while the server starts is run', async () => {
    rig = rigOf({ files: fileServer() });
    expect(rig.tools.check('mcp__files__a', {})).toBeNull();
    expect(await rig.tools.run(CALL, openSignal())).toEqual({ kind: 'completed', content: 'done' });
  });
});

describe('closing MCP servers', () => {
  it('closing ends the servers and their calls, and nothing restarts', async () => {
    const files = fileServer();
    rig = rigOf({ files });
    const { tools } = rig;
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
    rig = rigOf({ files });
    await rig.tools.close();
    rig.tools.start();
    await rig.tools.settled();
    expect(files.lives).toEqual([]);
  });
});
