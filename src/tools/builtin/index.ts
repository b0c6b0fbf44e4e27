/**
 * The built-in tools.
 *
 * toolbox.ts   the toolbox: runs tools, ends them on close; failures for the model
 * tool.ts      definition of a tool and its context
 * recall.ts    reads the conversation's own log; text.ts: bytes as text
 * files/       fs_list, fs_read, fs_search, fs_write, fs_edit; names.ts: the form of paths; sandbox.ts: what a path
 *              may resolve to; protected.ts: paths that need approval
 * shell.ts     shell, and the process group of a command
 *
 * No file is opened except through files/sandbox.ts. No failure contains a real path of this machine.
 */
export type { Conversations, StoredBlobs } from './tool.ts';
export { createBuiltInTools } from './toolbox.ts';
