export { type BuiltInOptions, type Conversations, createBuiltInTools } from './builtin/index.ts';
export { LONGEST_CALL_MS } from './guarded.ts';
export { asIs, type Enclose, hideFolder, hidingFault } from './hide-folder.ts';
export type { ToolLog } from './log.ts';
export { createToolbox, type ToolboxOptions } from './toolbox.ts';
