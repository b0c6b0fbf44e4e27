import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Entry, estimateTokens, expand } from '../../src/conversation/index.ts';
import type { FakeHandler, FakeProvider, FakeReply, FakeRequest } from '../support/fake-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { ask, checkLog, followUntil, turnsEnded } from '../support/log.ts';
import { modelAt, openProject, type Project } from '../support/project.ts';
import { reported } from '../support/too-long.ts';

/** Conversations that exceed their model's window, as a provider receives them. */

const ROOM = 3_000;
const LONG = 'word '.repeat(400); // 500 tokens
/** A request for a summary is marked in its prefix. */
const isSummary = (request: FakeRequest | undefined) =>
  request?.json.messages?.[0]?.content?.startsWith('You summarise') ?? false;
const textOf = (request: FakeRequest | undefined) =>
  (request?.json.messages ?? []).map(({ content }) => content ?? '').join('\n');

describe('a conversation that exceeds the window of its model', () => {
  let provider: FakeProvider;
  let project: Project;

  async function start(model: FakeHandler, more: object = {}): Promise<void> {
    const window = { contextTokens: ROOM + 500, maxOutputTokens: 500 };
    const agents = {
      pm: '---\nname: Pam\nphases: [chat]\ntools: [recall]\n---\nYou plan.',
      dev: '---\nname: Dev\ntools: [recall]\n---\nYou build.',
    };
    const settings = (url: string) => ({ ...more, models: { default: { ...modelAt(url), ...window } } });
    project = untilTestEnds(await openProject({ nats: {}, model, settings, agents }));
    provider = project.provider;
  }

  /** Posts one message after the answer to the one before. Returns the log. */
  async function talk(posts: readonly string[]): Promise<Entry[]> {
    const client = await project.connect();
    let entries: Entry[] = [];
    for (const content of posts) {
      entries = await ask(client, 'demo', content);
    }
    await client.close();
    return entries;
  }

  function expectAllFit(): void {
    for (const { json, body } of provider.requests) {
      expect(estimateTokens(textOf({ json } as FakeRequest))).toBeLessThanOrEqual(ROOM);
      expect(body.length).toBeGreaterThan(0);
    }
  }

  /** `explain --at` prints every answer's request to the byte. */
  async function expectExplained(entries: readonly Entry[], requests: readonly FakeRequest[]) {
    const answers = entries.filter(
      (entry) => entry.type === 'message' && entry.role === 'assistant' && entry.author.id === 'pm',
    );
    expect(answers.length).toBe(requests.length);
    const at = [0, Math.floor(answers.length / 2), answers.length - 1];
    for (const n of new Set(at)) {
      const where = [
        '--agent',
        'pm',
        '--at',
        String(answers[n]?.index),
        '--json',
        '--config',
        project.config,
      ];
      const [explained] = (await project.parley('explain', 'demo', ...where)).json() as {
        messages: unknown;
        report: { requestHash: string };
      }[];
      const body = requests[n]?.body ?? Buffer.alloc(0);
      expect(explained?.messages).toEqual(requests[n]?.json.messages);
      expect(explained?.report.requestHash).toBe(createHash('sha256').update(body).digest('hex'));
    }
  }

  it('the view is reduced within a first turn of three hundred calls, and every request fits and can be explained', async () => {
    // A loop of calls ends the turn (REPEATED-CALLS-2). The Thue-Morse sequence repeats nothing three times in a row.
    const parity = (count: number) => count.toString(2).replaceAll('0', '').length % 2;
    const call = (entry: number): FakeReply => ({
      text: 'I go on looking.',
      toolCalls: [{ name: 'recall', arguments: JSON.stringify({ from: entry, to: entry }) }],
    });
    await start((_, count) => (count < 300 ? call(parity(count)) : { text: 'done' }), {
      limits: { modelCallsPerTurn: 400 },
    });
    const daemon = await project.up();
    const entries = await talk(['Look at it three hundred times. Never forget: the key is blue.']);
    const reduced = entries.filter((entry) => entry.type === 'summary');
    expect(reduced.length).toBeGreaterThan(2);
    expect(reduced.length).toBeLessThan(60); // the cut is the same for many calls
    expect(provider.requests).toHaveLength(301);
    expectAllFit();
    const last = textOf(provider.requests.at(-1));
    expect(last).toContain('the key is blue');
    expect(last).toMatch(/=== SUMMARY OF ENTRIES \d+ TO \d+ ===[\s\S]*Tools you used: recall \d+×/);
    expect(await daemon.stop()).toBe(0);
    await expectExplained(entries, provider.requests);
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });

  it('an agent that joins late gets a notice of what it was not shown, its cursor advances, and it can recall the rest', async () => {
    await start((request) => {
      const last = request.json.messages?.at(-1);
      if (last?.role === 'user' && last.content?.includes('@dev'))
        return { toolCalls: [{ name: 'recall', arguments: '{"from":0,"to":0}' }] };
      return { text: `noted ${LONG}` };
    });
    await project.up();
    const posts = Array.from({ length: 8 }, (_, at) => `fact ${at}. ${LONG}`);
    const entries = await talk([...posts, '@dev what was fact 0?']);
    expectAllFit();
    const left = entries.flatMap((entry) =>
      entry.type === 'summary' && entry.agent === 'dev' ? [entry] : [],
    );
    expect(left.flatMap((entry) => expand(entry.leftOut ?? []))).toContain(0);
    expect(left.flatMap((entry) => expand(entry.entries))).not.toContain(0);
    const [asked, after] = provider.requests.slice(-2);
    expect(textOf(asked)).toMatch(/Left out: what others said in entries 0[\s\S]*did not fit/);
    expect(textOf(after)).toContain('fact 0.');
    expect(entries.at(-1)).toMatchObject({ agent: 'dev', lastProcessedMessageIndex: entries.length });
  });

  const TOO_LONG = reported(`
    OpenAI | 400 | {"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 2000 tokens."}}
    llama.cpp | 400 | {"error":{"code":400,"type":"exceed_context_size_error","message":"the request exceeds the available context size, try increasing it"}}
    vLLM | 400 | {"object":"error","type":"BadRequestError","message":"This model's maximum context length is 2000 tokens. However, you requested 2600 tokens. Please reduce the length of the messages."}
    Ollama | 400 | {"error":{"message":"the input length exceeds the context length"}}
    a proxy | 413 | {"error":{"message":"prompt is too long: 2600 tokens > 2000 maximum"}}
  `);

  it.each(TOO_LONG)(
    'the view is reduced once more if %s refuses the request as too long',
    async (_, status, body) => {
      let refusals = 0;
      await start((request) => {
        if (!textOf(request).includes('now?') || refusals > 0) return { text: 'fine' };
        refusals++;
        return { status, body: { ...(body as object) } };
      });
      await project.up();
      const entries = await talk([LONG, LONG, 'now?']);
      expect(refusals).toBe(1);
      const [refused, taken] = provider.requests.slice(-2);
      expect(taken?.body.length).toBeLessThan((refused?.body.length ?? 0) * 0.8);
      expect(entries.filter((entry) => entry.type === 'summary')).toHaveLength(1);
      expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
      expect(JSON.stringify(entries)).not.toContain('LLM_ERROR');
    },
  );

  it('the summary is written once, even if the daemon is killed during it', async () => {
    let summaries = 0;
    const handler: FakeHandler = (request) => {
      if (!isSummary(request)) return { text: `noted. ${LONG}` };
      summaries++;
      return summaries === 1 ? { text: 'half of', hang: 'after-text' } : { text: 'Alice posted facts.' };
    };
    await start(handler, { context: { summaryModel: 'default' } });
    const first = await project.up();
    await talk([`fact 0. ${LONG}`, `fact 1. ${LONG}`]);
    const client = await project.connect();
    await client.post({ conversation: 'demo', publisher: 'alice', content: `fact 2. ${LONG}` });
    await expect.poll(() => summaries).toBe(1);
    await first.kill9();
    const second = await project.up();
    const entries = await followUntil(client, 'demo', turnsEnded(3));
    expect(summaries).toBe(2);
    expect(entries.filter((entry) => entry.type === 'summary')).toMatchObject([{ writtenBy: 'model' }]);
    const answered = provider.requests.filter((request) => !isSummary(request));
    expect(textOf(answered.at(-1))).toContain('- Alice posted facts.');
    expect(await second.stop()).toBe(0);
    await expectExplained(entries, answered);
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });
});
