import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ModelRequest, WireMessage } from '../../../src/agents/index.ts';
import { createRemoteModel, type RemoteModel } from '../../../src/models/index.ts';
import type {
  RemoteEvent,
  RemoteMessage,
  RemoteOffer,
  RemoteResults,
} from '../../../src/models/remote/index.ts';
import type { OpenRemoteChannel, RemoteOutcome } from '../../../src/models/remote/session.ts';
import { errorWith } from '../../support/error-with.ts';

/** The remote model over a transport and with a clock of the test. */

interface Line {
  readonly offered: RemoteOffer;
  readonly answers: { readonly from: string | null; readonly results: RemoteResults }[];
  closed: 'done' | 'abort' | null;
  say(message: RemoteMessage, from?: string): void;
  hear(event: RemoteEvent): void;
}

const SILENCE_MS = 1_000;
let lines: Line[];
let outcomes: (RemoteOutcome | Promise<RemoteOutcome>)[];
let carries: boolean;
let model: RemoteModel;

const openChannel: OpenRemoteChannel = () => {
  let line: Line | null = null;
  return {
    async offer(offered, _timeoutMs, onEvent) {
      const made: Line = {
        offered,
        answers: [],
        closed: null,
        hear: (event) => {
          if (!made.closed) onEvent(event);
        },
        say: (message, from) => made.hear({ type: 'message', message, from: from ?? null }),
      };
      line = made;
      lines.push(made);
      return outcomes.shift() ?? { kind: 'accepted', instance: 'one' };
    },
    answer(from, results) {
      if (carries) line?.answers.push({ from, results });
      return carries;
    },
    close(how) {
      if (line && !line.closed) line.closed = how;
    },
  };
};

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  outcomes = [];
  carries = true;
  model = createRemoteModel({ openChannel, silenceMs: SILENCE_MS, heartbeatMs: 100, now: () => 7_000 });
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const question: WireMessage = { role: 'user', content: 'Well?' };

function requestOf(...messages: WireMessage[]): ModelRequest {
  const base = { conversation: 'c', agent: 'critic', turnId: 't', tools: [], hash: 'h', headers: {} };
  return { ...base, messages: [question, ...messages], body: [] };
}

function call(request = requestOf(), signal = new AbortController().signal) {
  return model.call(request, { signal, onDelta: () => {} });
}

/** The line of the latest offer, once pending work has settled. */
async function lastLine(): Promise<Line> {
  await vi.advanceTimersByTimeAsync(0);
  const line = lines.at(-1);
  if (!line) throw new Error('nothing was offered');
  return line;
}

const toolCall: RemoteMessage = { type: 'tool_call', calls: [{ id: 'a', name: 'look', arguments: '{}' }] };
const made: WireMessage = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c1_0', type: 'function', function: { name: 'look', arguments: '{}' } }],
};
const result: WireMessage = { role: 'tool', tool_call_id: 'c1_0', content: 'seen' };
const final: RemoteMessage = { type: 'final', content: 'Yes.' };

