export type { Conversations } from './tool.ts';
export { type BuiltInOptions, createBuiltInTools } from './toolbox.ts';
