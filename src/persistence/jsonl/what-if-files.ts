import { lstat, readdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ParleyError } from '../../kernel/index.ts';
import type { WhatIfTexts } from '../port.ts';
import { idOf, storePaths } from './directory/paths.ts';
import { makeDirectory, orNullIfMissing, readOwnText, replaceFile, syncDirectory } from './log/durable.ts';

/**
 * `what-if/<folder>/<id>.json`: the results of what-ifs, a folder for each conversation.
 *
 * WHAT-IF-FILES-1 A file is there as a whole or not at all: temporary name, rename. The writes of one conversation are done one
 *                 after another, and a removal waits for them.
 * WHAT-IF-FILES-2 A link is not followed, and only its owner can read a file.
 */
export function openWhatIfFiles(root: string): WhatIfTexts {
  const paths = storePaths(root);
  const directory = paths.whatIfs();
  const path = (conversation: string, id: string) => paths.whatIf(conversation, requireId(id));
  const folder = (conversation: string) => dirname(path(conversation, 'any'));
  const tails = new Map<string, Promise<unknown>>();
  /** WHAT-IF-FILES-1 */
  const inOrder = <T>(conversation: string, work: () => Promise<T>): Promise<T> => {
    const done = (tails.get(conversation) ?? Promise.resolve()).then(work);
    const tail = done
      .catch(() => undefined)
      .then(() => {
        if (tails.get(conversation) === tail) tails.delete(conversation);
      });
    tails.set(conversation, tail);
    return done;
  };
  return {
    put: (conversation, id, text, options) =>
      inOrder(conversation, async () => {
        const file = path(conversation, id);
        await makeDirectory(folder(conversation));
        await refuseLink(folder(conversation));
        await replaceFile(file, text, options);
      }),
    get: (conversation, id) => readText(path(conversation, id)),
    async list(conversation) {
      const names = (await orNullIfMissing(readdir(folder(conversation)))) ?? [];
      return names.flatMap((name) => FILE.exec(name)?.[1] ?? []).sort();
    },
    async conversations() {
      const names = (await orNullIfMissing(readdir(directory))) ?? [];
      return names.flatMap((name) => idOf(name) ?? []).sort();
    },
    remove: (conversation) =>
      inOrder(conversation, async () => {
        await rm(folder(conversation), { recursive: true, force: true });
        await orNullIfMissing(syncDirectory(directory));
      }),
  };
}

const ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const FILE = /^([a-z0-9][a-z0-9_-]{0,63})\.json$/;

function requireId(id: string): string {
  if (ID.test(id)) return id;
  throw new ParleyError('INVALID_NAME', `${JSON.stringify(id)} is not the id of a what-if`, {
    hint: '`parley what-if CONVERSATION --list` prints the ids',
  });
}

/** WHAT-IF-FILES-2 */
async function refuseLink(folder: string): Promise<void> {
  if (!(await lstat(folder)).isSymbolicLink()) return;
  throw new ParleyError('WHAT_IF_UNWRITABLE', `${folder} is a link`, { hint: 'remove it' });
}

/** WHAT-IF-FILES-2 */
function readText(path: string): Promise<string | null> {
  const hint = 'remove the file, and start the what-if again';
  return readOwnText(path, { code: 'WHAT_IF_UNREADABLE', hint });
}