describe('a turn that is offered to a remote agent', () => {
  const NOBODY: RemoteOutcome = { kind: 'no-responder' };
  /** A model whose agent may be absent for so long. */
  const absentFor = (ms: number, now?: () => number) =>
    createRemoteModel({
      openChannel,
      silenceMs: SILENCE_MS,
      heartbeatMs: 100,
      absentMs: () => ms,
      ...(now && { now }),
    });

  it('REMOTE-MODEL-6: a turn of an agent that may be absent is offered until its program connects', async () => {
    model = absentFor(60_000);
    outcomes = Array(5).fill(NOBODY);
    const calling = call();
    await vi.advanceTimersByTimeAsync(3_500);
    expect([lines.length, model.isAbsent('t')]).toEqual([4, true]);
    expect(lines.every(({ closed }) => closed === 'abort')).toBe(true);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(model.isAbsent('t')).toBe(false);
    (await lastLine()).say({ type: 'final', content: 'Here.' });
    expect(await calling).toMatchObject({ kind: 'answered', answer: { content: 'Here.' } });
    const epochs = lines.map(({ offered }) => offered.epoch);
    expect(new Set(epochs).size).toBe(6);
    expect(epochs).toEqual([...epochs].sort((a, b) => a - b));
  });

  it('REMOTE-MODEL-6: a turn whose program does not connect in time fails and is not retried', async () => {
    model = absentFor(2_500);
    outcomes = Array(9).fill(NOBODY);
    const calling = call();
    await vi.advanceTimersByTimeAsync(2_600);
    expect(await calling).toMatchObject({ kind: 'failed', code: 'AGENT_NOT_CONNECTED', retryable: false });
    expect(model.isAbsent('t')).toBe(false);
  });

  it.each([
    ['what is left of the time', 40_000, 20_000],
    ['10 seconds, in which a program that restarts too can connect', 3_600_000, 10_000],
    ['the whole time after the clock was set back', -3_600_000, 60_000],
  ])('REMOTE-MODEL-6: after a restart the wait takes %s', async (_, agoMs, leftMs) => {
    const now = () => 10_000_000;
    model = absentFor(60_000, now);
    outcomes = Array(99).fill(NOBODY);
    const calling = call({ ...requestOf(), askedAt: now() - agoMs });
    await vi.advanceTimersByTimeAsync(leftMs - 100);
    expect(model.isAbsent('t')).toBe(true);
    await vi.advanceTimersByTimeAsync(200);
    expect(model.isAbsent('t')).toBe(false);
    expect(await calling).toMatchObject({ kind: 'failed', code: 'AGENT_NOT_CONNECTED' });
  });

  it('REMOTE-MODEL-6: a stop ends the wait for a program', async () => {
    model = absentFor(60_000);
    outcomes = [NOBODY];
    const abort = new AbortController();
    const calling = call(requestOf(), abort.signal);
    await vi.advanceTimersByTimeAsync(10);
    abort.abort();
    expect(await calling).toMatchObject({ kind: 'aborted' });
    expect([lines.length, model.isAbsent('t')]).toEqual([1, false]);
  });

  it('an offered turn is answered by the first final, and its channel is closed', async () => {
    const calling = call();
    const line = await lastLine();
    line.say(final);
    line.say({ type: 'final', content: 'No.' });
    expect(await calling).toMatchObject({
      kind: 'answered',
      answer: { content: 'Yes.', finishReason: 'stop' },
    });
    expect(line.closed).toBe('done');
  });

  it('an offered turn keeps the finish reason of the agent', async () => {
    const calling = call();
    const line = await lastLine();
    line.say({ type: 'final', content: 'Half', finishReason: 'length' });
    expect(await calling).toMatchObject({ answer: { content: 'Half', finishReason: 'length' } });
  });

  it('an offered turn has an epoch from the clock, and a later call at the same time has a higher one', async () => {
    for (const epoch of [7_000, 7_001]) {
      const calling = call();
      const line = await lastLine();
      expect(line.offered.epoch).toBe(epoch);
      line.say(final);
      await calling;
    }
  });

  it('an offered turn is offered again after silence, and not while events arrive', async () => {
    const calling = call();
    const first = await lastLine();
    for (let beat = 0; beat < 5; beat += 1) {
      await vi.advanceTimersByTimeAsync(SILENCE_MS - 300);
      first.hear({ type: 'alive' });
    }
    expect(lines).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 300);
    expect(lines).toHaveLength(2);
    expect(first.closed).toBe('abort');
    const second = await lastLine();
    expect(second.offered.epoch).toBe(first.offered.epoch + 1);
    second.say(final);
    expect(await calling).toMatchObject({ kind: 'answered' });
  });

  it('an offered turn fails with its partial answer after three silent offers, and is not retryable', async () => {
    const calling = call();
    (await lastLine()).hear({ type: 'text', call: 'k', delta: 'Hm' });
    await vi.advanceTimersByTimeAsync(4 * SILENCE_MS);
    expect(await calling).toMatchObject({
      code: 'AGENT_SILENT',
      retryable: false,
      partial: { content: 'Hm' },
    });
    expect(lines.map((line) => line.closed)).toEqual(['abort', 'abort', 'abort']);
  });

  it.each<[RemoteOutcome, string, boolean, number]>([
    [{ kind: 'no-responder' }, 'AGENT_NOT_CONNECTED', true, 1],
    [{ kind: 'disconnected' }, 'NETWORK_ERROR', true, 1],
    [{ kind: 'too-large', bytes: 9, limit: 8 }, 'AGENT_OFFER_TOO_LARGE', false, 1],
    [{ kind: 'refused', reason: 'busy' }, 'AGENT_REFUSED', true, 3],
    [{ kind: 'unanswered' }, 'AGENT_SILENT', false, 3],
  ])('an offered turn that ends as %j fails with %s', async (outcome, code, retryable, offers) => {
    outcomes = [outcome, outcome, outcome];
    expect(await call()).toMatchObject({ kind: 'failed', code, retryable, tries: offers });
    expect(lines.map((line) => line.closed)).toEqual(Array(offers).fill('abort'));
  });

  it('an offered turn fails if its agent reports a failure or sends an invalid message', async () => {
    const failing = call();
    (await lastLine()).say({ type: 'failed', code: 'TIRED', message: '' });
    expect(await failing).toMatchObject({ code: 'TIRED', message: expect.stringContaining('critic') });
    const puzzling = call();
    (await lastLine()).hear({ type: 'invalid', reason: 'it is not JSON' });
    expect(await puzzling).toMatchObject(errorWith('INVALID_RESPONSE', 'not JSON'));
  });

  it('an offered turn is withdrawn by an abort, both before and while the agent works', async () => {
    for (const accepted of [false, true]) {
      if (!accepted) outcomes = [new Promise(() => {})];
      const abort = new AbortController();
      const calling = call(requestOf(), abort.signal);
      const line = await lastLine();
      abort.abort();
      expect(await calling).toMatchObject({ kind: 'aborted' });
      expect(line.closed).toBe('abort');
    }
  });
});

