import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AgentTurn, connect } from '../../src/client/index.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import {
  answered,
  openRemoteTurns,
  question,
  quiet,
  type RemoteTurns,
  requestOf,
} from './remote-agents-support.ts';

/** Remote agents: how a turn is assigned and kept, and how misbehaving agents are handled. */

let server: TestNatsServer;
let project: RemoteTurns;
beforeAll(async () => {
  server = await startNatsServer({ config: 'max_payload: 65536' });
});
afterAll(() => server.stop());
beforeEach(async () => {
  project = await openRemoteTurns(server.url);
});
afterEach(() => project.close());

describe('a remote agent', () => {
  it('a remote agent answers an offer that contains the whole request', async () => {
    let seen: AgentTurn | undefined;
    await project.client.agent('critic', async (turn) => {
      seen = turn;
      return `I read: ${turn.messages.at(-1)?.content}`;
    });
    expect(await project.call()).toMatchObject(answered('I read: Is it good?'));
    expect(seen).toMatchObject({
      conversation: 'c',
      turnId: 'turn-1',
      messages: [question],
      tools: [],
      sessionId: 'session-1',
    });
  });

  it('a remote agent returns session, usage and model with the answer', async () => {
    const usage = { inputTokens: 3, outputTokens: 2 };
    await project.client.agent('critic', () => ({
      content: 'Yes.',
      sessionId: 'session-2',
      usage,
      model: 'mine',
    }));
    expect(await project.call()).toMatchObject({
      answer: { content: 'Yes.', sessionId: 'session-2', usage, model: 'mine' },
    });
  });

  it('REMOTE-MODEL-7: a remote agent that reports more tokens than bytes were sent and received reports that many, and no cost', async () => {
    const huge = { inputTokens: 9e15, cachedInputTokens: 9e15, outputTokens: 9e15, usd: 9e9 };
    await project.client.agent('critic', () => ({ content: 'Yes.', usage: huge }));
    const outcome = await project.call();
    const sent = requestOf().body.reduce((sum, bytes) => sum + bytes.length, 0);
    const usage = { inputTokens: sent, cachedInputTokens: sent, outputTokens: 4, byAgent: true };
    expect(outcome.kind === 'answered' && outcome.answer.usage).toEqual(usage);
  });

  it('a remote agent streams its text to followers, and the text is the answer if it returns nothing', async () => {
    const chunks: unknown[] = [];
    project.program.subscribe('parley.live.c.critic', {
      callback: (_, message) => void chunks.push(message.json()),
    });
    await project.program.flush();
    await project.client.agent('critic', async (turn) => {
      turn.write('Not ');
      turn.think('hm');
      turn.write('bad.');
      return undefined;
    });
    expect(await project.call()).toMatchObject(answered('Not bad.'));
    // Published on another connection than that of the follower.
    await expect
      .poll(() => chunks)
      .toMatchObject([
        { turnId: 'turn-1', n: 0, type: 'text', delta: 'Not ' },
        { turnId: 'turn-1', n: 1, type: 'reasoning', delta: 'hm' },
        { turnId: 'turn-1', n: 2, type: 'text', delta: 'bad.' },
      ]);
  });

  it('a remote agent keeps its turn by heartbeats, however long it takes', async () => {
    let finish = quiet;
    let offers = 0;
    await project.client.agent('critic', () => {
      offers += 1;
      return new Promise((resolve) => {
        finish = () => resolve('at last');
      });
    });
    const calling = project.call();
    await new Promise((resolve) => setTimeout(resolve, 1_300)); // twice the failure timeout
    finish();
    expect(await calling).toMatchObject(answered('at last'));
    expect(offers).toBe(1);
  });

  it('an error in a remote agent fails the turn with its code and message', async () => {
    await project.client.agent('critic', () => {
      throw Object.assign(new Error('no more ink'), { code: 'OUT_OF_INK' });
    });
    expect(await project.call()).toMatchObject({
      kind: 'failed',
      code: 'OUT_OF_INK',
      message: 'no more ink',
    });
  });

  it('a remote agent that is stopped finishes its turn and accepts no other', async () => {
    let finish = quiet;
    const agent = await project.client.agent(
      'critic',
      () => new Promise((resolve) => (finish = () => resolve('done'))),
    );
    const calling = project.call();
    await expect.poll(() => finish).not.toBe(quiet);
    const stopping = agent.stop();
    finish();
    expect(await calling).toMatchObject(answered('done'));
    await stopping;
    expect(await project.call()).toMatchObject({ code: 'AGENT_NOT_CONNECTED' });
  });

  it('an offer or answer that exceeds the message size of the server fails with the reason', async () => {
    await project.client.agent('critic', () => 'x'.repeat(70_000));
    expect(await project.call(requestOf([{ role: 'user', content: 'x'.repeat(70_000) }]))).toMatchObject({
      code: 'AGENT_OFFER_TOO_LARGE',
      retryable: false,
    });
    expect(await project.call()).toMatchObject({ kind: 'failed', code: 'TOO_LARGE' });
  });

  it('a remote agent cannot have the name of a wildcard', async () => {
    await expect(project.client.agent('*', () => '')).rejects.toMatchObject({ code: 'INVALID_NAME' });
    await expect(project.client.agent('a.>', () => '')).rejects.toMatchObject({ code: 'INVALID_NAME' });
  });
});

