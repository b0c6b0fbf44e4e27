import { ParleyError } from '../../client/index.ts';
import { escapeHidden, fullDiskError } from '../../kernel/index.ts';

/** Renders errors: for people as two lines, for programs as one JSON value. */

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
}

export function failureOf(thrown: unknown): Failure {
  const error = fullDiskError(thrown, 'DISK_FULL', 'a disk');
  if (error instanceof ParleyError) {
    const { code, message, hint } = error;
    return hint === undefined ? { code, message } : { code, message, hint };
  }
  return {
    code: 'UNEXPECTED',
    message: error instanceof Error ? error.message : String(error),
    hint: 'this is a fault of Parley itself: run it again with --verbose and report what it prints',
  };
}

export function renderFailure({ message, hint }: Failure): string {
  const first = `parley: ${message}`;
  return escapeHidden(hint === undefined ? first : `${first}\n${hint.replace(/^/gm, '  ')}`);
}
