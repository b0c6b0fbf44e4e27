import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../../src/cli/output/log.ts';
import { ParleyError } from '../../../src/client/index.ts';
import { Secret } from '../../../src/config/index.ts';
import type { Readiness } from '../../../src/daemon/index.ts';
import { crashPointsFrom } from '../../../src/daemon/observe/crash-points.ts';
import { start } from './support.ts';

const TOLD = { pid: 7, nats: 'nats://127.0.0.1:4222', http: null, agents: ['pm'], store: 'file' } as const;
const READY: Readiness = { ...TOLD, codeKey: null, daemon: null };

/** A daemon whose start and stop the test controls. */
function playedDaemon(options: { start?: () => Promise<Readiness>; stop?: () => Promise<void> } = {}) {
  const played = {
    stops: 0,
    reloads: [] as string[],
    flags: {} as unknown,
    configDirectory: undefined as unknown,
    reach: null as unknown,
  };
  const config = { notices: ['the model is offline'], daemon: { data: '/data' } };
  return {
    played,
    options: {
      dependencies: {
        loadConfig: async (asked: { flags?: unknown; configDirectory?: unknown }) => {
          played.flags = asked.flags;
          played.configDirectory = asked.configDirectory;
          return config as never;
        },
      },
      daemonModule: {
        crashPointsFrom,
        createDaemon: (asked: { reach?: unknown }) => {
          played.reach = asked.reach;
          return {
            start: options.start ?? (async () => READY),
            reload: async (why: string) => void played.reloads.push(why),
            stop: async () => {
              played.stops++;
              await options.stop?.();
            },
          };
        },
      },
    },
  };
}

/** Starts and, once it is up, ends on a signal. */
async function upAndDown(...[argv, options]: Parameters<typeof start>) {
  const running = start(argv, options);
  await expect.poll(running.output).toContain('Parley is up');
  running.signal('SIGINT');
  return running.done;
}

describe('up', () => {
  it('up --json prints the ready line first, and exits with 0 on a signal', async () => {
    const { played, options } = playedDaemon();
    const argv = [
      'up',
      '--json',
      '--config',
      'conf',
      '--data',
      'd',
      '--nats',
      'managed',
      '--store',
      'file',
      '--http',
      'off',
    ];
    const running = start(argv, options);
    await expect.poll(running.output).toContain('ready');
    running.signal('SIGTERM');
    const ran = await running.done;
    expect(ran.code).toBe(0);
    expect(ran.json()).toEqual([{ event: 'ready', ...TOLD }]);
    expect(played.stops).toBeGreaterThan(0);
    expect(played.flags).toEqual({ data: 'd', nats: 'managed', store: 'file', http: 'off' });
    expect(played.configDirectory).toBe('conf');
    expect([running.listeners(), running.exits]).toEqual([0, []]);
  });

  it('up ignores crash points without --allow-crash-points, and reports it', async () => {
    const { played, options } = playedDaemon();
    const env = { PARLEY_CRASH_POINTS: 'marked:1' };
    const { err } = await upAndDown(['up'], { ...options, env });
    expect(played.reach).toBeUndefined();
    expect(err).toContain('PARLEY_CRASH_POINTS is ignored without --allow-crash-points');
  });

  it('up --allow-crash-points gives the crash points of its environment to the daemon', async () => {
    const { played, options } = playedDaemon();
    const env = { PARLEY_CRASH_POINTS: 'marked:1' };
    const { err } = await upAndDown(['up', '--allow-crash-points'], { ...options, env });
    expect(played.reach).toBeTypeOf('function');
    expect(err).not.toContain('is ignored');
  });

  it('up prints the address of the daemon, and its notices on stderr', async () => {
    const { out, err } = await upAndDown(['up'], playedDaemon().options);
    expect(out).toContain('nats://127.0.0.1:4222');
    expect(err).toContain('the model is offline');
  });

  it('up prints an address that opens the console on a terminal, and never the key of its code', async () => {
    const codeKey = new Secret('geheim');
    const begin = async () => ({ ...READY, http: 'http://h:1', codeKey });
    for (const [argv, isTerminal, expected] of [
      [['up'], true, 'http://h:1/#code='],
      [['up', '--data', '/d'], false, 'parley token --url --data /d'],
      [['up', '--json'], true, '"http":"http://h:1"'],
    ] as const) {
      const running = start([...argv], { ...playedDaemon({ start: begin }).options, isTerminal });
      await expect.poll(running.output).toContain(expected);
      running.signal('SIGTERM');
      const { out, err } = await running.done;
      expect(`${out}${err}`).not.toContain('geheim');
      expect(out.includes('#code=')).toBe(expected.includes('#code='));
    }
  });

  it('up reloads the configuration on SIGHUP', async () => {
    const { played, options } = playedDaemon();
    const running = start(['up'], options);
    await expect.poll(running.output).toContain('Parley is up');
    running.signal('SIGHUP');
    await expect.poll(() => played.reloads).toEqual(['SIGHUP']);
    expect(played.stops).toBe(0);
    running.signal('SIGTERM');
    expect((await running.done).code).toBe(0);
  });

  it('up stops when its terminal is closed, and a second SIGHUP does not shorten the stop', async () => {
    let finish = () => {};
    const stopped = new Promise<void>((resolve) => (finish = resolve));
    const running = start(['up'], {
      ...playedDaemon({ stop: () => stopped }).options,
      io: { isTerminalClosed: () => true },
    });
    await expect.poll(running.output).toContain('Parley is up');
    running.signal('SIGHUP');
    running.signal('SIGHUP');
    expect(running.exits).toEqual([]);
    finish();
    expect((await running.done).code).toBe(0);
  });

  it('up suggests a chat command that finds this daemon', async () => {
    const argv = ['up', '--data', '/my data', '--nats', 'nats://h:1'];
    const { out } = await upAndDown(argv, playedDaemon().options);
    expect(out).toContain("parley chat --data '/my data'\n");
  });

  it('up ends at once on a second signal', async () => {
    let finish = () => {};
    const stop = () => new Promise<void>((resolve) => (finish = resolve));
    const running = start(['up'], playedDaemon({ stop }).options);
    await expect.poll(running.output).toContain('Parley is up');
    running.signal('SIGINT');
    expect(running.exits).toEqual([]);
    running.signal('SIGINT');
    expect(running.exits).toEqual([1]);
    finish();
    await expect.poll(running.listeners).toBe(1);
    finish();
  });

  it('up stops if a signal arrives during the start (the daemon waits for its end), and prints no ready line', async () => {
    let finish = (_: Readiness) => {};
    const begin = () => new Promise<Readiness>((resolve) => (finish = resolve));
    const { played, options } = playedDaemon({ start: begin });
    const running = start(['up'], options);
    await expect.poll(running.listeners).toBe(1);
    running.signal('SIGTERM');
    finish(READY);
    expect(await running.done).toMatchObject({ code: 0, out: '' });
    expect(played.stops).toBeGreaterThan(0);
  });

  it('up exits with 1 if the stop fails', async () => {
    const stop = () => Promise.reject(new ParleyError('STORE_BROKEN', 'cannot write'));
    const ended = await upAndDown(['up'], playedDaemon({ stop }).options);
    expect(ended).toMatchObject({ code: 1, err: expect.stringContaining('cannot write') });
  });

  it('up prints why the start failed, releases its resources, and exits with 1', async () => {
    const { played, options } = playedDaemon({
      start: async () => {
        throw new ParleyError('DATA_DIRECTORY_IN_USE', 'in use by 12', { hint: 'stop that one' });
      },
    });
    const ran = await start(['up', '--json'], options).done;
    expect(ran.code).toBe(1);
    expect(ran.json()).toEqual([
      { error: { code: 'DATA_DIRECTORY_IN_USE', message: 'in use by 12', hint: 'stop that one' } },
    ]);
    expect(played.stops).toBe(1);
  });

  it('up exits with 2 if the configuration is wrong', async () => {
    const loadConfig = async () => {
      throw new ParleyError('CONFIG_INVALID', 'the configuration has 1 problem\n- parley.yaml: x');
    };
    const ran = await start(['up'], { dependencies: { loadConfig } }).done;
    expect([ran.code, ran.out, ran.err]).toEqual([
      2,
      '',
      'parley: the configuration has 1 problem\n- parley.yaml: x\n',
    ]);
  });

  it('up refuses an unknown store', async () => {
    expect((await start(['up', '--store', 'tape']).done).code).toBe(2);
  });
});

