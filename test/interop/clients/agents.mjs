import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  Runner,
  setTracingDisabled,
  tool,
} from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { forecastOf, image, pdf, WEATHER, words } from './expected.mjs';

/** OpenAI's Agents SDK: its agents, tools and typed outputs, with an agent of Parley as the model. */

const clientOf =
  (Model) =>
  ({ url, key, check, say }) => {
    setTracingDisabled(true);
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
    const model = new Model(openai, 'pm');
    const runner = new Runner();
    const agent = (more = {}) => new Agent({ name: 'Assistant', instructions: 'Be brief.', model, ...more });
    const run = (input, more, options) => runner.run(agent(more), input, options);
    const user = (...content) => [{ role: 'user', content }];
    return {
      text: async () => check((await run(say('hello'))).finalOutput, words.helloAnswer),
      stream: async () => {
        const result = await run(say('hello'), {}, { stream: true });
        let text = '';
        for await (const piece of result.toTextStream()) text += piece;
        await result.completed;
        check(text, words.helloAnswer);
      },
      'client tools': async () => {
        const weather = tool({
          name: WEATHER.name,
          description: WEATHER.description,
          parameters: z.object({ city: z.string() }),
          execute: async (given) => forecastOf(given),
        });
        check((await run(say('tool'), { tools: [weather] })).finalOutput, words.toolAnswer);
      },
      structured: async () => {
        const outputType = z.object({ city: z.string(), degrees: z.number() });
        check((await run(say('typed'), { outputType })).finalOutput.degrees, 4);
      },
      picture: async () => {
        const input = user(
          { type: 'input_text', text: say('see') },
          { type: 'input_image', image: image.url },
        );
        check((await run(input)).finalOutput, image.answer);
      },
      file: async () => {
        const file = { type: 'input_file', file: pdf.url, filename: 'plan.pdf' };
        check((await run(user({ type: 'input_text', text: say('see') }, file))).finalOutput, pdf.answer);
      },
      abort: async () => {
        const stop = new AbortController();
        const result = await run(say('slow'), {}, { stream: true, signal: stop.signal });
        for await (const _ of result.toTextStream()) stop.abort();
      },
      error: async () => check((await run(say('fail')).catch((error) => error)) instanceof Error, true),
      usage: async () => check((await run(say('hello'))).state.usage.totalTokens > 0, true),
      'edited history': async () => {
        const first = await run(say('first'));
        const edited = [...user({ type: 'input_text', text: say('edited') }), ...first.history.slice(1)];
        const recall = [...edited, ...user({ type: 'input_text', text: say('recall') })];
        check((await run(recall)).finalOutput, words.recalled);
      },
    };
  };

export const chat = clientOf(OpenAIChatCompletionsModel);
export const responses = clientOf(OpenAIResponsesModel);
