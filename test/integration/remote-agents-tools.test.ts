import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AgentTurn, ParleyError } from '../../src/client/index.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import {
  answered,
  openRemoteTurns,
  type RemoteTurns,
  requestAfter,
  requestOf,
} from './remote-agents-support.ts';

/** Remote agents: the tools that the daemon runs for them, and turns that are withdrawn. */

let server: TestNatsServer;
let project: RemoteTurns;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  project = await openRemoteTurns(server.url);
});
afterEach(() => project.close());

const reading = { name: 'fs_read', arguments: { path: '@project/a' }, id: 'mine' };

/** An offer of a turn as the bus sends it, answered at `place`. */
const offerAt = (place: string) => ({
  ...{ conversation: 'c', turnId: 't', epoch: 1, messages: [], tools: [], live: 'a.b' },
  reply: `parley.agent.critic.reply.${place}`,
  control: `parley.agent.critic.control.${place}`,
});

describe('the tools of a remote agent', () => {
  it('the daemon runs the tools of a remote agent and sends the results to the same offer', async () => {
    let offers = 0;
    await project.client.agent('critic', async (turn) => {
      offers += 1;
      turn.write('Let me look. ');
      const results = await turn.callTools([reading, { name: 'fs_list', arguments: '{"path":"."}' }]);
      return JSON.stringify(results);
    });
    const first = await project.call();
    expect(first).toMatchObject({
      kind: 'answered',
      answer: {
        content: 'Let me look. ',
        toolCalls: [
          { id: 'mine', name: 'fs_read', arguments: '{"path":"@project/a"}' },
          { id: 'call_1', name: 'fs_list', arguments: '{"path":"."}' },
        ],
      },
    });
    const second = await project.call(requestAfter(first));
    const results = [{ id: 'mine', content: 'result of fs_read' }, { content: 'result of fs_list' }];
    expect(second).toMatchObject(answered(JSON.stringify(results)));
    expect(offers).toBe(1);
  });

  it('a call that the server cannot carry is an error of the agent at once, which may go on', async () => {
    await project.client.agent('critic', async (turn) => {
      const large = { ...reading, arguments: { path: 'x'.repeat(2_000_000) } };
      const refused = await turn.callTools([large]).catch((error: unknown) => error);
      return refused instanceof ParleyError ? `${refused.code}: ${refused.message}` : 'not refused';
    });
    expect(await project.call()).toMatchObject({
      answer: {
        content: expect.stringMatching(/^TOO_LARGE: the tool call has \d+ bytes and the server carries/),
      },
    });
  });

  it('a remote agent may call tools repeatedly, also before the last results arrived', async () => {
    await project.client.agent('critic', async (turn) => {
      const both = await Promise.all([
        turn.callTools([{ name: 'one', arguments: {} }]),
        turn.callTools([{ name: 'two', arguments: {} }]),
      ]);
      return both.map(([result]) => result?.content).join(', ');
    });
    const first = await project.call();
    const second = await project.call(requestAfter(first));
    expect(second).toMatchObject({ answer: { toolCalls: [{ name: 'two' }] } });
    expect(await project.call(requestAfter(second))).toMatchObject(answered('result of one, result of two'));
  });

  it('the results contain the messages of others since the offer', async () => {
    await project.client.agent('critic', async (turn) => {
      await turn.callTools([reading]);
      return `news: ${turn.news.map((message) => message.content)}`;
    });
    const first = await project.call();
    const next = requestAfter(first, { role: 'user', content: 'be quick' });
    expect(await project.call(next)).toMatchObject(answered('news: be quick'));
  });

  it('a repeated call with another reply subject is not run twice, and gets the results there', async () => {
    const heard: string[] = [];
    await project.bareAgent(({ reply }) => {
      const message = JSON.stringify({ type: 'tool_call', id: 'call-1', calls: [reading] });
      project.program.subscribe('_INBOX.my.*', {
        callback: (_, { subject }) => {
          heard.push(subject);
          if (heard.length === 1) project.program.publish(reply, message, { reply: '_INBOX.my.third' });
          else project.say(reply, { type: 'final', content: 'enough' });
        },
      });
      for (const inbox of ['_INBOX.my.first', '_INBOX.my.second'])
        project.program.publish(reply, message, { reply: inbox });
    });
    const first = await project.call();
    expect(await project.call(requestAfter(first))).toMatchObject(answered('enough'));
    expect(heard).toEqual(['_INBOX.my.second', '_INBOX.my.third']);
  });

  it('an agent without a reply subject gets its results on the control subject', async () => {
    await project.bareAgent(({ reply, control }) => {
      project.program.subscribe(control, {
        callback: (_, message) => {
          const { type, results } = message.json<{ type: string; results: { content: string }[] }>();
          if (type === 'tool_results') project.say(reply, { type: 'final', content: results[0]?.content });
        },
      });
      project.say(reply, { type: 'tool_call', calls: [reading] });
    });
    const first = await project.call();
    expect(await project.call(requestAfter(first))).toMatchObject(answered('result of fs_read'));
  });

  it('calls and results are offered to another instance if the first one is gone', async () => {
    const first = project.bareAgent(({ reply }) => {
      project.say(reply, { type: 'tool_call', calls: [reading] });
      void project.program.drain();
    });
    await first;
    const outcome = await project.call();
    await expect.poll(() => project.program.isClosed()).toBe(true);
    let seen: AgentTurn | undefined;
    await project.client.agent('critic', (turn) => {
      seen = turn;
      return 'taken over';
    });
    const request = requestAfter(outcome);
    expect(await project.call(request)).toMatchObject(answered('taken over'));
    expect(seen?.messages).toEqual(request.messages);
  });

  it('results arrive although the server was down during the call and its end', async () => {
    const patient = untilTestEnds(await openRemoteTurns(server.url, 10_000, 2_000));
    let offers = 0;
    await patient.client.agent('critic', async (turn) => {
      offers += 1;
      const [result] = await turn.callTools([reading]);
      return result?.content;
    });
    const first = await patient.call();
    await server.kill9();
    const second = patient.call(requestAfter(first)); // sent while nothing listens
    await server.restart();
    expect(await second).toMatchObject(answered('result of fs_read'));
    expect(offers).toBe(1);
  });

  it('a call is repeated until a daemon receives it, and answered once', async () => {
    let given: unknown;
    await project.client.agent('critic', async (turn) => {
      given = await turn.callTools([reading]);
      return undefined;
    });
    const offer = offerAt('here');
    await project.program.request(
      'parley.agent.critic.turn',
      JSON.stringify({ ...offer, heartbeatMs: 60_000 }),
    );
    const results = [{ id: 'mine', content: 'late' }];
    project.program.subscribe(offer.reply, {
      callback: (_, message) => message.respond(JSON.stringify({ results })),
    });
    await expect.poll(() => given).toEqual(results);
  });
});

