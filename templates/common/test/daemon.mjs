// Starts the daemon of this project on a data directory of its own, for a test.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

/** `npm test` puts the command `parley` of this project on the PATH. */
export async function startDaemon() {
  const data = await mkdtemp(join(tmpdir(), 'parley-test-'));
  const child = spawn('parley', ['up', '--json', '--http', 'off', '--data', data]);
  const closed = once(child, 'close');
  let log = '';
  child.stderr.on('data', (text) => {
    log += text;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { done } = await lines.next(); // the ready line
  if (done) throw new Error(`the daemon did not start:\n${log}`);
  return {
    data,
    /** Runs a command; returns its output. */
    async parley(...words) {
      const { stdout } = await promisify(execFile)('parley', [...words, '--data', data]);
      return stdout;
    },
    async stop() {
      child.kill();
      await closed;
      await rm(data, { recursive: true, force: true });
    },
  };
}
