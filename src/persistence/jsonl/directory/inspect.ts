import { lstat, readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { crc32 } from 'node:zlib';
import { messageOf, ParleyError } from '../../../kernel/index.ts';
import type { Inspection, Leftover, StoreInspector } from '../../offline-port.ts';
import type { ConversationRow } from '../../port.ts';
import { requireConversationId } from '../../rules.ts';
import { createDefinitionFiles } from '../definition-files.ts';
import { errnoOf, makeDirectory, orNullIfMissing, writeNewFile } from '../log/durable.ts';
import { type LogFileContents, readLogFile } from '../log/recovery.ts';
import { parseRows, parseTombstones } from '../projections.ts';
import { DELETED_PREFIX, readAudit } from '../tool-files.ts';
import { checkFormat } from './format.ts';
import { Marks } from './marks.ts';
import { refuseUnfinishedMigration } from './migration-mark.ts';
import { idOf, type StorePaths, storePaths } from './paths.ts';

/**
 * Reads a data directory without the lock, and changes nothing.
 *
 * INSPECT-1 Projections and the audit log are read before the log: beside a running daemon they may lag it and never lead
 *           it, except for a tool request, which is recorded first. The mark is read after the log, since it is made before
 *           work is outstanding.
 * INSPECT-2 Unreadable files are reported for their conversation, and the others are still inspected. A conversation whose log
 *           is gone is inspected too, if its row has entries and it was not deleted.
 */

/** An incomplete tail that is unchanged after this time is not an append in progress. */
const TAIL_REST_MS = 200;

export function inspectFiles(directory: string, { isMigrating = false } = {}): StoreInspector {
  const paths = storePaths(directory);
  const marks = new Marks(paths.marks);
  return {
    async conversations() {
      if (!isMigrating) await refuseUnfinishedMigration(directory);
      const names = await readdir(paths.conversations).catch((cause: unknown) => {
        if (errnoOf(cause) !== 'ENOENT') throw cause;
        throw new ParleyError(
          'USAGE_NO_DATA',
          `${directory} is no data directory: it has no conversations/`,
          {
            hint: 'name the data directory of a daemon with --data DIR',
            cause,
          },
        );
      });
      if (!isMigrating) await checkFormat(directory);
      const ids = names.flatMap((name) => idOf(name) ?? []);
      const found = await Promise.all(ids.map((id) => hasLog(paths.log(id))));
      const lost = isMigrating ? [] : await lostConversations(paths);
      return [...new Set([...ids.filter((_, at) => found[at]), ...lost])].sort();
    },
    leftovers: async () => leftoversIn(paths),
    definition: createDefinitionFiles(paths.definitions).get,
    async inspect(conversation): Promise<Inspection> {
      requireConversationId(conversation);
      const row = await attempt(async () => rowIn(await json(paths.rows), conversation));
      const state = await attempt(() => json(paths.state(conversation)));
      const audit = await attempt(() => readAudit(paths.audit(conversation)));
      const log = await readAtRest(paths.log(conversation));
      const marked = await attempt(() => marks.list());
      const outputs = await attempt(async () => orNullIfMissing(readdir(paths.outputs(conversation))));
      const files = new Set('fault' in outputs ? [] : outputs.value);
      const folders = {
        'audit.jsonl': audit,
        'open/': marked,
        'outputs/': outputs,
      };
      return {
        row,
        state,
        audit: 'fault' in audit ? [] : audit.value.records,
        badAuditLines:
          'fault' in audit ? [] : audit.value.unreadable.filter((line) => line < audit.value.end),
        log,
        isMarked: 'fault' in marked || marked.value === null || marked.value.includes(conversation),
        hasOutput: (id) => files.has(`${id}.json`),
        unreadable: Object.entries(folders).flatMap(([name, read]) =>
          'fault' in read ? [`${name} cannot be read: ${read.fault}`] : [],
        ),
      };
    },
  };
}

/** There is a log, or something else with its name (INSPECT-2). */
async function hasLog(path: string): Promise<boolean> {
  try {
    const found = await orNullIfMissing(lstat(path));
    return found !== null && !(found.isFile() && found.size === 0); // empty: created and never written
  } catch (error) {
    return errnoOf(error) !== 'ENOTDIR'; // a file between the folders
  }
}

/** Conversations that have entries according to `index.json` and were not deleted (INSPECT-2). */
async function lostConversations(paths: StorePaths): Promise<string[]> {
  const rows = await attempt(async () => parseRows((await json(paths.rows)) ?? { rows: [] }).rows);
  const deleted = await attempt(async () =>
    parseTombstones((await json(paths.deleted)) ?? { deleted: [] }).deleted.map(({ id }) => id),
  );
  if ('fault' in rows || 'fault' in deleted) return []; // an inspection or the next start reports it
  return rows.value.filter(({ id, length }) => length > 0 && !deleted.value.includes(id)).map(({ id }) => id);
}

/** `.deleted-<folder>-<time>`, as `removeConversation` names it. */
const REMOVED = /^\.deleted-(.+)-\d{8}T\d{9}Z$/;

async function leftoversIn(paths: StorePaths): Promise<Leftover[]> {
  const names = (await readdir(paths.conversations)).filter((name) => name.startsWith(DELETED_PREFIX));
  const removed = names.map((name) => {
    const conversation = idOf(REMOVED.exec(name)?.[1] ?? '') ?? name;
    return { conversation, path: `conversations/${name}/`, isSwept: true };
  });
  const deleted = await attempt(async () => parseTombstones((await json(paths.deleted)) ?? { deleted: [] }));
  const rows = await attempt(async () => parseRows((await json(paths.rows)) ?? { rows: [] }).rows);
  if ('fault' in deleted) return removed; // the next start reports it
  const listed = new Set('fault' in rows ? [] : rows.value.map(({ id }) => id));
  const left = deleted.value.deleted.map(({ id }) => leftoversOf(id, paths, listed));
  return [...removed, ...(await Promise.all(left)).flat()];
}

/** What is left of a deleted conversation, except an empty log, which a new post may begin. */
async function leftoversOf(
  conversation: string,
  paths: StorePaths,
  listed: ReadonlySet<string>,
): Promise<Leftover[]> {
  if (await hasLog(paths.log(conversation))) return []; // it began again
  const folder = paths.conversation(conversation);
  const files = (await readdir(folder).catch(() => [])).filter((name) => name !== basename(paths.log('')));
  const found = files.map((name) => relative(paths.root, join(folder, name)));
  const results = relative(paths.root, dirname(paths.whatIf(conversation, '')));
  if (await orNullIfMissing(lstat(join(paths.root, results)))) found.push(`${results}/`);
  if (listed.has(conversation)) found.push('its row in conversations/index.json');
  return found.map((path) => ({ conversation, path, isSwept: false }));
}

async function json(path: string): Promise<unknown> {
  const text = await orNullIfMissing(readFile(path, 'utf8'));
  return text === null ? null : JSON.parse(text);
}

async function attempt<T>(work: () => Promise<T>): Promise<{ value: T } | { fault: string }> {
  try {
    return { value: await work() };
  } catch (error) {
    return { fault: messageOf(error) };
  }
}

function rowIn(document: unknown, conversation: string): ConversationRow | null {
  if (document === null) return null;
  return parseRows(document).rows.find((row) => row.id === conversation) ?? null;
}

async function readAtRest(path: string): Promise<Inspection['log']> {
  try {
    const first = await readLogFile(path);
    if (first.tornTail === null) return first;
    await new Promise((resolve) => setTimeout(resolve, TAIL_REST_MS));
    const second: LogFileContents = await readLogFile(path);
    const isAtRest =
      second.entries.length === first.entries.length && second.tornTail?.bytes === first.tornTail.bytes;
    return isAtRest ? second : { entries: second.entries, tornTail: null };
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error;
    return error.code === 'LOG_NOT_FOUND' ? { entries: [], tornTail: null } : { damage: error };
  }
}

/** Durably keeps a copy of refused content, once per content; returns its path. */
export async function keepAside(directory: string, name: string, content: Buffer): Promise<string> {
  await makeDirectory(directory);
  const kept = `${name}-${crc32(content).toString(16).padStart(8, '0')}`;
  const existing = await orNullIfMissing(readFile(join(directory, kept)));
  return existing?.equals(content) ? join(directory, kept) : writeNewFile(directory, kept, content);
}
