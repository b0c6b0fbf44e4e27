import { execFile, spawnSync } from 'node:child_process';
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../../src/kernel/index.ts';

/**
 * A small disk of the run, so that filling it affects nothing else. If no disk can be mounted (`why`), a full one is
 * simulated in the daemon (`test/support/full-disk.mjs`), controlled by the file `flag`.
 */
export type DiskActor = { fill(): Promise<void>; free(): Promise<void>; close(): Promise<void> } & (
  | { readonly kind: 'small' }
  | { readonly kind: 'simulated'; readonly why: string; readonly flag: string }
);

const SIZE = '64m';
const CHUNK = Buffer.alloc(65_536, 'x');

/** `directory` is created and is the root of the disk. */
export async function createDiskActor(directory: string, mount = 'mount'): Promise<DiskActor> {
  await mkdir(directory, { recursive: true });
  const run = promisify(execFile);
  try {
    await run(mount, ['-t', 'tmpfs', '-o', `size=${SIZE},mode=0755`, 'tmpfs', directory]);
  } catch (error) {
    const why = `no small disk can be mounted here (${firstLine(messageOf(error))})`;
    return simulatedDisk(`${directory}-is-full`, why);
  }
  const ballast = join(directory, 'ballast');
  const endWithUs = () => void spawnSync('umount', ['-l', directory]); // however this process ends
  process.once('exit', endWithUs);
  return {
    kind: 'small',
    fill: () => fill(ballast),
    free: () => rm(ballast, { force: true }),
    async close() {
      await run('umount', [directory]);
      process.removeListener('exit', endWithUs);
    },
  };
}

function simulatedDisk(flag: string, why: string): DiskActor {
  const free = () => rm(flag, { force: true });
  return { kind: 'simulated', why, flag, fill: () => writeFile(flag, ''), free, close: free };
}

/** Until no byte is free. */
async function fill(path: string): Promise<void> {
  const file = await open(path, 'a');
  try {
    for (;;) await file.write(CHUNK);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  } finally {
    await file.close();
  }
}

function firstLine(text: string): string {
  return text.split('\n').find((line) => !line.startsWith('Command failed')) ?? text;
}