describe('a remote agent that calls tools', () => {
  async function calledOnce(): Promise<Line> {
    const calling = call();
    const line = await lastLine();
    line.say(toolCall, 'inbox');
    expect(await calling).toMatchObject({
      answer: { toolCalls: [{ id: 'a', name: 'look', arguments: '{}' }] },
    });
    return line;
  }

  it('a remote agent gets the results of its calls and the other new messages with the next request', async () => {
    const line = await calledOnce();
    const more: WireMessage = { role: 'user', content: 'hurry' };
    const calling = call(requestOf(made, result, more));
    await lastLine();
    const results = [{ id: 'a', content: 'seen' }];
    expect(line.answers).toEqual([{ from: 'inbox', results: { results, messages: [more] } }]);
    line.say(final);
    expect(await calling).toMatchObject({ answer: { content: 'Yes.' } });
    expect(lines).toHaveLength(1);
  });

  it("a remote agent's call runs once, even if it repeats the call before or after the result", async () => {
    const line = await calledOnce();
    line.say(toolCall, 'inbox');
    const calling = call(requestOf(made, result));
    await lastLine();
    line.say(toolCall, 'inbox');
    expect(line.answers).toHaveLength(2);
    expect(line.answers[1]).toEqual(line.answers[0]);
    line.say(final);
    expect(await calling).toMatchObject({ answer: { content: 'Yes.' } });
  });

  it.each([
    ['does not hold its calls', () => requestOf()],
    ['lacks a result', () => requestOf(made)],
  ])('a remote agent is offered the turn again if the next request %s', async (_, next) => {
    const first = await calledOnce();
    const calling = call(next());
    const second = await lastLine();
    expect(first.closed).toBe('abort');
    expect(second.offered.epoch).toBeGreaterThan(first.offered.epoch);
    second.say(final);
    await calling;
  });

  it('a remote agent is offered the turn again if its results are too large', async () => {
    await calledOnce();
    carries = false;
    const calling = call(requestOf(made, result));
    const second = await lastLine();
    expect(lines).toHaveLength(2);
    second.say(final);
    await calling;
  });

  it('a remote agent is notified when its turn ends or the daemon stops while tools run', async () => {
    const line = await calledOnce();
    model.turnOver('another');
    expect(line.closed).toBeNull();
    model.turnOver('t');
    expect(line.closed).toBe('abort');
    const other = await calledOnce();
    model.close();
    expect(other.closed).toBe('abort');
  });
});
