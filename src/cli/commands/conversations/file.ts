import { createReadStream } from 'node:fs';
import { open, rm, stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import {
  type FilePart,
  fileLine,
  filesOf,
  logEntries,
  type ParleyClient,
  ParleyError,
} from '../../../client/index.ts';
import { errnoOf, messageOf, visibleText } from '../../../kernel/index.ts';
import type { Act } from '../../context.ts';
import { ask, type Connected } from '../../find-daemon.ts';
import { matching, ofConversation } from '../../options/options.ts';

/** Sends files with a message, and saves those of a conversation. */

/** Uploads the files of these paths, in order. */
export async function sendFiles(
  { io, client }: Connected,
  paths: readonly string[],
  publisher: string,
): Promise<FilePart[]> {
  const sent: FilePart[] = [];
  const found = paths.map((path) => resolve(io.workingDirectory, path));
  for (const path of found) await checkFile(path); // before the first one is sent
  for (const path of found)
    sent.push(await client.upload(() => createReadStream(path), { name: basename(path), publisher }));
  return sent;
}

async function checkFile(path: string): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    throw cannotSend(path, errnoOf(error) === 'ENOENT' ? 'it does not exist' : messageOf(error));
  });
  if (!found.isFile()) throw cannotSend(path, found.isDirectory() ? 'it is a directory' : 'it is no file');
}

function cannotSend(path: string, why: string): ParleyError {
  return new ParleyError('USAGE_FILE', `cannot send ${visibleText(path)}: ${why}`, {
    hint: 'name a file: --file PATH',
  });
}

/** Digits of a hash, from the line that names a file; they are looked up in the log. */
const hashDigits = matching(
  /^(?:@blob\/)?[0-9a-f]{6,64}$/,
  'Name a file as entries do, such as @blob/3fa98c01be22: at least 6 digits of its SHA-256.',
);

export function addFile(program: Command, act: Act): void {
  const added = ofConversation(program, 'file', 'save a file of a conversation')
    .argument('<hash>', 'as in @blob/3fa98c01be22, or the whole SHA-256', hashDigits)
    .option('--out <path>', 'where; - is stdout (default: its name, in this folder)');
  ask(act, added, async (context, conversation: string, hash: string, { out }: { readonly out?: string }) => {
    const file = await findFile(context.client, conversation, hash.replace('@blob/', ''));
    const bytes = Readable.from(context.client.download(conversation, file.sha256));
    if (out === '-') return pipeline(bytes, context.io.stdout, { end: false });
    const path = resolve(context.io.workingDirectory, out ?? savedName(file));
    await save(bytes, path);
    context.result({ ...file, path }, () => `${visibleText(path)}: ${fileLine(file)}`);
  });
}

async function findFile(client: ParleyClient, conversation: string, digits: string): Promise<FilePart> {
  let found: FilePart | null = null;
  for await (const entry of logEntries(client, conversation, 0)) {
    const named = filesOf(entry).filter((one) => one.sha256.startsWith(digits));
    for (const file of named) {
      if (found !== null && found.sha256 !== file.sha256)
        throw new ParleyError('USAGE', `several files of ${conversation} begin with ${digits}`, {
          hint: 'give more digits',
        });
      found = file;
    }
  }
  if (found) return found;
  throw new ParleyError('NOT_FOUND', `no message of ${conversation} has the file ${digits}`, {
    hint: '`parley show` names the files of each message',
  });
}

/** Another author chose the name: it becomes no path, and nothing in it is hidden. */
function savedName({ name = '', sha256 }: FilePart): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  const plain = last.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '').replace(/^\.+/, '');
  return plain || sha256.slice(0, 12);
}

/** Replaces no file. What does not arrive completely is removed. */
async function save(bytes: Readable, path: string): Promise<void> {
  const file = await open(path, 'wx', 0o600).catch((error: unknown) => {
    throw cannotWrite(path, errnoOf(error) === 'EEXIST' ? 'it exists' : messageOf(error));
  });
  try {
    await pipeline(bytes, file.createWriteStream());
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

export function cannotWrite(path: string, why: string): ParleyError {
  return new ParleyError('USAGE_FILE', `cannot write ${visibleText(path)}: ${why}`, {
    hint: 'choose another with --out PATH',
  });
}