describe('several instances of one agent', () => {
  it('several instances share the turns, and each turn runs on one of them', async () => {
    const taken: string[] = [];
    const other = untilTestEnds(await connect({ url: server.url }));
    for (const [name, at] of [
      ['one', project.client],
      ['two', other],
    ] as const) {
      await at.agent('critic', (turn) => {
        taken.push(turn.turnId);
        return name;
      });
    }
    const turns = Array.from({ length: 40 }, (_, place) => `turn-${place}`);
    const outcomes = await Promise.all(turns.map((turnId) => project.call(requestOf([question], turnId))));
    expect(taken.sort()).toEqual(turns.sort());
    const names = new Set(outcomes.map((outcome) => outcome.kind === 'answered' && outcome.answer.content));
    expect(names).toEqual(new Set(['one', 'two']));
  });

  it('an instance that died is replaced: its turn is offered to another one', async () => {
    const other = untilTestEnds(await connect({ url: server.url }));
    const offers = await project.bareAgent(async () => {
      await other.agent('critic', (turn) => `epoch ${turn.epoch}`);
      await project.program.close();
    });
    const outcome = await project.call();
    expect(outcome).toMatchObject(answered(`epoch ${(offers[0]?.epoch ?? 0) + 1}`));
  });
});

describe('a remote agent that misbehaves', () => {
  it('a message for an older offer or another turn is ignored', async () => {
    await project.bareAgent(({ reply, turnId, epoch }) => {
      project.say(reply, { turnId, epoch: epoch - 1, type: 'final', content: 'old' });
      project.say(reply, { turnId: 'another', epoch, type: 'final', content: 'strange' });
      project.say(reply, { type: 'final', content: 'mine' });
    });
    expect(await project.call()).toMatchObject(answered('mine'));
  });

  it('a message in the channel of an abandoned offer is ignored', async () => {
    const offers = await project.bareAgent((offer, count) => {
      if (count === 1) return;
      project.say(offers[0]?.reply ?? '', { type: 'final', content: 'too late' });
      project.say(offer.reply, { type: 'final', content: 'in time' });
    });
    expect(await project.call()).toMatchObject(answered('in time'));
  });

  it('an agent learns from the failure that its message was not understood', async () => {
    await project.bareAgent(({ reply }) =>
      project.say(reply, { type: 'tool_call', calls: [{ arguments: {} }] }),
    );
    const outcome = await project.call();
    expect(outcome).toMatchObject({ kind: 'failed', code: 'INVALID_RESPONSE', retryable: false });
    expect(outcome).toHaveProperty('message', expect.stringContaining('calls.0.name'));
  });
});
