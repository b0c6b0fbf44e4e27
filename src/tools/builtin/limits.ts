/**
 * Limits of one call. A result should fit into the log and the next request unchanged: larger results are stored as
 * files and shown as a preview, and a page shown as a preview would be useless.
 */

/** A page of a file: with its note it is below the 51,200 bytes of a result. */
export const READ_BYTES = 50_000;
export const READ_LINES = 2_000;
/** Bytes at the start that are searched for null bytes, which mark a file that is not text. */
export const PROBE_BYTES = 8_192;

export const LIST_ENTRIES = 1_000;

export const SEARCH_HITS = 200;
/** Characters of a line with a hit. */
export const SEARCH_EXCERPT = 200;
export const SEARCH_RESULT_BYTES = 48_000;
/** Larger files are skipped and counted. */
export const SEARCH_FILE_BYTES = 4 * 1024 * 1024;
export const SEARCH_FILES = 20_000;
export const SEARCH_SKIPPED_FOLDERS: ReadonlySet<string> = new Set(['.git', 'node_modules']);

export const WRITE_BYTES = 1024 * 1024;
/** An edited file is in memory three times. */
export const EDIT_BYTES = 4 * 1024 * 1024;

/** For each tool that touches files. */
export const FILES_TIMEOUT_MS = 30_000;

export const QUERY_CHARACTERS = 400;
/** For reading a whole log, interrupted by other work. */
export const RECALL_TIMEOUT_MS = 60_000;

export const SHELL_TIMEOUT_MS = 120_000;
/** Kept from the beginning and from the end of the output. */
export const SHELL_HEAD_BYTES = 512 * 1024;
export const SHELL_TAIL_BYTES = 512 * 1024;
/** A command that writes more is ended: reading it would block the daemon. */
export const SHELL_OUTPUT_BYTES = 64 * 1024 * 1024;
/** Characters of output in the failure of a command that timed out. */
export const SHELL_LAST_WORDS = 8_000;
/** Between SIGTERM and SIGKILL. */
export const SHELL_GRACE_MS = 2_000;
