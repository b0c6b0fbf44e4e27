export {
  createFunctionModel,
  type FunctionCall,
  type FunctionReply,
  type FunctionRequest,
  type ModelFunction,
} from './function-model.ts';
export {
  createOfflineModel,
  createScriptedModel,
  recordedScript,
  type ScriptedModelOptions,
} from './model.ts';
export { loadScript } from './script.ts';
