import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { resolveDaemonAddress } from '../../config/index.ts';
import { FULL_DISK_BYTES, freeBytes, LOW_DISK_BYTES } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import { configFlags } from '../options/options.ts';
import { failureOf } from '../render/failure.ts';
import type { Check } from './check.ts';
import { foreignData, openData } from './permissions.ts';

const name = 'data directory';

/** Checks that the daemon can write to the data directory and other users can neither read nor replace it. Changes nothing. */
export async function dataCheck({ io, options }: Context, freeOn = freeBytes): Promise<Check> {
  const flags = configFlags(options);
  let directory: string;
  try {
    directory = resolveDaemonAddress({ env: io.env, flags, workingDirectory: io.workingDirectory }).data;
  } catch (error) {
    return { name, status: 'fail', message: failureOf(error).message };
  }
  const existing = await nearestExisting(directory);
  const fix = 'make it writable for this user, or give another directory with --data DIR';
  if (!(await stat(existing)).isDirectory()) {
    return { name, status: 'fail', message: `${existing} is not a directory`, fix };
  }
  try {
    await access(existing, constants.W_OK | constants.X_OK);
  } catch {
    return { name, status: 'fail', message: `${existing} is not writable`, fix };
  }
  const message = existing === directory ? directory : `${directory} (will be created)`;
  const free = await freeOn(existing);
  if (free < LOW_DISK_BYTES) {
    const left = `${directory}: ${Math.floor(free / 1_000_000)} MB are free on its disk`;
    const fix = 'free space on that disk: without it no post is accepted and no conversation can be deleted';
    return { name, status: free < FULL_DISK_BYTES ? 'fail' : 'warn', message: left, fix };
  }
  const open = (await foreignData(directory)) ?? (await openData(directory));
  if (open) return { name, status: open.status, message: open.message, fix: `run: ${open.command}` };
  return { name, status: 'ok', message };
}

async function nearestExisting(path: string): Promise<string> {
  for (let candidate = path; ; candidate = dirname(candidate)) {
    try {
      await stat(candidate);
      return candidate;
    } catch {
      if (dirname(candidate) === candidate) return candidate;
    }
  }
}
