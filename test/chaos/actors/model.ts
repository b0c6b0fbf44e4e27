import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { replyTo, type ScenarioMessage, type ScenarioReply } from '../scenario.ts';

/** A model provider on loopback that speaks chat completions, answers by the scenario, and fails on demand. */
export interface ModelActor {
  /** For `baseURL`. */
  readonly url: string;
  readonly requests: number;
  misbehave(how: Misbehaviour): void;
  /** Ends the answers that hang. */
  heal(): void;
  close(): Promise<void>;
}

type Misbehaviour = 'hang' | 'error' | 'busy' | 'drop';

/** Between two words. Long enough that kills interrupt answers. */
const WORD_MS = 15;

export async function createModelActor(): Promise<ModelActor> {
  let mood: Misbehaviour | null = null;
  let requests = 0;
  const hanging = new Set<ServerResponse>();
  const server = createServer((incoming, response) => {
    response.on('error', () => response.destroy());
    response.once('close', () => hanging.delete(response));
    readMessages(incoming)
      .then(async (messages) => {
        requests += 1;
        if (mood === 'hang') hanging.add(response);
        else if (mood === 'error') refuse(response, 500, 'the provider failed');
        else if (mood === 'busy') refuse(response, 429, 'too many requests');
        else await answer(response, replyTo(messages), () => mood === 'drop');
      })
      .catch(() => response.destroy());
  });
  server.keepAliveTimeout = 0; // Otherwise a connection sometimes ends just as it is reused, which is no planned fault.
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const heal = () => {
    mood = null;
    for (const response of hanging) response.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get requests() {
      return requests;
    },
    misbehave(how) {
      mood = how;
    },
    heal,
    async close() {
      const closed = once(server, 'close');
      server.close();
      heal();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function readMessages(incoming: IncomingMessage): Promise<readonly ScenarioMessage[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()).messages;
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { message, type: 'chaos' } }));
}

async function answer(response: ServerResponse, reply: ScenarioReply, drops: () => boolean): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const say = (delta: object, finish: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const chunk = { id: 'chaos', object: 'chat.completion.chunk', created: 1, model: 'chaos', choices };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  for (const [at, word] of (reply.text?.split(/(?<= )/) ?? []).entries()) {
    await new Promise((resolve) => setTimeout(resolve, WORD_MS));
    if (at > 1 && drops()) return void response.destroy();
    say({ content: word });
  }
  for (const [index, call] of reply.calls.entries()) {
    const asked = { name: call.name, arguments: JSON.stringify(call.arguments) };
    // Providers repeat their ids, and so does this one.
    say({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: asked }] });
  }
  if (drops()) return void response.destroy();
  say({}, reply.calls.length > 0 ? 'tool_calls' : 'stop');
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  response.write(
    `data: ${JSON.stringify({ id: 'chaos', created: 1, model: 'chaos', choices: [], usage })}\n\n`,
  );
  response.end('data: [DONE]\n\n');
}
