import { execFile, spawnSync } from 'node:child_process';
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../kernel/index.ts';

/**
 * A small disk of the run's own, so that filling it harms nobody. Where none may be made (`why`), the store of the daemon
 * plays a full one; `flag` is the file that tells it to.
 */
export type DiskActor = { fill(): Promise<void>; free(): Promise<void>; close(): Promise<void> } & (
  | { readonly kind: 'small' }
  | { readonly kind: 'played'; readonly why: string; readonly flag: string }
);

const SIZE = '64m';
const CHUNK = Buffer.alloc(65_536, 'x');

/** `directory` is made, and is the disk's root. */
export async function createDiskActor(directory: string, mount = 'mount'): Promise<DiskActor> {
  await mkdir(directory, { recursive: true });
  const run = promisify(execFile);
  try {
    await run(mount, ['-t', 'tmpfs', '-o', `size=${SIZE},mode=0755`, 'tmpfs', directory]);
  } catch (error) {
    const why = `no small disk can be mounted here (${firstLine(messageOf(error))})`;
    return playedDisk(`${directory}-is-full`, why);
  }
  const ballast = join(directory, 'ballast');
  const endWithUs = () => void spawnSync('umount', ['-l', directory]); // as this process ends, whatever ends it
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

function playedDisk(flag: string, why: string): DiskActor {
  const free = () => rm(flag, { force: true });
  return { kind: 'played', why, flag, fill: () => writeFile(flag, ''), free, close: free };
}

/** Until not a byte is free. */
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
