export { type BuiltInOptions, createBuiltInTools } from './toolbox.ts';
