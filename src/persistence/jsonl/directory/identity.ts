import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fullDiskError, messageOf, orNullIfMissing, ParleyError } from '../../../kernel/index.ts';
import { replaceFile } from '../log/durable.ts';
import { storePaths } from './paths.ts';

/**
 * The id of these logs, in `conversations/identity.json`: beside the logs, so that a copy of them has the same id.
 * Created if it is missing or unreadable: the logs then count as another store (`src/bus/settled.ts`).
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
      `${path} cannot be read or created: ${messageOf(cause)}`,
      {
        hint: 'Let this user read and write the file, or remove it: then this directory counts as another store.',
        cause,
      },
    );
  }
}

/** Null: there is no id, or it is damaged. */
export async function knownIdentity(root: string): Promise<string | null> {
  const text = await orNullIfMissing(readFile(storePaths(root).identity, 'utf8'));
  return text === null ? null : parseIdentity(text);
}

function parseIdentity(text: string): string | null {
  try {
    const { id } = JSON.parse(text) as { id?: unknown };
    return typeof id === 'string' && id !== '' ? id : null;
  } catch {
    return null; // not JSON: damaged
  }
}
