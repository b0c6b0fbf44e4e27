import { HttpAgent } from '@ag-ui/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import { runCli } from '../support/cli.ts';
import type { FakeHandler } from '../support/fake-provider.ts';
import { posting } from '../support/http.ts';
import { followUntil, ofType, outcomesOf, turnsEnded } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';

const BEGINNING = 'A beginning';
const NOTICE = {
  length: 'cut at the output limit (length)',
  content_filter: 'cut by the content filter of the provider (content_filter)',
  refusal: 'a refusal of the model (refusal)',
  pause: 'paused by the provider (pause)',
  interrupted: 'cut because the provider did not send its end (interrupted)',
} as const;
/** A reason, and no end of the stream. */
const HALF = [
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: BEGINNING } }] })}\n\n`,
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`,
];
type Reason = keyof typeof NOTICE;
const REASONS = Object.keys(NOTICE) as Reason[];
/** The protocol has three reasons. */
const V1_REASON = {
  length: 'length',
  content_filter: 'content_filter',
  refusal: 'content_filter',
  pause: 'length',
  interrupted: 'length',
} as const satisfies Record<Reason, string>;

describe('a finish reason that is not the usual one', () => {
  let handler: FakeHandler;

  const project = sharedProject({
    settings: { limits: { modelCallsPerTurn: 2 } },
    model: (request, count) => handler(request, count),
    agents: { pm: '---\nname: Pam\n---\nYou plan.' },
    http: true,
  });
  const { provider, client } = project;

  const ends = (reason: string) => () =>
    reason === 'interrupted'
      ? { body: HALF, drop: 'after-text' as const }
      : { text: BEGINNING, finishReason: reason };

  async function ask(conversation: string, content = 'go', turns = 1): Promise<readonly Entry[]> {
    await client.post({ conversation, publisher: 'alice', content });
    return followUntil(client, conversation, turnsEnded(turns));
  }

  async function postJson(path: string, body: object): Promise<string> {
    return (await fetch(`${project.http}${path}`, posting(body, { 'a2a-version': '1.0' }))).text();
  }

  /** What a person or program is given through one entry point, and what it must contain. */
  type EntryPoint = (conversation: string, reason: Reason) => Promise<string>;
  const ENTRY_POINTS: readonly [string, EntryPoint, (reason: Reason) => string][] = [
    [
      '`show`',
      async (id) => {
        await ask(id);
        return (await project.parley('show', id)).stdout;
      },
      (reason) => `(${NOTICE[reason]})`,
    ],
    [
      '`say --wait`',
      async (id) => {
        const said = await project.parley('say', id, 'go', '--wait');
        return `${said.stdout}${said.stderr}`;
      },
      (reason) => NOTICE[reason],
    ],
    [
      '`tail`',
      async (id, reason) => {
        await ask(id);
        const enough = new AbortController();
        const tail = await runCli(['tail', id, '--from', '0', '--data', project.data], {
          signal: enough.signal,
          onOutput: (output) => {
            if (output.includes(NOTICE[reason])) enough.abort();
          },
        });
        return tail.stdout;
      },
      (reason) => `(${NOTICE[reason]})`,
    ],
    [
      '`chat`',
      async (id) => (await project.parleyWithInput('go\n', 'chat', id)).stdout,
      (reason) => NOTICE[reason],
    ],
    [
      'the entries of /api',
      async (id) => {
        await ask(id);
        return (await fetch(`${project.http}/api/conversations/${id}/entries`)).text();
      },
      (reason) => `"finishReason":"${reason}"`,
    ],
    [
      'server-sent events',
      async (id) => {
        await ask(id);
        const stop = new AbortController();
        const answer = await fetch(`${project.http}/api/conversations/${id}/events?from=0`, {
          signal: stop.signal,
        });
        let text = '';
        for await (const piece of answer.body ?? []) {
          text += Buffer.from(piece).toString();
          if (text.includes('turn-ended')) break;
        }
        stop.abort();
        return text;
      },
      (reason) => `"finishReason":"${reason}"`,
    ],
    [
      '/v1',
      () => {
        const openai = new OpenAI({ baseURL: `${project.http}/v1`, apiKey: 'none', maxRetries: 0 });
        const messages = [{ role: 'user' as const, content: `${Math.random()}` }];
        return openai.chat.completions.create({ model: 'pm', messages }).then((one) => JSON.stringify(one));
      },
      (reason) => `"finish_reason":"${V1_REASON[reason]}"`,
    ],
    [
      '/v1 as a stream',
      () => {
        const messages = [{ role: 'user', content: `${Math.random()}` }];
        return postJson('/v1/chat/completions', { model: 'pm', messages, stream: true }).then((text) => {
          const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece);
          return `${words.join('')}\n${text}`;
        });
      },
      (reason) => `"finish_reason":"${V1_REASON[reason]}"`,
    ],
    [
      'A2A',
      (contextId) => {
        const message = { role: 'ROLE_USER', messageId: 'm1', contextId, parts: [{ text: 'go' }] };
        return postJson('/a2a/pm', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } });
      },
      (reason) => `"metadata":{"finishReason":"${reason}"}`,
    ],
    [
      'AG-UI',
      async (threadId) => {
        const agent = new HttpAgent({ url: `${project.http}/ag-ui/pm`, threadId });
        agent.addMessage({ id: 'm1', role: 'user', content: 'go' });
        const events: unknown[] = [];
        const { newMessages } = await agent.runAgent({}, { onEvent: ({ event }) => void events.push(event) });
        return JSON.stringify([newMessages, events]);
      },
      // Its turn ended at the limit of model calls, which is an error of the run.
      (reason) => (reason === 'pause' ? '"code":"LIMIT_REACHED"' : `"result":{"finishReason":"${reason}"}`),
    ],
    [
      'MCP',
      async (conversation) => {
        const mcp = new Client({ name: 'test', version: '1' });
        // The SDK's own types disagree about optional fields.
        await mcp.connect(new StreamableHTTPClientTransport(new URL(`${project.http}/mcp`)) as never);
        const args = { conversation, content: 'go', waitSeconds: 20 };
        const answer = await mcp.callTool({ name: 'post', arguments: args });
        await mcp.close();
        return JSON.stringify(answer);
      },
      (reason) => NOTICE[reason],
    ],
  ];

  const TABLE = ENTRY_POINTS.flatMap(([name, read, shown]) =>
    REASONS.map((reason) => [name, reason, read, shown] as const),
  );

  it.each(TABLE)(
    '%s reports an answer that ended with %s, and its words',
    async (name, reason, read, shown) => {
      handler = ends(reason);
      const conversation = `${name.replaceAll(/\W+/g, '-')}-${reason}`.replace(/^-/, 'c');
      const text = await read(conversation, reason);
      expect(text).toContain(BEGINNING);
      expect(text).toContain(shown(reason));
    },
  );

  it.each(['length', 'content_filter', 'interrupted'])(
    'a turn whose answer was cut by %s is shown as cut',
    async (reason) => {
      handler = ends(reason);
      const entries = await ask(`turn-${reason}`);
      expect(entries.at(-1)).toMatchObject({
        type: 'turn-ended',
        outcome: 'completed',
        finishReason: reason,
      });
      const { stdout } = await project.parley('show', `turn-${reason}`);
      expect(stdout).toContain("pm's turn ended: completed, its answer was cut");
    },
  );

  it('the request after "continue" contains the answer that was cut', async () => {
    handler = (_, count) => ({ text: `part ${count}`, finishReason: 'length' });
    await ask('continued');
    const before = provider.requests.length;
    handler = () => ({ text: 'and the rest' });
    const entries = await ask('continued', 'continue', 2);
    const messages = provider.requests[before]?.json.messages ?? [];
    expect(messages.slice(-3).map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(messages.at(-2)?.content).toMatch(/^part \d+$/);
    expect(messages.at(-1)?.content).toBe('continue');
    expect(outcomesOf(entries, 'pm')).toEqual(['completed', 'completed']);
  });

  it('the daemon continues a paused answer by itself, in the same turn', async () => {
    handler = ({ json }) =>
      json.messages?.at(-1)?.role === 'user'
        ? { text: BEGINNING, finishReason: 'pause_turn' }
        : { text: 'The end.' };
    const entries = await ask('paused');
    const answers = ofType(entries, 'message').filter(({ role }) => role === 'assistant');
    expect(answers.map(({ content, finishReason }) => [content, finishReason])).toEqual([
      [BEGINNING, 'pause'],
      ['The end.', 'stop'],
    ]);
    expect(outcomesOf(entries, 'pm')).toEqual(['completed']);
    expect(entries.at(-1)).not.toHaveProperty('finishReason');
    const last = provider.requests.at(-1)?.json.messages ?? [];
    expect(last.at(-2)).toEqual({ role: 'assistant', content: BEGINNING });
    expect(last.at(-1)?.content).toContain('CONTINUE YOUR ANSWER');
    expect(checkLaws(entries)).toEqual([]);
    for (const { index } of answers) {
      const { report } = await client.request('view', { conversation: 'paused', agent: 'pm', at: index });
      expect(report.sent).toBe(true);
    }
  });

  it('an answer that is paused again and again ends at the limit of model calls', async () => {
    handler = ends('pause_turn');
    const entries = await ask('paused-for-ever');
    expect(outcomesOf(entries, 'pm')).toEqual(['limited']);
    expect(ofType(entries, 'limit-reached')[0]).toMatchObject({ limit: 'modelCallsPerTurn' });
    expect(checkLaws(entries)).toEqual([]);
  });

  it('a pause before any text is a failure with its advice', async () => {
    handler = () => ({ reasoning: 'hm', finishReason: 'pause_turn' });
    const entries = await ask('paused-at-once');
    expect(outcomesOf(entries, 'pm')).toEqual(['failed']);
    expect(JSON.stringify(entries)).toContain('ANSWER_PAUSED');
  });
});
