export { loadScript } from './load.ts';
export { createScriptedModel, type ScriptedModelOptions } from './model.ts';
export type { Script } from './script.ts';
