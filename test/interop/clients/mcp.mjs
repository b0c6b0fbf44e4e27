import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { FORECAST, image, pdf, words } from './expected.mjs';

/** The client of `@modelcontextprotocol/sdk`, with the tools of Parley. */

export const client = ({ url, key, check, say }) => {
  const call = async (name, given, options) => {
    const own = new Client({ name: 'interop', version: '1' });
    const requestInit = { headers: { authorization: `Bearer ${key}` } };
    await own.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
    try {
      return await own.callTool({ name, arguments: given }, undefined, options);
    } finally {
      await own.close();
    }
  };
  const post = (content, more = {}, options) =>
    call('post', { content, to: ['pm'], waitSeconds: 20, ...more }, options);
  const has = (result, text) => check(JSON.stringify(result.content).includes(text), true);
  const file = ({ base64 }, name) => ({ files: [{ data: base64, name }] });
  return {
    text: async () => has(await post(say('hello')), words.helloAnswer),
    stream: 'n/a',
    'client tools': 'n/a',
    structured: async () => {
      const { structuredContent } = await post(say('typed'), { schema: FORECAST });
      check(JSON.stringify(structuredContent).includes('"degrees":4'), true);
    },
    picture: async () => has(await post(say('see'), file(image, 'one.png')), image.answer),
    file: async () => has(await post(say('see'), file(pdf, 'plan.pdf')), pdf.answer),
    abort: async () => {
      const started = await post(say('slow'), { waitSeconds: 1 });
      check(started.structuredContent.status, 'running');
      const stopped = await call('stop', { conversation: started.structuredContent.conversation });
      check(stopped.isError ?? false, false);
    },
    error: async () => has(await post(say('fail')), 'the model refuses'),
    usage: 'n/a',
    'edited history': 'n/a',
  };
};
