import { sleep } from '../kernel/index.ts';
import type { TelemetryEvent } from './dependencies.ts';
import type { Io } from './io.ts';

/**
 * Telemetry on stdout: one JSON object a line, behind the word that the daemon is ready.
 *
 * CLI-TELEMETRY-1 Whoever reads slowly, or not at all, neither holds up the daemon nor fills its memory: what does not fit in
 *    `MAX_WAITING` is left out, and counted.
 * CLI-TELEMETRY-2 A stdout that is gone ends the telemetry, not the daemon.
 */

export interface ConsoleTelemetry {
  emit(event: TelemetryEvent): void;
  /** The daemon is ready: what was held comes out now, in order. */
  open(): void;
  /** Resolves when everything is written: true. False: it waits for a reader who does not come. */
  close(): Promise<boolean>;
}

/** Characters: some thousand events. */
const MAX_WAITING = 1_048_576;
/** How long the end waits for a reader. Milliseconds. */
const PATIENCE_MS = 1_000;

export function createConsoleTelemetry(io: Io, onLost: () => void): ConsoleTelemetry {
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
    emit(event) {
      if (isLost) return;
      if ((held ? heldLength : stdout.writableLength) >= MAX_WAITING) {
        omitted++; // CLI-TELEMETRY-1
        return;
      }
      if (omitted > 0) write(lineOf({ ts: event.ts, type: 'telemetry_omitted', events: omitted }));
      omitted = 0;
      write(lineOf(event));
    },
    open() {
      const lines = held ?? [];
      held = null;
      if (!isLost && lines.length > 0) stdout.write(lines.join(''));
    },
    async close() {
      if (isLost || stdout.writableLength === 0) return true;
      const written = new AbortController();
      stdout.write('', () => written.abort());
      await sleep(PATIENCE_MS, written.signal);
      return isLost || written.signal.aborted;
    },
  };
}

function lineOf(event: object): string {
  return `${JSON.stringify(event)}\n`;
}
