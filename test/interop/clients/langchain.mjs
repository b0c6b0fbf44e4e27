import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';
import { forecastOf, image, pdf, WEATHER, words } from './expected.mjs';

/** LangChain's `ChatOpenAI`; its tools run in the loop of LangGraph's prebuilt agent. */

const clientOf =
  (useResponsesApi) =>
  ({ url, key, check, say }) => {
    const model = new ChatOpenAI({
      ...{ model: 'pm', apiKey: key, maxRetries: 0, useResponsesApi },
      configuration: { baseURL: `${url}/v1` },
    });
    const seen = (part) =>
      model.invoke([new HumanMessage({ content: [{ type: 'text', text: say('see') }, part] })]);
    return {
      text: async () => check((await model.invoke(say('hello'))).text, words.helloAnswer),
      stream: async () => {
        let text = '';
        for await (const chunk of await model.stream(say('hello'))) text += chunk.text;
        check(text, words.helloAnswer);
      },
      'client tools': async () => {
        const weather = tool(async (given) => forecastOf(given), {
          name: WEATHER.name,
          description: WEATHER.description,
          schema: z.object({ city: z.string() }),
        });
        const agent = createReactAgent({ llm: model, tools: [weather] });
        const { messages } = await agent.invoke({ messages: [new HumanMessage(say('tool'))] });
        check(messages.at(-1).text, words.toolAnswer);
      },
      structured: async () => {
        const typed = model.withStructuredOutput(z.object({ city: z.string(), degrees: z.number() }), {
          method: 'jsonSchema',
        });
        check((await typed.invoke(say('typed'))).degrees, 4);
      },
      picture: async () =>
        check((await seen({ type: 'image_url', image_url: { url: image.url } })).text, image.answer),
      file: async () => {
        const file = {
          type: 'file',
          source_type: 'base64',
          mime_type: pdf.mediaType,
          data: pdf.base64,
          metadata: { filename: 'plan.pdf' },
        };
        check((await seen(file)).text, pdf.answer);
      },
      abort: async () => {
        const stop = new AbortController();
        const stream = await model.stream(say('slow'), { signal: stop.signal });
        try {
          for await (const _ of stream) stop.abort();
        } catch {
          check(stop.signal.aborted, true);
        }
      },
      error: async () =>
        check((await model.invoke(say('fail')).catch((error) => error)) instanceof Error, true),
      usage: async () => check((await model.invoke(say('hello'))).usage_metadata.total_tokens > 0, true),
      'edited history': async () => {
        const { text } = await model.invoke(say('first'));
        const edited = [
          new HumanMessage(say('edited')),
          new AIMessage(text),
          new HumanMessage(say('recall')),
        ];
        check((await model.invoke(edited)).text, words.recalled);
      },
    };
  };

export const chat = clientOf(false);
export const responses = clientOf(true);
