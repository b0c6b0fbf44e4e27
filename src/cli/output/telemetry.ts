import type { TelemetryEvent } from '../../daemon/index.ts';
import { escapeHidden, sleep } from '../../kernel/index.ts';
import type { Io } from '../io.ts';

/**
 * Telemetry on stdout: one JSON object per line, after the ready message of the daemon.
 *
 * CLI-TELEMETRY-1 A slow or absent reader neither blocks the daemon nor fills its memory: events beyond `MAX_WAITING` are
 *    dropped and counted.
 * CLI-TELEMETRY-2 A closed stdout ends the telemetry, not the daemon.
 */

/** Characters: some thousand events. */
const MAX_WAITING = 1_048_576;
/** Milliseconds that `close` waits for a reader. */
const PATIENCE_MS = 1_000;

export function createConsoleTelemetry(io: Io, onLost: () => void) {
  const { stdout } = io;
  let held: string[] | null = [];
  let heldLength = 0;
  let omitted = 0;
  let isLost = false;
  io.onOutputLost(() => {
    isLost = true; // CLI-TELEMETRY-2
    onLost();
  });
  const write = (line: string) => {
    if (!held) {
      stdout.write(line);
      return;
    }
    held.push(line);
    heldLength += line.length;
  };
  return {
    emit(event: TelemetryEvent): void {
      if (isLost) return;
      if ((held ? heldLength : stdout.writableLength) >= MAX_WAITING) {
        omitted++; // CLI-TELEMETRY-1
        return;
      }
      if (omitted > 0) write(lineOf({ ts: event.ts, type: 'telemetry_omitted', events: omitted }));
      omitted = 0;
      write(lineOf(event));
    },
    /** Call it when the daemon is ready: writes the events so far, in order. */
    open(): void {
      const lines = held ?? [];
      held = null;
      if (!isLost && lines.length > 0) stdout.write(lines.join(''));
    },
    /** True: everything is written. False: the reader did not read it in time. */
    async close(): Promise<boolean> {
      if (isLost || stdout.writableLength === 0) return true;
      const written = new AbortController();
      stdout.write('', () => written.abort());
      await sleep(PATIENCE_MS, written.signal);
      return isLost || written.signal.aborted;
    },
  };
}

function lineOf(event: object): string {
  return `${escapeHidden(JSON.stringify(event))}\n`;
}
