import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A model endpoint in a process of its own that streams chat completions. First argument: milliseconds between two
 * tokens; 0 answers at once. Second argument: tokens in an answer. A token of a paced answer is the time at which
 * it was sent (`stamp`), so that a reader knows its delay.
 */

const [paceArgument = '0', tokenArgument = '12'] = process.argv.slice(2);
const pace = Number(paceArgument);
const tokens = Number(tokenArgument);

/** Four characters of base 36 in steps of 0.1 ms, and a space. It repeats after 168 s. */
export const STAMPS = 36 ** 4;
export function stampOf(time: number): number {
  return Math.round(time * 10) % STAMPS;
}

function chunk(content: string, finish: string | null = null): string {
  const choices = [{ index: 0, delta: { content }, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'bench', choices })}\n\n`;
}

const usage = { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 };
const end = `${chunk('', 'stop')}data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [], usage })}\n\ndata: [DONE]\n\n`;
const words = Array.from({ length: tokens }, (_, at) => chunk(`word${at} `)).join('');

function answerPaced(response: ServerResponse): void {
  let sent = 0;
  const timer = setInterval(() => {
    const now = performance.timeOrigin + performance.now();
    response.write(chunk(`${stampOf(now).toString(36).padStart(4, '0')} `));
    sent += 1;
    if (sent < tokens) return;
    clearInterval(timer);
    response.end(end);
  }, pace);
  response.once('close', () => clearInterval(timer));
}

function listen(): void {
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (pace > 0) return answerPaced(response);
      response.write(chunk(''));
      setImmediate(() => response.end(words + end));
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => {
    process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
  });
  process.on('disconnect', () => process.exit());
}

if (process.send && process.argv[1]?.endsWith('endpoint.ts')) listen();
