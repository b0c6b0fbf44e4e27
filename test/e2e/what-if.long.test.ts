import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { ParleyClient, WhatIfResult } from '../../src/client/index.ts';
import { type FakeHandler, type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { entriesOf, followUntil, turnsEnded } from '../support/log.ts';
import { openProject, type Project, type RunningDaemon } from '../support/project.ts';

/** `parley what-if`: two providers, one daemon. */

const PM = '---\nname: Pam\ndescription: plans\ntools: [fs_read]\n---\nPERSONA OF PAM';
const PRICE = { inputPerMillion: 100, outputPerMillion: 1_000 };
const reads = (...paths: string[]) =>
  paths.map((path) => ({ name: 'fs_read', arguments: JSON.stringify({ path: `@project/${path}` }) }));

/** The recorded turn reads two files, then answers. */
const recorded: FakeHandler = ({ json }) =>
  json.messages?.at(-1)?.role === 'tool'
    ? { text: 'They differ.\nIn one line.' }
    : { text: 'Reading.', toolCalls: reads('a.txt', 'b.txt') };

describe('parley what-if', () => {
  const open: { close(): Promise<void> }[] = [];
  let daemon: RunningDaemon;
  let posted = 0;
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close();
  });

  async function provider(handler: FakeHandler): Promise<FakeProvider> {
    const started = await startFakeProvider(handler);
    open.push(started);
    return started;
  }

  async function start(first: FakeProvider, second: FakeProvider): Promise<Project> {
    const folder = await mkdtemp(join(tmpdir(), 'parley-what-if-'));
    for (const name of ['a.txt', 'b.txt']) await writeFile(join(folder, name), `text of ${name}\n`);
    const model = { provider: 'openai', apiKey: 'sk-test', price: PRICE };
    const project = await openProject({
      agents: { pm: PM },
      settings: {
        defaultAgent: 'pm',
        models: {
          default: { ...model, baseURL: first.url, model: 'first' },
          m2: { ...model, baseURL: second.url, model: 'second', maxOutputTokens: 333, price: undefined },
        },
        retry: { attempts: 2, baseMs: 5, maxMs: 20 },
        shutdown: { graceMs: 5_000 },
        tools: { project: folder },
      },
    });
    open.push(project);
    project.defer(() => rm(folder, { recursive: true, force: true }));
    daemon = await project.up();
    posted = 0;
    return project;
  }

  async function answerOf(client: ParleyClient, content = 'compare a and b'): Promise<number> {
    const before = await client.post({ conversation: 'demo', publisher: 'alice', content });
    const entries = await followUntil(client, 'demo', turnsEnded(++posted));
    const last = entries.findLast((entry) => entry.type === 'message' && entry.role === 'assistant');
    if (!last || last.index <= before.index) throw new Error('no answer');
    return last.index;
  }

  const resultIn = (stdout: string): WhatIfResult => JSON.parse(stdout.trim());

  it('sends the recorded bytes to its own model, and to another one all but the fields of that model', async () => {
    const first = await provider(recorded);
    const second = await provider(recorded);
    const project = await start(first, second);
    const client = await project.connect();
    const at = await answerOf(client);
    const log = await project.logFile('demo');
    const sent = first.requests.map(({ body }) => body.toString());
    expect(sent).toHaveLength(2);

    const ran = await project.parley(
      'what-if',
      'demo',
      '--agent',
      'pm',
      '--at',
      String(at),
      '--model',
      'm2',
      '--json',
    );
    expect([ran.code, ran.stderr]).toEqual([0, '']);
    const again = first.requests.slice(2).map(({ body }) => body.toString());
    expect(again).toEqual(sent);
    const { max_tokens: _, max_completion_tokens: __, model: ___, ...plain } = JSON.parse(sent[0] ?? '');
    for (const [place, { body }] of second.requests.entries()) {
      const { model, max_tokens, max_completion_tokens, messages, ...rest } = JSON.parse(body.toString());
      expect(model).toBe('second');
      expect(max_tokens ?? max_completion_tokens).toBe(333);
      expect(messages).toEqual(JSON.parse(sent[place] ?? '').messages);
      expect({ ...rest, messages: plain.messages }).toEqual(plain);
    }
    expect(second.requests).toHaveLength(2);
    const result = resultIn(ran.stdout);
    expect(result).toMatchObject({
      state: 'done',
      done: 2,
      total: 2,
      change: { model: 'm2', persona: null },
    });
    expect(result.results[0]?.changed[0]).toMatchObject({ outcome: 'answered', verdict: 'same', steps: 2 });
    expect(await project.logFile('demo')).toBe(log);
  });

  it('shows both sides, the lines that differ, finish reasons, tokens, and an unknown cost as unknown', async () => {
    const first = await provider(recorded);
    const second = await provider(({ json }) =>
      json.messages?.at(-1)?.role === 'tool'
        ? { text: 'They differ.\nIn two lines.', finishReason: 'length' }
        : { text: 'Looking.', toolCalls: reads('b.txt', 'a.txt') },
    );
    const project = await start(first, second);
    const at = await answerOf(await project.connect());
    const ran = await project.parley('what-if', 'demo', '--at', String(at), '--model', 'm2', '-n', '2');
    expect([ran.code, ran.stderr]).toEqual([
      0,
      expect.stringMatching(/^what-if \w+: queued, 0 of 4 runs of 1 turn\n$/),
    ]);
    expect(ran.stdout).toContain('pm with model m2, 2 runs of each side');
    expect(ran.stdout).toMatch(/control +2 +0 +0 +0 +0 +4 +40 +8 +\$0\.0120/);
    expect(ran.stdout).toMatch(/changed +0 +2 +0 +0 +0 +4 +40 +8 +unknown/);
    expect(ran.stdout).toMatch(/changed 1 +different .* length/);
    expect(ran.stdout).toContain('- In one line.\n+ In two lines.\n');
    expect(ran.stdout).toContain(
      'changed 2: different; the answer was cut at the output limit (length)\n  as changed 1',
    );
    expect(ran.stdout).not.toContain('$0.0000');
    const listed = await project.parley('what-if', 'demo', '--list');
    expect(listed.stdout).toMatch(/\w+ +\S+ +done +pm +model m2 +1 +2 +0 +2 +\$0\.0120 \+ unknown/);
  });

  it('ends a run at a call that the recorded turn did not make, and runs no tool', async () => {
    const first = await provider(recorded);
    const second = await provider(() => ({ text: 'Other.', toolCalls: reads('c.txt') }));
    const project = await start(first, second);
    const at = await answerOf(await project.connect());
    const audit = () => readFile(join(project.data, 'conversations', 'demo', 'audit.jsonl'), 'utf8');
    const before = await audit();
    const ran = await project.parley('what-if', 'demo', '--agent', 'pm', '--at', String(at), '--model', 'm2');
    expect([ran.code, ran.stdout]).toEqual([0, expect.stringContaining('changed 1: call 1 wanted tools')]);
    expect(ran.stdout).toContain('+ ⚙ fs_read {"path":"@project/c.txt"}');
    expect(await audit()).toBe(before);
    const last = await project.parley(
      'what-if',
      'demo',
      '--at',
      String(at),
      '--model',
      'm2',
      '--from-answer',
      '--json',
    );
    expect(JSON.parse(second.requests.at(-1)?.body.toString() ?? '').messages).toEqual(
      JSON.parse(first.requests[1]?.body.toString() ?? '').messages,
    );
    expect(resultIn(last.stdout).start).toBe('answer');
  });

  it('replaces the persona by the text of a file, without the keys of an agent file', async () => {
    const first = await provider(recorded);
    const project = await start(first, await provider(recorded));
    const at = await answerOf(await project.connect());
    await writeFile(join(project.root, 'terse.md'), PM.replace('PERSONA OF PAM', 'BE TERSE'));
    const ran = await project.parley(
      'what-if',
      'demo',
      '--at',
      String(at),
      '--persona',
      'terse.md',
      '--json',
    );
    expect(ran.code).toBe(0);
    const systems = first.requests.slice(2).map(({ json }) => json.messages?.[0]?.content ?? '');
    expect(
      systems.filter((text) => text.includes('BE TERSE') && !text.includes('description:')),
    ).toHaveLength(2);
    expect(systems.filter((text) => text.includes('PERSONA OF PAM'))).toHaveLength(2);
  });

  it('refuses what it cannot send again, with the next step', async () => {
    const project = await start(await provider(recorded), await provider(recorded));
    const at = await answerOf(await project.connect());
    const refused = async (...args: string[]) => {
      const { code, stderr } = await project.parley('what-if', 'demo', ...args);
      return [code, stderr];
    };
    expect(await refused('--at', String(at), '--model', 'm3')).toEqual([
      1,
      expect.stringMatching(/there is no model m3\n.*configured models: default, m2/s),
    ]);
    expect(await refused('--at', String(at))).toEqual([2, expect.stringContaining('what is changed?')]);
    expect(await refused('--at', '0', '--agent', 'pm', '--model', 'm2')).toEqual([
      1,
      expect.stringContaining('has no turn of pm at entry 0 that called its model'),
    ]);
    expect(await refused('--at', '99', '--agent', 'pm', '--model', 'm2')).toEqual([
      1,
      expect.stringContaining('demo has no entry 99; it has entries 0 to'),
    ]);
    expect(await refused('--show', 'none')).toEqual([1, expect.stringContaining('has no what-if none')]);
  });

  it('changes nothing in a turn that runs meanwhile, and is deleted with the conversation', async () => {
    const first = await provider((request, at) => ({ ...recorded(request, at), delayMs: 200 }));
    const second = await provider((request, at) => ({ ...recorded(request, at), delayMs: 300 }));
    const project = await start(first, second);
    const client = await project.connect();
    const at = await answerOf(client);
    const request = { conversation: 'demo', at, model: 'm2', runs: 10, id: 'w1' };
    await client.request('what-if', request);
    expect(await client.request('what-if', request)).toMatchObject({ id: 'w1' });
    await answerOf(client, 'and now?');
    const shown = await project.parley('explain', 'demo', '--agent', 'pm', '--at', String(at), '--json');
    expect(resultIn(shown.stdout)).toMatchObject({ report: { sent: true } });
    const entries = await entriesOf(client, 'demo');
    expect(entries.filter(({ type }) => type === 'turn-ended')).toHaveLength(2);
    expect((await client.request('what-ifs', { conversation: 'demo' })).whatIfs).toHaveLength(1);

    const removed = await project.parley('rm', 'demo');
    expect(removed.code).toBe(0);
    await second.waitForIdle();
    const made = second.requests.length;
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'again' });
    await followUntil(client, 'demo', turnsEnded(1));
    expect((await client.request('what-ifs', { conversation: 'demo' })).whatIfs).toEqual([]);
    expect(second.requests.length).toBe(made);
  });

  it('stops a what-if by hand and with its daemon, which keeps no result', async () => {
    let slow = false;
    const first = await provider((request, at) => ({ ...recorded(request, at), delayMs: slow ? 200 : 0 }));
    const project = await start(first, await provider(recorded));
    const at = await answerOf(await project.connect());
    slow = true;
    const begin = async (id: string) => {
      const client = await project.connect();
      await client.request('what-if', { conversation: 'demo', at, model: 'm2', runs: 20, id });
      await expect
        .poll(async () => (await client.request('what-ifs', { conversation: 'demo' })).whatIfs[0]?.done, {
          timeout: 20_000,
        })
        .toBeGreaterThan(0);
    };
    const listed = async () => {
      const { stdout } = await project.parley('what-if', 'demo', '--list', '--json');
      return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    };
    await begin('by-hand');
    const ended = await project.parley('what-if', 'demo', '--stop', 'by-hand');
    expect([ended.code, ended.stdout]).toEqual([1, expect.stringContaining('stopped, ')]);
    const [{ id, state, done, total }] = await listed();
    expect([id, state, done > 0, done < total]).toEqual(['by-hand', 'stopped', true, true]);
    await begin('by-the-stop');
    expect(await daemon.stop()).toBe(0);
    daemon = await project.up();
    expect(await listed()).toEqual([]);
  });
});
