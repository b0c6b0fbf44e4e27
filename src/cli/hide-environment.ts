import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { messageOf } from '../kernel/index.ts';

/**
 * Removes the variables that this process was started with from what the system shows of it (`/proc/PID/environ`, `ps e`):
 * other programs of the same user, such as those of tools, would read keys there. `process.env` keeps its values.
 *
 * The system shows the memory in which the process got its variables. So each variable is set again, which moves it, and
 * that memory is overwritten. Returns the reason why this is impossible; null: it is done.
 */
export function hideEnvironment(env: NodeJS.ProcessEnv): string | null {
  try {
    const [start, end] = environmentMemory();
    for (const [name, value] of Object.entries(env)) env[name] = value;
    const memory = openSync('/proc/self/mem', 'r+');
    try {
      writeSync(memory, Buffer.alloc(end - start), 0, end - start, start);
    } finally {
      closeSync(memory);
    }
    return readFileSync('/proc/self/environ').some((byte) => byte !== 0) ? 'the system still shows it' : null;
  } catch (error) {
    return messageOf(error);
  }
}

/** The fields 50 and 51 of proc(5). The name of the program, field 2, may contain spaces and `)`. */
function environmentMemory(): [start: number, end: number] {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [start, end] = [Number(fields[47]), Number(fields[48])];
  if (start > 0 && end >= start && Number.isSafeInteger(end)) return [start, end];
  throw new Error('the system does not say where it is');
}
