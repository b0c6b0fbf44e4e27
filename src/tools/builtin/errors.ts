import type { ToolOutcome } from '../../agents/tool-port.ts';
import { errnoOf, messageOf, ParleyError } from '../../kernel/index.ts';
import { failed, type ToolLog } from '../guarded.ts';

/** Errors of tools as failures for the model. They contain no real path of this machine. */

/** The system's error code → our code and message. */
const KNOWN: Readonly<Record<string, readonly [code: string, message: string]>> = {
  ENOENT: ['NOT_FOUND', 'no such file or folder'],
  ENOTDIR: ['NOT_A_FOLDER', 'a part of the path is a file and not a folder'],
  EISDIR: ['NOT_A_FILE', 'that is a folder'],
  ENXIO: ['NOT_A_FILE', 'that is neither a file nor a folder'],
  ELOOP: ['PATH_REFUSED', 'a link there leads nowhere, or was put there meanwhile'],
  ENAMETOOLONG: ['PATH_REFUSED', 'a name in the path is too long'],
  EACCES: ['NOT_PERMITTED', 'the system does not permit it'],
  EPERM: ['NOT_PERMITTED', 'the system does not permit it'],
  EROFS: ['NOT_PERMITTED', 'the disk can only be read'],
  ETXTBSY: ['NOT_PERMITTED', 'that program is running'],
  ENOSPC: ['DISK_FULL', 'the disk is full; nothing was changed'],
  EDQUOT: ['DISK_FULL', 'the quota of disk space is used up; nothing was changed'],
  EFBIG: ['DISK_FULL', 'the system refuses a file of that size; nothing was changed'],
  EMFILE: ['TOO_MANY_FILES', 'too many files are open; try again'],
  ENFILE: ['TOO_MANY_FILES', 'too many files are open; try again'],
};

export function failureOf(tool: string, error: unknown, log: ToolLog): ToolOutcome {
  if (error instanceof ParleyError) {
    return failed(error.code, error.hint === undefined ? error.message : `${error.message}; ${error.hint}`);
  }
  const errno = errnoOf(error);
  const known = errno === null ? undefined : KNOWN[errno];
  if (known) return failed(...known);
  log.error({ err: error, tool }, `the tool ${tool} failed: ${messageOf(error)}`);
  const why = errno === null ? 'it has a bug, which was logged' : `the system says ${errno}`;
  return failed('TOOL_FAILED', `${tool} failed: ${why}`);
}

/** Null if the file does not exist. */
export function valueOrNull<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return null;
    throw error;
  }
}
