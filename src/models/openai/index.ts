export { createOpenAiModel, type OpenAiModelOptions } from './model.ts';
