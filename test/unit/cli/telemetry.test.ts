import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import type { Io } from '../../../src/cli/io.ts';
import { createConsoleTelemetry } from '../../../src/cli/output/log.ts';
import type { TelemetryEvent } from '../../../src/daemon/index.ts';
import { shortenWaits } from '../../support/short-waits.ts';
import { start } from './support.ts';

const TOLD = { pid: 7, nats: 'nats://127.0.0.1:4222', http: null, agents: ['pm'], store: 'file' } as const;
const READY = { ...TOLD, codeKey: null, daemon: null };
const event = (type: string, more: object = {}): TelemetryEvent =>
  ({ ts: 'now', type, ...more }) as TelemetryEvent;

/** A stdout whose reader reads nothing until the test allows it. */
function slowReader() {
  const taken: string[] = [];
  let release: (() => void) | null = null;
  let reads = false;
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _, done) {
      taken.push(String(chunk));
      if (reads) done();
      else release = done;
    },
  });
  const read = () => {
    reads = true;
    release?.();
  };
  return { stream, read, lines: () => taken.join('').trim().split('\n').filter(Boolean) };
}

function onto(stdout: Writable) {
  const lost: string[] = [];
  const io = { stdout, onOutputLost: (handler: () => void) => void stdout.once('error', handler) };
  return { lost, telemetry: createConsoleTelemetry(io as unknown as Io, () => lost.push('lost')) };
}

describe('telemetry on stdout', () => {
  it('telemetry on stdout follows the ready line, and includes what happened before it, in order', async () => {
    let tell = (_: TelemetryEvent) => {};
    let stopped = false;
    const running = start(['up', '--json'], {
      dependencies: { loadConfig: async () => ({ notices: [], daemon: {}, telemetry: 'console' }) as never },
      daemonModule: {
        createDaemon: ({ telemetry }) => ({
          start: async () => {
            if (telemetry) tell = telemetry;
            tell(event('before'));
            return READY;
          },
          reload: async () => undefined,
          stop: async () => {
            if (!stopped) tell(event('last'));
            stopped = true;
          },
        }),
      },
    });
    await expect.poll(running.output).toContain('before');
    tell(event('after'));
    running.signal('SIGTERM');
    const ran = await running.done;
    expect(ran.code).toBe(0);
    expect(ran.json()).toEqual([{ event: 'ready', ...TOLD }, event('before'), event('after'), event('last')]);
    expect(running.exits).toEqual([]);
  });

  it('telemetry is not created unless it is enabled', async () => {
    let told: unknown = 'nothing yet';
    const running = start(['up', '--json'], {
      dependencies: { loadConfig: async () => ({ notices: [], daemon: {}, telemetry: 'off' }) as never },
      daemonModule: {
        createDaemon: ({ telemetry }) => {
          told = telemetry;
          return { start: async () => READY, stop: async () => undefined, reload: async () => undefined };
        },
      },
    });
    await expect.poll(running.output).toContain('ready');
    running.signal('SIGTERM');
    await running.done;
    expect(told).toBeUndefined();
  });

  it('telemetry drops spans if a slow reader fills its buffer, and reports how many (CLI-TELEMETRY-1)', async () => {
    const { stream, read, lines } = slowReader();
    const { telemetry } = onto(stream);
    telemetry.open();
    const filling = event('big', { filling: 'x'.repeat(600_000) });
    for (let n = 0; n < 5; n++) telemetry.emit(filling);
    read();
    await expect.poll(() => stream.writableLength).toBe(0);
    telemetry.emit(event('next'));
    expect(lines().map((line) => JSON.parse(line))).toEqual([
      filling,
      filling,
      { ts: 'now', type: 'telemetry_omitted', events: 3 },
      event('next'),
    ]);
    expect(await telemetry.close()).toBe(true);
  });

  it('telemetry keeps no more than its buffer while the daemon starts', () => {
    const { stream, read, lines } = slowReader();
    read();
    const { telemetry } = onto(stream);
    for (let n = 0; n < 5; n++) telemetry.emit(event('big', { filling: 'x'.repeat(600_000) }));
    telemetry.open();
    telemetry.emit(event('next'));
    expect(lines().map((line) => JSON.parse(line).type)).toEqual(['big', 'big', 'telemetry_omitted', 'next']);
  });

  it('telemetry ends when stdout is closed, and the daemon continues (CLI-TELEMETRY-2)', async () => {
    const stream = new PassThrough();
    const { telemetry, lost } = onto(stream);
    telemetry.open();
    telemetry.emit(event('one'));
    stream.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    await expect.poll(() => lost).toEqual(['lost']);
    const write = vi.spyOn(stream, 'write');
    telemetry.emit(event('two'));
    expect(await telemetry.close()).toBe(true);
    expect(write).not.toHaveBeenCalled();
  });

  it('telemetry waits at the end for a reader that is slow', async () => {
    const { stream, read } = slowReader();
    const { telemetry } = onto(stream);
    telemetry.open();
    telemetry.emit(event('one'));
    const closing = telemetry.close();
    read();
    expect(await closing).toBe(true);
  });

  it('telemetry does not delay the exit for a reader that never reads', async () => {
    shortenWaits();
    const { stream } = slowReader();
    let tell = (_: TelemetryEvent) => {};
    const running = start(['up', '--json'], {
      io: { stdout: stream },
      dependencies: { loadConfig: async () => ({ notices: [], daemon: {}, telemetry: 'console' }) as never },
      daemonModule: {
        createDaemon: ({ telemetry }) => {
          if (telemetry) tell = telemetry;
          return { start: async () => READY, stop: async () => undefined, reload: async () => undefined };
        },
      },
    });
    await expect.poll(() => stream.writableLength).toBeGreaterThan(0);
    tell(event('one'));
    running.signal('SIGTERM');
    expect((await running.done).code).toBe(0);
    expect(running.exits).toEqual([0]);
  });
});
