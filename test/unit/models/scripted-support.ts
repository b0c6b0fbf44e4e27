import { createHash } from 'node:crypto';
import type { Model, ModelDelta, ModelRequest, WireMessage } from '../../../src/agents/model-port.ts';
import { createScriptedModel } from '../../../src/models/index.ts';
import type { Script } from '../../../src/models/scripted/script.ts';

export function requestOf(messages: readonly WireMessage[], agent = 'dev'): ModelRequest {
  const body = new TextEncoder().encode(JSON.stringify({ model: 'scripted', agent, messages }));
  const hash = createHash('sha256').update(body).digest('hex');
  return { conversation: 'demo', agent, turnId: 't1', messages, tools: [], body: [body], hash, headers: {} };
}

/** One call of a new model without delays, unless a model is given. */
export async function ask(
  script: Script,
  request: ModelRequest,
  model: Model = createScriptedModel(script, { sleep: async () => {} }),
  signal: AbortSignal = new AbortController().signal,
) {
  const deltas: ModelDelta[] = [];
  const outcome = await model.call(request, { signal, onDelta: (delta) => deltas.push(delta) });
  const text = deltas.map((delta) => (delta.type === 'text' ? delta.delta : '')).join('');
  return { outcome, deltas, text };
}

export async function say(script: Script, messages: readonly WireMessage[], agent?: string): Promise<string> {
  return (await ask(script, requestOf(messages, agent))).text;
}

/** A conversation: each answer becomes part of the next request, and each call uses a new process. */
export async function replyTo(script: Script, told: readonly string[], agent?: string): Promise<string[]> {
  const messages: WireMessage[] = [{ role: 'system', content: 'prefix' }];
  const answers: string[] = [];
  for (const content of told) {
    messages.push({ role: 'user', content });
    const answer = await say(script, messages, agent);
    messages.push({ role: 'assistant', content: answer });
    answers.push(answer);
  }
  return answers;
}
