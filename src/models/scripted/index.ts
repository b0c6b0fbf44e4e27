export { loadScript } from './load.ts';
export { createScriptedModel } from './model.ts';
export type { Script } from './script.ts';