describe('a turn that is withdrawn', () => {
  it('a withdrawn turn is aborted at the agent', async () => {
    let turn: AgentTurn | undefined;
    const abort = new AbortController();
    await project.client.agent('critic', async (offered) => {
      turn = offered;
      await new Promise((resolve) => offered.signal.addEventListener('abort', resolve));
      return 'too late';
    });
    const calling = project.call(requestOf(), abort.signal);
    await expect.poll(() => turn).toBeDefined();
    abort.abort();
    expect(await calling).toMatchObject({ kind: 'aborted' });
    await expect.poll(() => turn?.signal.reason).toMatchObject({ code: 'TURN_OVER' });
  });

  it('a withdrawn turn keeps its text so far', async () => {
    const abort = new AbortController();
    const told: unknown[] = [];
    const offers = await project.bareAgent(async ({ live, reply, control }) => {
      project.program.subscribe(control, { callback: (_, message) => void told.push(message.json()) });
      project.say(live, { turnId: 'turn-1', call: 'k', n: 0, type: 'text', delta: 'I would ' });
      project.say(live, { turnId: 'turn-1', call: 'k', n: 1, type: 'text', delta: 'say' });
      await project.program.request(reply, '{"type":"heartbeat"}'); // answered after the messages before it
      abort.abort();
    });
    const outcome = await project.call(requestOf(), abort.signal);
    expect(outcome).toMatchObject({ kind: 'aborted', partial: { content: 'I would say' } });
    await expect.poll(() => told).toEqual([{ type: 'abort', turnId: 'turn-1', epoch: offers[0]?.epoch }]);
  });

  it('an agent detects that no daemon receives its turn any more', async () => {
    let turn: AgentTurn | undefined;
    await project.client.agent('critic', async (offered) => {
      turn = offered;
      await new Promise((resolve) => offered.signal.addEventListener('abort', resolve));
      return undefined;
    });
    const offer = offerAt('gone');
    const body = JSON.stringify({ ...offer, heartbeatMs: 20 });
    const accepted = await project.program.request('parley.agent.critic.turn', body);
    expect(accepted.json()).toEqual({ accepted: true, instance: expect.any(String) });
    const reason = { code: 'TURN_OVER', message: expect.stringContaining('no daemon') };
    await expect.poll(() => turn?.signal.reason).toMatchObject(reason);
  });

  it('a turn is aborted when the client closes', async () => {
    let began = false;
    let wasAborted = false;
    await project.client.agent('critic', async (turn) => {
      began = true;
      await new Promise((resolve) => turn.signal.addEventListener('abort', resolve));
      wasAborted = true;
      return undefined;
    });
    const calling = project.call();
    await expect.poll(() => began).toBe(true);
    await project.client.close();
    await expect.poll(() => wasAborted).toBe(true);
    expect(await calling).toMatchObject({ kind: 'failed', code: 'AGENT_NOT_CONNECTED' });
  });

  it('an agent refuses an offer that it cannot understand', async () => {
    await project.client.agent('critic', () => 'never');
    const answer = await project.program.request('parley.agent.critic.turn', '{"conversation":"c"}');
    expect(answer.json()).toMatchObject({ accepted: false, reason: expect.stringContaining('turnId') });
  });
});
