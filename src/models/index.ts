export { createOpenAiModel, type OpenAiModelOptions } from './openai/index.ts';
