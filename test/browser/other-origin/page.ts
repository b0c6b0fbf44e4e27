import { type Part, Role } from '@a2a-js/sdk';
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client';
import { HttpAgent } from '@ag-ui/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import OpenAI from 'openai';

/** The code of the page: clients as their packages ship them, bundled for a browser. */

declare const EventSource: new (
  url: string,
) => {
  addEventListener(type: string, listener: (event: { data: string; lastEventId: string }) => void): void;
  onerror: (event: unknown) => void;
  close(): void;
};

export interface Daemon {
  readonly url: string;
  readonly token: string | null;
}

const headersOf = ({ token }: Daemon): Record<string, string> =>
  token === null ? {} : { authorization: `Bearer ${token}` };

async function openai(daemon: Daemon) {
  const own = new OpenAI({
    baseURL: `${daemon.url}/v1`,
    apiKey: daemon.token ?? 'none',
    dangerouslyAllowBrowser: true,
    maxRetries: 0,
  });
  const models = await own.models.list();
  const messages = [{ role: 'user' as const, content: 'Hello by openai' }];
  const { data, response } = await own.chat.completions.create({ model: 'lead', messages }).withResponse();
  let streamed = '';
  const stream = await own.chat.completions.create({
    model: 'lead',
    messages,
    stream: true,
    user: 'streamed',
  });
  for await (const chunk of stream) streamed += chunk.choices[0]?.delta.content ?? '';
  const failed = await own.chat.completions.create({ model: 'nobody', messages }).catch((error) => error);
  return {
    models: models.data.map(({ id }) => id),
    answer: data.choices[0]?.message.content,
    conversation: response.headers.get('x-parley-conversation'),
    streamed,
    failed: [failed.status, failed.code],
  };
}

async function agUi(daemon: Daemon) {
  const agent = new HttpAgent({
    url: `${daemon.url}/ag-ui/lead`,
    threadId: `by-ag-ui-${daemon.token ?? 'none'}`,
    headers: headersOf(daemon),
  });
  agent.addMessage({ id: 'first', role: 'user', content: 'Hello by AG-UI' });
  await agent.runAgent();
  return { answer: agent.messages.at(-1)?.content, phase: agent.state.phase };
}

async function mcp(daemon: Daemon) {
  const client = new Client({ name: 'page', version: '1' });
  const requestInit = { headers: headersOf(daemon) };
  const transport = new StreamableHTTPClientTransport(new URL(`${daemon.url}/mcp`), { requestInit });
  await client.connect(transport as never);
  const { tools } = await client.listTools();
  const posted = await client.callTool({
    name: 'post',
    arguments: { content: 'Hello by MCP', to: ['lead'], waitSeconds: 20 },
  });
  await client.close();
  return { tools: tools.map(({ name }) => name), posted: JSON.stringify(posted) };
}

async function a2a(daemon: Daemon) {
  const fetchImpl = (input: string | URL | Request, init: RequestInit = {}) =>
    fetch(input, {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init.headers)), ...headersOf(daemon) },
    });
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  const card = `${daemon.url}/a2a/lead/.well-known/agent-card.json`;
  const client = await new ClientFactory(options).createFromUrl(card, '');
  const message = (value: string) => {
    const part: Part = {
      content: { $case: 'text', value },
      metadata: undefined,
      filename: '',
      mediaType: '',
    };
    return {
      tenant: '',
      configuration: undefined,
      metadata: undefined,
      message: {
        messageId: value,
        contextId: '',
        taskId: '',
        role: Role.ROLE_USER,
        parts: [part],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      },
    };
  };
  const sent = await client.sendMessage(message('Hello by A2A'));
  let streamed = '';
  for await (const { payload } of client.sendMessageStream(message('Streamed by A2A'))) {
    const parts = payload?.$case === 'artifactUpdate' ? payload.value.artifact?.parts : undefined;
    for (const { content } of parts ?? []) streamed += content?.value ?? '';
  }
  return { sent: JSON.stringify(sent), streamed };
}

/** The indexes of this many entries, by `EventSource`. */
function eventSource(daemon: Daemon, conversation: string, count: number): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const source = new EventSource(`${daemon.url}/api/conversations/${conversation}/events`);
    const indexes: number[] = [];
    source.onerror = () => reject(new Error('EventSource failed'));
    source.addEventListener('entry', ({ lastEventId }) => {
      indexes.push(Number(lastEventId));
      if (indexes.length < count) return;
      source.close();
      resolve(indexes);
    });
  });
}

/** The first entry after an index, by `fetch`, which can send a token. */
async function fetchEvents(daemon: Daemon, conversation: string, lastEventId: string): Promise<string> {
  const abort = new AbortController();
  const answer = await fetch(`${daemon.url}/api/conversations/${conversation}/events`, {
    headers: { ...headersOf(daemon), 'last-event-id': lastEventId },
    signal: abort.signal,
  });
  let text = '';
  for await (const piece of answer.body!.pipeThrough(
    new TextDecoderStream(),
  ) as unknown as AsyncIterable<string>) {
    text += piece;
    const entry = /^id: .*$/m.exec(text);
    if (!entry) continue;
    abort.abort();
    return entry[0];
  }
  return text;
}

/** One request of a page. Rejects if the browser hides the answer. */
async function ask(
  daemon: Daemon,
  method: string,
  path: string,
  body?: string,
  more: Record<string, string> = {},
) {
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  try {
    const answer = await fetch(`${daemon.url}${path}`, {
      method,
      headers: { ...headersOf(daemon), ...type, ...more },
      ...(body !== undefined && { body }),
    });
    const said = (await answer.json().catch(() => ({}))) as { code?: string; error?: { code?: string } };
    return {
      status: answer.status,
      code: said.code ?? said.error?.code ?? null,
      headers: Object.fromEntries(answer.headers),
    };
  } catch (error) {
    return { status: 0, code: String(error), headers: {} };
  }
}

const clients = { openai, agUi, mcp, a2a, eventSource, fetchEvents, ask };
export type Clients = typeof clients;
Object.assign(globalThis, { clients });