async function logged(readable: boolean) {
  const stream = new PassThrough();
  const chunks: string[] = [];
  stream.on('data', (data: Buffer) => chunks.push(data.toString()));
  const stderr = Object.assign(stream, { isTTY: readable });
  const log = await createLog({ io: { stderr, env: { NO_COLOR: '1' } }, options: {} });
  return { log, text: () => chunks.join('') };
}

describe('the log of the daemon', () => {
  it('the readable log shows no control character of a text that a tool or a server sent', async () => {
    const { log, text } = await logged(true);
    const sent = 'x\u001b]52;c;QUJD\u0007\u009b2J\u202egpj\rforged';
    log.error({ error: new Error(sent), reason: sent, inside: { stack: sent } }, sent);
    await expect.poll(text).toContain('inside');
    expect(text()).not.toMatch(/(?![\n\t])[\p{Cc}\u202a-\u202e]/u);
    expect(text()).toContain('Error: x\\u001b]52;c;QUJD\\u0007\\u009b2J\\u202egpj\\u000dforged');
  });

  it('the log is one JSON object per line, with full errors', async () => {
    const { log, text } = await logged(false);
    log.debug({}, 'too much');
    log.warn({ error: new ParleyError('CODE', 'what', { hint: 'do' }) }, 'broken');
    log.info({ error: new TypeError('t') }, 'x');
    log.info({ error: 'words' }, 'y');
    const lines = text()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toMatchObject([
      { level: 'warn', msg: 'broken', error: { code: 'CODE', message: 'what', hint: 'do' } },
      { level: 'info', msg: 'x', error: { message: 't', stack: expect.stringContaining('TypeError') } },
      { error: 'words' },
    ]);
    expect(lines[0]?.time).toMatch(/^\d{4}-.*Z$/);
  });

  it('the log is readable text on a terminal', async () => {
    const { log, text } = await logged(true);
    log.info({ port: 1 }, 'listening');
    await expect.poll(text).toMatch(/INFO.*: listening/);
  });
});
