import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectToNats, type NatsConnection } from 'nats';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Entry, ParleyClient } from '../../src/client/index.ts';
import {
  type FakeHandler,
  type FakeProvider,
  type FakeReply,
  type FakeRequest,
  startFakeProvider,
} from '../support/fake-provider.ts';
import { gate } from '../support/gate.ts';
import { checkLog, entriesOf, finished, followUntil, ofType, outcomesOf, saidBy } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import {
  openProject,
  type Project,
  providerSettings,
  type RunningDaemon,
  scriptedSettings,
} from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';

/** Messages that arrive while an agent works, and their requests to the provider. */
let nats: TestNatsServer;
let provider: FakeProvider | undefined;
let project: Project;
let daemon: RunningDaemon;
let client: ParleyClient;

beforeEach(async () => {
  nats = await startNatsServer();
});
afterEach(async () => {
  await project?.close();
  await provider?.close();
  provider = undefined;
  await nats.stop();
});

const agents = {
  pm: '---\nname: Pam\nphases: [chat, plan]\ntools: [set_phase, delegate]\n---\nYou plan.',
  dev: '---\nname: Dev\n---\nYou build.',
};

const post = (content: string, more: object = {}) =>
  client.post({ conversation: 'demo', publisher: 'ann', content, ...more });

async function bareProgram(): Promise<NatsConnection> {
  const program = await connectToNats({ servers: nats.url });
  project.defer(() => program.close());
  return program;
}

async function expectSoundLog(): Promise<void> {
  expect(await daemon.stop()).toBe(0);
  expect(checkLog(await project.logFile('demo'))).toEqual([]);
}

async function withProvider(handler: FakeHandler, session?: object): Promise<FakeProvider> {
  const started = await startFakeProvider(handler);
  provider = started;
  const models = {
    default: { provider: 'openai', baseURL: started.url, apiKey: 'sk-test', model: 'fake-model', session },
  };
  project = await openProject({
    nats: nats.url,
    settings: providerSettings(started.url, { models }),
    agents,
  });
  daemon = await project.up();
  client = await project.connect();
  return started;
}

