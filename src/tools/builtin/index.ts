export type { Conversations } from './conversations.ts';
export { type BuiltInOptions, createBuiltInTools } from './toolbox.ts';
