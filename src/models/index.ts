export { createOpenAiModel, type OpenAiModelOptions } from './openai/index.ts';
export { createScriptedModel, loadScript, type Script } from './scripted/index.ts';