describe('the session of a conversation', () => {
  const header = 'x-session-id';
  const sent = (request: FakeRequest | undefined) => request?.headers[header];

  itLong(
    'PERSON-7: a provider gets the session that a message names by right, from its turn on and after a kill, else its own',
    async () => {
      const { requests } = await withProvider(() => ({ text: 'fine' }), { header });
      const program = await bareProgram();
      let turns = 0;
      const publish = async (body: object) => {
        await program.jetstream().publish('parley.in.ann.demo', JSON.stringify(body));
        await followUntil(client, 'demo', finished(++turns));
      };
      const operate = async (sessionId: string) => {
        const message = { conversation: 'demo', publisher: 'ann', content: sessionId, sessionId };
        const answer = await client.post(message, { asOperator: true });
        await followUntil(client, 'demo', finished(++turns));
        return answer;
      };
      await publish({ content: 'no right', sessionId: 'forged-1' });
      await publish({ content: 'no right, to another agent', to: ['dev'], claudeSessionId: 'forged-2' });
      const [pm, dev] = [sent(requests[0]), sent(requests[1])];
      expect([pm, dev]).toEqual([
        expect.stringMatching(/^demo-pm-\w+$/),
        expect.stringMatching(/^demo-dev-\w+$/),
      ]);
      expect(await post('no right either', { sessionId: 'forged-3' })).toMatchObject({
        ignored: ['sessionId'],
      });
      await followUntil(client, 'demo', finished(++turns));
      expect(await operate('session-1')).not.toHaveProperty('ignored');
      await publish({ content: 'none named' });
      await daemon.kill9();
      daemon = await project.up();
      await publish({ content: 'after a restart', sessionId: 'forged-4' });
      await operate('session-2');
      await publish({ content: 'to the other agent', to: ['dev'] });
      const [one, two] = ['session-1', 'session-2'];
      expect(requests.map(sent)).toEqual([pm, dev, pm, one, one, one, two, dev]);
      const entries = await entriesOf(client, 'demo');
      const set = ofType(entries, 'session-set');
      expect(set.map(({ sessionId }) => sessionId)).toEqual([one, two]);
      for (const { index } of set)
        expect(entries[index + 1]).toMatchObject({ type: 'turn-started', agent: 'pm' });
      expect(await client.request('conversation', { conversation: 'demo' })).toMatchObject({
        agents: { pm: { sessionId: two, sessionFrom: { by: 'person', entry: set[1]?.from } } },
      });
      const explained = await project.parley('explain', 'demo', '--agent', 'pm');
      expect(explained.stdout).toContain(
        `session     session-2, named by the message in entry ${set[1]?.from}`,
      );
      expect((await project.parley('show', 'demo')).stdout).toContain('pm continues the session session-1');
      await expectSoundLog();
    },
  );

  it.each(hasLongTests ? ['before-append', 'after-append'] : ['after-append'])(
    'a daemon that is killed at %s has the session with the turn that it belongs to, once, and sends it',
    async (point) => {
      const env: Record<string, string> = { PARLEY_CRASH_POINTS: `${point}:1` };
      const started = await startFakeProvider(() => ({ text: 'fine' }));
      provider = started;
      const [model, session] = ['fake-model', { header }];
      const models = { default: { provider: 'openai', baseURL: started.url, apiKey: 'k', model, session } };
      const publishers = { ann: { sessions: true } };
      const settings = providerSettings(started.url, { models, publishers });
      project = await openProject({ nats: nats.url, settings, agents, env });
      const first = await project.up('--allow-crash-points');
      const program = await bareProgram();
      await program
        .jetstream()
        .publish('parley.in.ann.demo', JSON.stringify({ content: 'go', sessionId: 's-1' }));
      expect(await first.exited).toBeNull();
      delete env.PARLEY_CRASH_POINTS;
      daemon = await project.up();
      client = await project.connect();
      const entries = await followUntil(client, 'demo', finished(1));
      expect(entries.map(({ type }) => type).slice(0, 3)).toEqual(['message', 'session-set', 'turn-started']);
      expect(ofType(entries, 'session-set')).toHaveLength(1);
      expect(started.requests.map(sent)).toEqual(['s-1']);
      await expectSoundLog();
    },
  );

  it('the session is in the body if a field is configured, and in no other place', async () => {
    const { requests } = await withProvider(() => ({ text: 'fine' }), { field: 'session_id' });
    await post('one', { sessionId: 'forged-1' });
    await followUntil(client, 'demo', finished(1));
    expect(requests[0]?.json).toMatchObject({
      session_id: expect.stringMatching(/^demo-pm-/),
      model: 'fake-model',
    });
    expect(JSON.stringify(requests[0]?.headers)).not.toContain('demo-pm-');
    expect(JSON.stringify(requests[0])).not.toContain('forged-1');
  });
});

describe('three messages within milliseconds', () => {
  async function publishThree(delivery: string): Promise<Entry[]> {
    project = await openProject({
      nats: nats.url,
      settings: scriptedSettings({ defaultAgent: 'pm' }),
      agents,
      files: { 'script.yaml': "rules: [ { reply: { text: 'Heard {{last}}.', delayMs: 20 } } ]" },
    });
    daemon = await project.up();
    client = await project.connect();
    const program = await bareProgram();
    for (const content of ['first', 'second', 'third']) {
      program.publish('parley.in.ann.demo', JSON.stringify({ content, delivery }));
      await delay(3);
    }
    await program.flush();
    return followUntil(client, 'demo', (entries) => {
      const posts = ofType(entries, 'message').filter(({ role }) => role === 'user');
      const dealtWith = shown(entries).flat();
      return posts.length === 3 && dealtWith.length >= 3 && !isBusy(entries);
    });
  }
  const isBusy = (entries: readonly Entry[]) =>
    ofType(entries, 'turn-started').length > ofType(entries, 'turn-ended').length;
  /** The texts that each turn was triggered by or shown. */
  const shown = (entries: readonly Entry[]) =>
    entries.flatMap((entry) => {
      const indexes =
        entry.type === 'turn-started'
          ? entry.trigger
          : entry.type === 'message-delivered'
            ? entry.entries
            : null;
      const text = (index: number) => {
        const message = entries[index];
        return message?.type === 'message' ? message.content : null;
      };
      return indexes ? [indexes.map(text)] : [];
    });

  itLong('concurrent messages are processed in one turn at a time, in order, each once', async () => {
    const entries = await publishThree('steer');
    expect(shown(entries).flat()).toEqual(['first', 'second', 'third']);
    const turns = ofType(entries, 'turn-ended').map(({ outcome }) => outcome);
    expect(turns).toEqual(shown(entries).map(() => 'completed'));
    const said = saidBy(entries, 'pm').map(([words]) => words);
    expect(said).toEqual(shown(entries).map((texts) => `Heard ${texts.at(-1)}.`));
    await expectSoundLog();
  });

  it('messages with delivery queue get a turn and an answer each, in order', async () => {
    const entries = await publishThree('queue');
    expect(shown(entries)).toEqual([['first'], ['second'], ['third']]);
    expect(saidBy(entries, 'pm').map(([words]) => words)).toEqual([
      'Heard first.',
      'Heard second.',
      'Heard third.',
    ]);
    // Each request ends with the message that it answers. Later ones are not shown yet.
    const answers = ofType(entries, 'message').filter(({ role }) => role === 'assistant');
    for (const [at, { index }] of answers.entries()) {
      const { messages } = await client.request('view', { conversation: 'demo', agent: 'pm', at: index });
      const people = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
      expect(people).toEqual(['first', 'second', 'third'].slice(0, at + 1));
    }
    await expectSoundLog();
  });
});

