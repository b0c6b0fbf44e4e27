import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { forecastOf, image, pdf, WEATHER, words } from './expected.mjs';

/** Mastra's agent and tools, with an agent of Parley as the model. */

export const chat = ({ url, key, check, say }) => {
  const parley = createOpenAICompatible({
    name: 'parley',
    baseURL: `${url}/v1`,
    apiKey: key,
    includeUsage: true,
  });
  const agent = (more = {}) =>
    new Agent({
      id: 'a',
      name: 'Assistant',
      instructions: 'Be brief.',
      model: parley('pm'),
      maxRetries: 0,
      ...more,
    });
  const seen = (part) =>
    agent().generate([{ role: 'user', content: [{ type: 'text', text: say('see') }, part] }]);
  return {
    text: async () => check((await agent().generate(say('hello'))).text, words.helloAnswer),
    stream: async () => {
      let text = '';
      for await (const piece of (await agent().stream(say('hello'))).textStream) text += piece;
      check(text, words.helloAnswer);
    },
    'client tools': async () => {
      const weather = createTool({
        id: WEATHER.name,
        description: WEATHER.description,
        inputSchema: z.object({ city: z.string() }),
        execute: async (given) => forecastOf(given.context ?? given),
      });
      check(
        (await agent({ tools: { [WEATHER.name]: weather } }).generate(say('tool'))).text,
        words.toolAnswer,
      );
    },
    structured: async () => {
      const schema = z.object({ city: z.string(), degrees: z.number() });
      check((await agent().generate(say('typed'), { structuredOutput: { schema } })).object.degrees, 4);
    },
    picture: async () =>
      check((await seen({ type: 'image', image: image.url, mediaType: image.mediaType })).text, image.answer),
    file: async () => {
      const file = { type: 'file', data: pdf.base64, mediaType: pdf.mediaType, filename: 'plan.pdf' };
      check((await seen(file)).text, pdf.answer);
    },
    abort: async () => {
      const stop = new AbortController();
      const { textStream } = await agent().stream(say('slow'), { abortSignal: stop.signal });
      for await (const _ of textStream) stop.abort();
    },
    error: async () => {
      const answer = await agent()
        .generate(say('fail'))
        .catch((error) => error);
      check(answer instanceof Error || answer.error !== undefined, true);
    },
    usage: async () => check((await agent().generate(say('hello'))).usage.totalTokens > 0, true),
    'edited history': async () => {
      const { text } = await agent().generate(say('first'));
      const messages = [
        { role: 'user', content: say('edited') },
        { role: 'assistant', content: text },
        { role: 'user', content: say('recall') },
      ];
      check((await agent().generate(messages)).text, words.recalled);
    },
  };
};
