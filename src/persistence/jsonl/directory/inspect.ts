import { lstat, readdir } from 'node:fs/promises';
import { errnoOf, messageOf, orNullIfMissing, ParleyError } from '../../../kernel/index.ts';
import { BlobReader } from '../../blobs.ts';
import type { ConversationRow, Inspection, StoreInspector } from '../../port.ts';
import { requireConversationId } from '../../rules.ts';
import { auditTrailOf } from '../../store.ts';
import { createBlobFiles } from '../file-blobs.ts';
import { FileDocuments, readAuditLines, refuseUnfinished } from '../file-documents.ts';
import { type LogFileContents, readLogFile } from '../log/recovery.ts';
import { checkFormat } from './format.ts';
import { idOf, storePaths } from './paths.ts';

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
  const documents = new FileDocuments(paths);
  return {
    async conversations() {
      if (!isMigrating) await refuseUnfinished(directory);
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
      const lost = isMigrating ? [] : await lostConversations(documents);
      return [...new Set([...ids.filter((_, at) => found[at]), ...lost])].sort();
    },
    definition: async (hash) => (await documents.get(`definition.${hash}`)) as string | null,
    blobs: new BlobReader({ documents, blobs: createBlobFiles(paths) }),
    async inspect(conversation): Promise<Inspection> {
      requireConversationId(conversation);
      const get = (kind: string) => attempt(() => documents.get(`${kind}.${conversation}`));
      const row = (await get('row')) as Inspection['row'];
      const state = await get('state');
      const audit = await attempt(() => readAuditLines(paths.audit(conversation)));
      const log = await readAtRest(paths.log(conversation));
      const marked = await attempt(async () => [
        await documents.get('marks'),
        ...(await documents.keys('open.')),
      ]);
      const outputs = await attempt(async () => documents.keys(`output.${conversation}.`));
      const trail = auditTrailOf('fault' in audit ? [] : audit.value);
      const end = 'fault' in audit ? 0 : audit.value.length;
      const folders = { 'audit.jsonl': audit, 'open/': marked, 'outputs/': outputs };
      return {
        row,
        state,
        audit: trail.records,
        badAuditLines: trail.unreadable.filter((line) => line < end), // the last one may be being written
        log,
        isMarked: 'fault' in marked || marked.value[0] === null || marked.value.includes(conversation),
        hasOutput: (id) => 'value' in outputs && outputs.value.includes(id),
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
async function lostConversations(documents: FileDocuments): Promise<string[]> {
  const rows = await attempt(() => documents.entries('row.'));
  const deleted = await attempt(() => documents.entries('deleted.'));
  if ('fault' in rows || 'fault' in deleted) return []; // an inspection or the next start reports it
  const listed = [...(rows.value as ReadonlyMap<string, ConversationRow>).values()];
  return listed.flatMap(({ id, length }) => (length > 0 && !deleted.value.has(id) ? [id] : []));
}

async function attempt<T>(work: () => Promise<T>): Promise<{ value: T } | { fault: string }> {
  try {
    return { value: await work() };
  } catch (error) {
    return { fault: messageOf(error) };
  }
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
