import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { FULL_DISK_BYTES, freeBytes, isAtLeast, LOW_DISK_BYTES } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import { dataDirectoryOf } from '../find-daemon.ts';
import { failureOf } from '../render/text.ts';
import { foreignData, openData } from './permissions.ts';

/** The result of one check. `fix`: the next step. */
export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
  readonly fix?: string;
}

/** Makes the results of a check of this name. */
export function named(name: string) {
  const result =
    (status: Check['status']) =>
    (message: string, fix?: string): Check => ({ name, status, message, ...(fix !== undefined && { fix }) });
  return { ok: result('ok'), warn: result('warn'), fail: result('fail') };
}

const NEEDED = [20, 19] as const;

export function nodeCheck(version: string): Check {
  const { ok, fail } = named('node');
  if (isAtLeast(version, NEEDED)) return ok(version);
  return fail(
    `${version} is too old: Parley needs ${NEEDED.join('.')} or newer`,
    'install a newer Node.js, for example from https://nodejs.org',
  );
}

/** Checks that the daemon can write to the data directory and other users can neither read nor replace it. Changes nothing. */
export async function dataCheck(context: Context, freeOn = freeBytes): Promise<Check> {
  const check = named('data directory');
  let directory: string;
  try {
    directory = dataDirectoryOf(context);
  } catch (error) {
    return check.fail(failureOf(error).message);
  }
  const existing = await nearestExisting(directory);
  const isFolder = (await stat(existing)).isDirectory();
  const isWritable = await access(existing, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isFolder || !isWritable)
    return check.fail(
      `${existing} is not ${isFolder ? 'writable' : 'a directory'}`,
      'make it writable for this user, or give another directory with --data DIR',
    );
  const free = await freeOn(existing);
  if (free < LOW_DISK_BYTES)
    return check[free < FULL_DISK_BYTES ? 'fail' : 'warn'](
      `${directory}: ${Math.floor(free / 1_000_000)} MB are free on its disk`,
      'free space on that disk: without it no post is accepted and no conversation can be deleted',
    );
  const open = (await foreignData(directory)) ?? (await openData(directory));
  if (open) return check[open.status](open.message, `run: ${open.command}`);
  return check.ok(existing === directory ? directory : `${directory} (will be created)`);
}

async function nearestExisting(path: string): Promise<string> {
  const isThere = await stat(path).catch(() => null);
  return isThere || dirname(path) === path ? path : nearestExisting(dirname(path));
}
