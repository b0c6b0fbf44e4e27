import { execFile, spawnSync } from 'node:child_process';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../kernel/index.ts';

/** A small disk of the run's own, so that filling it harms nobody. Where none may be made: why. */
export type DiskActor =
  | { readonly kind: 'small'; fill(): Promise<void>; free(): Promise<void>; close(): Promise<void> }
  | { readonly kind: 'none'; readonly why: string };

const SIZE = '64m';
const CHUNK = Buffer.alloc(65_536, 'x');

/** `directory` is made, and is the disk's root. */
export async function createDiskActor(directory: string, mount = 'mount'): Promise<DiskActor> {
  await mkdir(directory, { recursive: true });
  const run = promisify(execFile);
  try {
    await run(mount, ['-t', 'tmpfs', '-o', `size=${SIZE},mode=0755`, 'tmpfs', directory]);
  } catch (error) {
    return { kind: 'none', why: `no small disk can be mounted here (${firstLine(messageOf(error))})` };
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
