import { readdir, readFile, stat } from 'node:fs/promises';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { messageOf, ParleyError } from '../../kernel/index.ts';
import type { AuditRecord, ConversationRow, Inspection, StoreInspector } from '../port.ts';
import { requireConversationId } from '../rules.ts';
import { errnoOf, orNullIfMissing } from './durable.ts';
import { Marks } from './marks.ts';
import { refuseUnfinishedMigration } from './migration-mark.ts';
import { storePaths } from './paths.ts';
import { parseRows } from './projections.ts';
import { type LogFileContents, readLogFile } from './recovery.ts';

/**
 * Reading a data directory without owning it: takes no lock, changes nothing.
 *
 * E1 Projections and the audit log are read before the log they follow from: beside a running daemon they may then
 *    lag it and never lead it. The mark is read behind it, since it is made before the log owes anything.
 */

/** A tail that is still the same after so many milliseconds is no append under way. */
const TAIL_REST_MS = 200;

export function inspectFiles(directory: string, { isMigrating = false } = {}): StoreInspector {
  const paths = storePaths(directory);
  const marks = new Marks(paths.marks);
  const outputs = async (conversation: string) =>
    new Set((await orNullIfMissing(readdir(paths.outputs(conversation)))) ?? []);
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
      const found = await Promise.all(
        names.map(async (name) => NAME_PATTERN.test(name) && (await isFile(paths.log(name)))),
      );
      return names.filter((_, at) => found[at]).sort();
    },
    async inspect(conversation): Promise<Inspection> {
      requireConversationId(conversation);
      const row = await attempt(async () => rowIn(await json(paths.rows), conversation));
      const state = await attempt(() => json(paths.state(conversation)));
      const audit = await readAudit(paths.audit(conversation));
      const log = await readAtRest(paths.log(conversation));
      const marked = await marks.list();
      const isMarked = marked === null || marked.includes(conversation);
      const files = await outputs(conversation);
      return { row, state, ...audit, log, isMarked, hasOutput: (id) => files.has(`${id}.json`) };
    },
  };
}

function isFile(path: string): Promise<boolean> {
  return orNullIfMissing(stat(path)).then(
    (found) => found?.isFile() === true && found.size > 0,
    () => false, // index.json stands between the folders
  );
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

/** A line that cannot be read is no record; the last one may be cut short by a crash, or be written right now. */
async function readAudit(
  path: string,
): Promise<{ readonly audit: AuditRecord[]; readonly badAuditLines: number[] }> {
  const lines = ((await orNullIfMissing(readFile(path, 'utf8'))) ?? '').split('\n');
  const audit: AuditRecord[] = [];
  const badAuditLines: number[] = [];
  for (const [at, line] of lines.entries()) {
    if (line === '') continue;
    try {
      audit.push(JSON.parse(line) as AuditRecord);
    } catch {
      if (at < lines.length - 1) badAuditLines.push(at + 1);
    }
  }
  return { audit, badAuditLines };
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
    if (error instanceof ParleyError && error.code === 'LOG_CORRUPT') return { damage: error };
    throw error;
  }
}
