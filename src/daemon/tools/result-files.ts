import type { FileKeeper, ToolFile } from '../../agents/index.ts';
import { MOST_OF_A_NAME } from '../../bus/index.ts';
import { type FilePart, plainName, showBytes } from '../../conversation/index.ts';
import { cut, type Log, messageOf, ParleyError, wellFormed } from '../../kernel/index.ts';
import { type RoomContext, requireRoom } from './file-room.ts';

/**
 * Keeps the files of a tool's result, before the audit log names them (RUN-TOOL-4).
 *
 * RESULT-FILES-1 A file that cannot be kept is named in the result with the reason. The call does not fail for it: the tool ran.
 * RESULT-FILES-2 At most `MOST_FILES` are kept; a line names the number of the others.
 */
const MOST_FILES = 16;

export interface ResultFilesContext extends RoomContext {
  readonly files: FileKeeper;
  readonly log: Pick<Log, 'warn'>;
}

export interface KeptFiles {
  readonly files: readonly FilePart[];
  /** RESULT-FILES-1 */
  readonly notes: readonly string[];
}

export async function keptFiles(
  conversation: string,
  given: readonly ToolFile[],
  daemon: ResultFilesContext,
): Promise<KeptFiles> {
  const files: FilePart[] = [];
  const notes: string[] = [];
  for (const [at, { bytes, name, mediaType }] of given.slice(0, MOST_FILES).entries()) {
    const short = name === undefined ? undefined : cut(wellFormed(name), MOST_OF_A_NAME);
    try {
      const file = await daemon.files.keep(bytes, { name: short, mediaType });
      await requireRoom(conversation, [...files, file], daemon);
      files.push(file);
    } catch (error) {
      const isRefused = error instanceof ParleyError && error.code.startsWith('BLOB_');
      if (!isRefused)
        daemon.log.warn({ conversation, error: messageOf(error) }, 'a file of a result is not kept');
      const why = isRefused ? `${error.code}: ${error.message}` : 'it could not be stored';
      const named = name === undefined ? '' : ` ${plainName(name)}`;
      notes.push(`[file ${at + 1}${named}, ${showBytes(bytes.length)}: not kept: ${why}]`);
    }
  }
  if (given.length > MOST_FILES)
    notes.push(`[${given.length - MOST_FILES} more files: not kept: a result has at most ${MOST_FILES}]`);
  return { files, notes };
}
