/**
 * How much one call may take, and give. What a call gives should stand in the log and in the next request as it is:
 * larger results are stored as files and shown as a preview, and a page that became a preview would be read in vain.
 */

/** A page of a file: with its note it stays below the 51,200 bytes that a result may have. */
export const READ_BYTES = 50_000;
export const READ_LINES = 2_000;
/** So much of the beginning is looked at for null bytes, the sign of a file that is not text. */
export const PROBE_BYTES = 8_192;

export const LIST_ENTRIES = 1_000;

export const SEARCH_HITS = 200;
/** Of a line that holds a hit. */
export const SEARCH_EXCERPT = 200;
export const SEARCH_RESULT_BYTES = 48_000;
/** Larger files are left out, and counted. */
export const SEARCH_FILE_BYTES = 4 * 1024 * 1024;
export const SEARCH_FILES = 20_000;
export const SEARCH_SKIPPED_FOLDERS: ReadonlySet<string> = new Set(['.git', 'node_modules']);

export const WRITE_BYTES = 1024 * 1024;
/** A file that is edited is held in memory, three times over. */
export const EDIT_BYTES = 4 * 1024 * 1024;

/** For each tool that touches files. */
export const FILES_TIMEOUT_MS = 30_000;

export const QUERY_CHARACTERS = 400;
/** For one look through a whole log, which others' work interrupts. */
export const RECALL_TIMEOUT_MS = 60_000;

export const SHELL_TIMEOUT_MS = 120_000;
/** Of the output, from its beginning and from its end. */
export const SHELL_HEAD_BYTES = 512 * 1024;
export const SHELL_TAIL_BYTES = 512 * 1024;
/** A command that writes more than this is ended: reading it all would keep the daemon from everything else. */
export const SHELL_OUTPUT_BYTES = 64 * 1024 * 1024;
/** What a command said before it ran out of time, in the failure that the model reads. */
export const SHELL_LAST_WORDS = 8_000;
/** Between asking a process group to end and ending it. */
export const SHELL_GRACE_MS = 2_000;