describe('a message with delivery steer to a turn that calls tools', () => {
  const toolCalls = [
    { name: 'set_phase', arguments: '{"phase":"plan","reason":"time to plan"}' },
    { name: 'look', arguments: '{}' },
  ];
  const rolesOf = (request: FakeRequest | undefined) =>
    request?.json.messages?.slice(1).map(({ role, content }) => [role, content]);

  /** A provider whose first answer waits for the test. */
  async function withHeldAnswer(first: FakeReply, others: FakeHandler) {
    const { open: release, passed: released } = gate();
    const started = await withProvider(async (request, count) => {
      if (count > 0) return others(request, count);
      await released;
      return first;
    });
    return { provider: started, release };
  }

  it('a steering message is shown after the results, with the next model call', async () => {
    const { provider: fake, release } = await withHeldAnswer({ text: 'I look.', toolCalls }, () => ({
      text: 'done',
    }));
    await post('begin');
    await fake.waitForRequests(1);
    await post('and mind the budget');
    await post('and the date');
    release();
    const entries = await followUntil(client, 'demo', finished(1));
    expect(fake.requests.length).toBe(2);
    expect(rolesOf(fake.requests[1])).toEqual([
      ['user', 'begin'],
      ['assistant', 'I look.'],
      ['tool', 'The phase is now plan.'],
      ['tool', expect.stringContaining('TOOL_NOT_AVAILABLE')],
      ['user', 'and mind the budget'],
      ['user', 'and the date'],
    ]);
    expect(ofType(entries, 'message-delivered').length).toBe(1);
    expect(outcomesOf(entries, 'pm')).toEqual(['completed']);
    const at = entries.findLast((entry) => entry.type === 'message' && entry.role === 'assistant')?.index;
    const { messages } = await client.request('view', { conversation: 'demo', agent: 'pm', at });
    expect(messages).toEqual(fake.requests[1]?.json.messages);
    await expectSoundLog();
  });

  itLong(
    'a steering message to a turn that waits for another agent is shown after its answer, though the log has it before',
    async () => {
      const delegates = [{ name: 'delegate', arguments: '{"to":"dev","request":"How long?"}' }];
      const { open: release, passed: released } = gate();
      const fake = await withProvider(async (request, count) => {
        if (count === 0) return { toolCalls: delegates };
        if (JSON.stringify(request.json.messages?.at(-1)).includes('How long?')) {
          await released;
          return { text: 'A day.' };
        }
        return { text: 'done' };
      });
      await post('begin');
      await fake.waitForRequests(2);
      const { index: posted } = await post('and mind the budget');
      await daemon.kill9();
      release();
      daemon = await project.up();
      const entries = await followUntil(client, 'demo', finished(2));
      const result = ofType(entries, 'message').find(({ role }) => role === 'tool');
      expect(result?.index).toBeGreaterThan(posted);
      const last = fake.requests.at(-1);
      expect(rolesOf(last)).toEqual([
        ['user', 'begin'],
        ['assistant', null],
        ['tool', 'A day.'],
        ['user', 'and mind the budget'],
      ]);
      expect(saidBy(entries, 'pm').map(([words]) => words)).toEqual([null, 'done']);
      await expectSoundLog();
    },
  );
});
