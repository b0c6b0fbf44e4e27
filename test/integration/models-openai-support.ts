import { onTestFinished } from 'vitest';
import type { ModelDelta, ModelOutcome, ModelRequest } from '../../src/agents/model-port.ts';
import { createHttpModel, type HttpModelOptions } from '../../src/models/http/index.ts';
import {
  type FakeHandler,
  type FakeProvider,
  type FakeReply,
  startFakeProvider,
} from '../support/fake-provider.ts';

export const LIMITS = { name: 'default', firstTokenMs: 20_000, idleMs: 20_000 };
export const KEY = 'sk-very-secret-key';
export const BODY = '{ "model":"m", "stream":true,  "messages":[{"role":"user","content":"Grüße 👋"}] }';

/** Its body has two pieces. */
export function requestWith(body: Uint8Array | string, headers: Record<string, string> = {}): ModelRequest {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const half = bytes.length >> 1;
  return {
    conversation: 'demo',
    agent: 'dev',
    turnId: 't1',
    messages: [],
    tools: [],
    body: [bytes.subarray(0, half), bytes.subarray(half)],
    hash: 'h',
    headers,
  };
}

export interface Call {
  readonly options?: Partial<HttpModelOptions>;
  readonly request?: ModelRequest;
  readonly signal?: AbortSignal;
  readonly onDelta?: (delta: ModelDelta) => void;
}

export async function callAt(url: string, call: Call = {}) {
  const model = createHttpModel({ dialect: 'chat', baseURL: url, apiKey: KEY, ...LIMITS, ...call.options });
  const deltas: ModelDelta[] = [];
  const outcome = await model.call(call.request ?? requestWith(BODY), {
    signal: call.signal ?? new AbortController().signal,
    onDelta: (delta) => {
      deltas.push(delta);
      call.onDelta?.(delta);
    },
  });
  const text = deltas.map((delta) => (delta.type === 'text' ? delta.delta : '')).join('');
  return { outcome, deltas, text };
}

/** The provider of the test that runs. */
export let provider: FakeProvider | undefined;

/** One call of a provider that answers in this way. */
export async function ask(script: FakeHandler | readonly FakeReply[], call: Call = {}) {
  const started = await startFakeProvider(script);
  provider = started;
  onTestFinished(() => {
    provider = undefined;
    return started.close();
  });
  return callAt(started.url, call);
}

export function failureOf(outcome: ModelOutcome): Extract<ModelOutcome, { kind: 'failed' }> {
  if (outcome.kind !== 'failed') throw new Error(`expected a failure, got ${JSON.stringify(outcome)}`);
  return outcome;
}
