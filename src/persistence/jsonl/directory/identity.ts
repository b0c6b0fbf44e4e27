import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fullDiskError, messageOf, ParleyError } from '../../../kernel/index.ts';
import { orNullIfMissing, replaceFile } from '../log/durable.ts';
import { storePaths } from './paths.ts';

/**
 * The id of these logs, in `conversations/identity.json`: beside the logs, so that a copy of them has the same one.
 * Made when it is missing or cannot be read: the logs then count as another store (`src/bus/settled.ts`).
 */
export async function identityOf(root: string): Promise<string> {
  const path = storePaths(root).identity;
  try {
    const known = await knownIdentity(root);
    if (known !== null) return known;
    const id = randomUUID();
    await replaceFile(path, `${JSON.stringify({ id })}\n`, { durable: true });
    return id;
  } catch (cause) {
    const fault = fullDiskError(cause, 'STORE_FULL', `the disk of ${root}`);
    if (fault instanceof ParleyError) throw fault;
    throw new ParleyError(
      'DATA_DIRECTORY_UNWRITABLE',
      `${path} cannot be read or made: ${messageOf(cause)}`,
      {
        hint: 'Make it a file that this user may read and write, or remove it: then this directory counts as another store.',
        cause,
      },
    );
  }
}

/** Null: there is none, or it cannot be read as one. */
export async function knownIdentity(root: string): Promise<string | null> {
  const text = await orNullIfMissing(readFile(storePaths(root).identity, 'utf8'));
  return text === null ? null : parseIdentity(text);
}

function parseIdentity(text: string): string | null {
  try {
    const { id } = JSON.parse(text) as { id?: unknown };
    return typeof id === 'string' && id !== '' ? id : null;
  } catch {
    return null;
  }
}
