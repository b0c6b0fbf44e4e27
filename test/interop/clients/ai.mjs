import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import { FORECAST, forecastOf, image, pdf, WEATHER, words } from './expected.mjs';

/** The AI SDK: `generateText` and `streamText`. */

const clientOf =
  (modelOf) =>
  ({ url, key, check, say }) => {
    const model = modelOf(`${url}/v1`, key);
    const ask = (content, more = {}) =>
      generateText({ model, messages: [{ role: 'user', content }], maxRetries: 0, ...more });
    const seen = (part) => ask([{ type: 'text', text: say('see') }, part]);
    return {
      text: async () => check((await ask(say('hello'))).text, words.helloAnswer),
      stream: async () => {
        let text = '';
        for await (const piece of streamText({ model, prompt: say('hello') }).textStream) text += piece;
        check(text, words.helloAnswer);
      },
      'client tools': async () => {
        const weather = tool({
          description: WEATHER.description,
          inputSchema: jsonSchema(WEATHER.parameters),
          execute: async (given) => forecastOf(given),
        });
        const loop = { tools: { [WEATHER.name]: weather }, stopWhen: stepCountIs(3) };
        check((await ask(say('tool'), loop)).text, words.toolAnswer);
        const asked = { role: 'user', content: say('textAndTool') };
        const answer = await generateText({ model, messages: [asked], maxRetries: 0, ...loop });
        check(answer.steps[0].text, words.before);
        check(answer.text, words.toolAnswer);
        const messages = [asked, ...answer.response.messages, { role: 'user', content: say('hello') }];
        check((await generateText({ model, messages, maxRetries: 0, ...loop })).text, words.helloAnswer);
      },
      structured: async () => {
        const output = Output.object({ schema: jsonSchema(FORECAST) });
        const answer = await ask(say('typed'), { output, experimental_output: output });
        check((answer.output ?? answer.experimental_output).degrees, 4);
      },
      picture: async () =>
        check((await seen({ type: 'image', image: image.bytes, mediaType: 'image/png' })).text, image.answer),
      file: async () => {
        const file = { type: 'file', data: pdf.bytes, mediaType: 'application/pdf', filename: 'plan.pdf' };
        check((await seen(file)).text, pdf.answer);
      },
      abort: async () => {
        const stop = new AbortController();
        const { textStream } = streamText({ model, prompt: say('slow'), abortSignal: stop.signal });
        for await (const _ of textStream) stop.abort();
      },
      error: async () => check((await ask(say('fail')).catch((error) => error)) instanceof Error, true),
      usage: async () => check((await ask(say('hello'))).usage.totalTokens > 0, true),
      'edited history': async () => {
        const first = { role: 'user', content: say('first') };
        const { text } = await generateText({ model, messages: [first], maxRetries: 0 });
        const messages = [
          { ...first, content: say('edited') },
          { role: 'assistant', content: text },
          { role: 'user', content: say('recall') },
        ];
        check((await generateText({ model, messages, maxRetries: 0 })).text, words.recalled);
      },
    };
  };

export const chat = clientOf((baseURL, apiKey) =>
  createOpenAICompatible({
    name: 'parley',
    baseURL,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  })('pm'),
);
export const responses = clientOf((baseURL, apiKey) => createOpenAI({ baseURL, apiKey })('pm'));
