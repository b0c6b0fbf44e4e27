import OpenAI from 'openai';
import { FORECAST, forecastOf, image, pdf, WEATHER, words } from './expected.mjs';

/** The package `openai`: chat completions, and the Responses API. */

const tool = { name: WEATHER.name, description: WEATHER.description, parameters: WEATHER.parameters };

export const chat = ({ url, key, check, say }) => {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const create = (messages, more = {}) => openai.chat.completions.create({ model: 'pm', messages, ...more });
  const user = (content) => ({ role: 'user', content });
  const textOf = (answer) => answer.choices[0].message.content;
  return {
    text: async () => check(textOf(await create([user(say('hello'))])), words.helloAnswer),
    stream: async () => {
      let text = '';
      let pieces = 0;
      for await (const { choices } of await create([user(say('hello'))], { stream: true })) {
        text += choices[0]?.delta.content ?? '';
        pieces += choices[0]?.delta.content ? 1 : 0;
      }
      check(text, words.helloAnswer);
      check(pieces > 1, true);
    },
    'client tools': async () => {
      const tools = [{ type: 'function', function: tool }];
      const asked = user(say('tool'));
      const first = (await create([asked], { tools })).choices[0].message;
      const results = first.tool_calls.map(({ id, function: called }) => ({
        ...{ role: 'tool', tool_call_id: id, content: forecastOf(JSON.parse(called.arguments)) },
      }));
      check(textOf(await create([asked, first, ...results], { tools })), words.toolAnswer);
    },
    structured: async () => {
      const json_schema = { name: 'forecast', strict: true, schema: FORECAST };
      const answer = await create([user(say('typed'))], {
        response_format: { type: 'json_schema', json_schema },
      });
      check(JSON.parse(textOf(answer)).degrees, 4);
    },
    picture: async () =>
      check(
        textOf(
          await create([
            user([
              { type: 'text', text: say('see') },
              { type: 'image_url', image_url: { url: image.url } },
            ]),
          ]),
        ),
        image.answer,
      ),
    file: async () =>
      check(
        textOf(
          await create([
            user([
              { type: 'text', text: say('see') },
              { type: 'file', file: { filename: 'plan.pdf', file_data: pdf.url } },
            ]),
          ]),
        ),
        pdf.answer,
      ),
    abort: async () => {
      const stream = await create([user(say('slow'))], { stream: true });
      for await (const _ of stream) break;
      stream.controller.abort();
    },
    error: async () => {
      const error = await create([user(say('fail'))]).catch((error) => error);
      check(error instanceof OpenAI.APIError && error.status >= 400, true);
    },
    usage: async () => check((await create([user(say('hello'))])).usage.total_tokens > 0, true),
    'edited history': async () => {
      const answer = textOf(await create([user(say('first'))]));
      const edited = [user(say('edited')), { role: 'assistant', content: answer }, user(say('recall'))];
      check(textOf(await create(edited)), words.recalled);
    },
  };
};

export const responses = ({ url, key, check, say }) => {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const create = (input, more = {}) => openai.responses.create({ model: 'pm', input, ...more });
  const user = (...content) => [{ role: 'user', content }];
  return {
    text: async () => check((await create(say('hello'))).output_text, words.helloAnswer),
    stream: async () => {
      let text = '';
      let pieces = 0;
      for await (const event of await create(say('hello'), { stream: true })) {
        if (event.type !== 'response.output_text.delta') continue;
        text += event.delta;
        pieces += 1;
      }
      check(text, words.helloAnswer);
      check(pieces > 1, true);
    },
    'client tools': async () => {
      const tools = [{ type: 'function', ...tool, strict: false }];
      const first = await create(say('tool'), { tools });
      const outputs = first.output
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id, arguments: given }) => ({
          ...{ type: 'function_call_output', call_id, output: forecastOf(JSON.parse(given)) },
        }));
      const second = await create(outputs, { tools, previous_response_id: first.id });
      check(second.output_text, words.toolAnswer);
    },
    structured: async () => {
      const format = { type: 'json_schema', name: 'forecast', strict: true, schema: FORECAST };
      check(JSON.parse((await create(say('typed'), { text: { format } })).output_text).degrees, 4);
    },
    picture: async () => {
      const parts = user(
        { type: 'input_text', text: say('see') },
        { type: 'input_image', image_url: image.url, detail: 'auto' },
      );
      check((await create(parts)).output_text, image.answer);
    },
    file: async () => {
      const parts = user(
        { type: 'input_text', text: say('see') },
        { type: 'input_file', filename: 'plan.pdf', file_data: pdf.url },
      );
      check((await create(parts)).output_text, pdf.answer);
    },
    abort: async () => {
      const started = await create(say('slow'), { background: true });
      check((await openai.responses.cancel(started.id)).status, 'cancelled');
    },
    error: async () => {
      const answer = await create(say('fail')).catch((error) => error);
      check(answer instanceof OpenAI.APIError || answer.status === 'failed', true);
    },
    usage: async () => check((await create(say('hello'))).usage.total_tokens > 0, true),
    'edited history': async () => {
      const first = await create(say('first'));
      await create('And more.', { previous_response_id: first.id });
      const fork = await create(say('recall'), { previous_response_id: first.id });
      check(fork.output_text, words.recalledFirst);
    },
  };
};
