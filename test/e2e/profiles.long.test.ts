import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { chunk, event, type FakeReply } from '../support/fake-provider.ts';
import { checkLog, followUntil, turnsEnded } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';
import { type Body, OPAQUE_ANSWERS, refusalsOf } from '../support/provider-rules.ts';

const ASK: FakeReply = {
  text: 'First the phase.',
  reasoning: 'They want a plan.',
  toolCalls: [{ name: 'set_phase', arguments: '{"phase":"plan","reason":"to plan"}' }],
};

/** What a call without a signature has for a model that checks signatures (CHAT-4). */
const MARK = { extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } };

describe('a daemon whose models have profiles', () => {
  /** The provider answers once this resolves. */
  let gate: Promise<void> = Promise.resolve();

  const modelsAt = (baseURL: string) => {
    const model = { provider: 'openai', baseURL, apiKey: 'sk-test' };
    return {
      default: { ...model, profile: 'deepseek' },
      strict: { ...model, profile: 'mistral' },
      signer: { ...model, profile: 'gemini', model: 'gemini-3' },
      whole: { ...model, profile: 'vllm', stream: false, parallelToolCalls: false },
    };
  };
  const agent = (name: string) =>
    `---\nname: ${name}\ndescription: works\nmodel: ${name}\ntools: [set_phase]\n---\nWORK`;
  const project = sharedProject({
    settings: (url) => ({ models: modelsAt(url), defaultAgent: 'thinker' }),
    model: async (request) => {
      await gate;
      const messages = request.json.messages ?? [];
      const plans = JSON.stringify(messages).includes('plan it');
      const isAnswered = messages.some(({ role }) => role === 'tool');
      const form = Object.entries(OPAQUE_ANSWERS).find(([name]) =>
        JSON.stringify(messages).includes(name),
      )?.[1];
      if (form && !isAnswered)
        return {
          body: [...form.deltas.map((delta) => chunk(delta)), chunk({}, 'tool_calls'), event('[DONE]')],
        };
      return plans && !isAnswered ? ASK : { text: 'Here it is.', reasoning: 'That was easy.' };
    },
    agents: {
      thinker: agent('default'),
      strict: agent('strict'),
      whole: agent('whole'),
      signer: agent('signer'),
    },
  });
  const { provider, client, daemon } = project;

  /** Posts and waits for the end of the turn. Returns the bodies of its requests. */
  async function ask(conversation: string, to: string, content: string, turns: number): Promise<Body[]> {
    const before = provider.requests.length;
    await client.post({ conversation, publisher: 'alice', content, to: [to] });
    await followUntil(client, conversation, turnsEnded(turns));
    expect(checkLog(await project.logFile(conversation))).toEqual([]);
    return provider.requests.slice(before).map((request) => request.json as unknown as Body);
  }

  it('a model gets its reasoning from before a tool call back, in this turn and in later ones', async () => {
    const [first, second] = await ask('thoughts', 'thinker', 'plan it', 1);
    const [third] = await ask('thoughts', 'thinker', 'thank you', 2);
    const thoughts = (body: Body | undefined) =>
      body?.messages.filter(({ role }) => role === 'assistant').map((said) => said.reasoning_content);
    expect([thoughts(first), thoughts(second)]).toEqual([[], ['They want a plan.']]);
    expect(thoughts(third)).toEqual(['They want a plan.', 'That was easy.']);
    for (const body of [first, second, third]) expect(body && refusalsOf('deepseek', body)).toEqual([]);
  });

  it('another provider gets neither reasoning nor ids that it would refuse', async () => {
    const bodies = await ask('ids', 'strict', 'plan it', 1);
    bodies.push(...(await ask('ids', 'strict', 'thank you', 2)));
    expect(bodies.length).toBe(3);
    for (const body of bodies) expect(refusalsOf('mistral', body)).toEqual([]);
    expect(JSON.stringify(bodies)).not.toContain('They want');
  });

  it('an answer that is not streamed is accepted if streams are off, and sent as live text', async () => {
    const live: string[] = [];
    const entries: Entry[] = [];
    let listening = (): void => {};
    gate = new Promise((resolve) => {
      listening = resolve;
    });
    const asked = ask('whole', 'whole', 'hello', 1);
    for await (const event of client.follow('whole')) {
      if (event.kind === 'live' && event.chunk.type === 'text') live.push(event.chunk.delta);
      if (event.kind === 'entry') {
        entries.push(event.entry);
        listening();
      }
      if (event.kind === 'entry' && event.entry.type === 'turn-ended') break;
    }
    const [body] = await asked;
    expect(body).toMatchObject({ stream: false, parallel_tool_calls: false });
    expect(body && refusalsOf('vllm', body)).toEqual([]);
    expect(live.filter((delta) => delta !== '')).toEqual(['Here it is.']);
    expect(entries.find((entry) => entry.type === 'message' && entry.role === 'assistant')).toMatchObject({
      content: 'Here it is.',
      reasoning: 'That was easy.',
      usage: { inputTokens: 10, outputTokens: 2 },
    });
  });

  it.each(Object.entries(OPAQUE_ANSWERS))(
    'the answer of %s returns with what only its model understands, in this turn, in the next one, and in `explain`',
    async (name, form) => {
      const id = `opaque-${Object.keys(OPAQUE_ANSWERS).indexOf(name)}`;
      const bodies = await ask(id, 'signer', name, 1);
      if (id === 'opaque-0') {
        await daemon.stop();
        await project.up();
      }
      bodies.push(...(await ask(id, 'signer', 'thank you', 2)));
      expect(bodies.length).toBe(3);
      for (const body of bodies.slice(1)) {
        const said = body.messages.find(({ tool_calls: calls }) => calls !== undefined);
        const call = { ...MARK, ...form.call };
        expect(said).toMatchObject({ ...form.message, tool_calls: [call] });
        expect(Object.keys(said?.tool_calls?.[0] ?? {}).sort()).toEqual(
          ['function', 'id', 'type', ...Object.keys(call)].sort(),
        );
      }
      const [{ messages }] = (await project.parley('explain', id, '--agent', 'signer', '--json')).json();
      expect(messages.slice(0, 4)).toEqual(bodies.at(-1)?.messages.slice(0, 4));
      if (form.call !== undefined && 'google' in Object(form.call.extra_content))
        for (const body of bodies) expect(refusalsOf('gemini', body)).toEqual([]);
    },
  );

  it('explain shows the request in the form in which it was sent', async () => {
    const ran = await project.parley('explain', 'ids', '--agent', 'strict', '--json');
    const [{ messages, report }] = ran.json();
    const roles = messages.map(({ role }: { role: string }) => role);
    expect(roles.slice(0, 5)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant']);
    expect(report.parts.length).toBe(messages.length);
    expect(messages[3].tool_call_id).toMatch(/^c[a-z0-9]{8}$/);
  });
});
