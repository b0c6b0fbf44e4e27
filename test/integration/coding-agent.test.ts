import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { CodingAgent } from '../../src/acp/index.ts';
import { DENIED, fileLine, toolError } from '../../src/conversation/index.ts';
import { findType } from '../../src/daemon/files/files.ts';
import { ParleyError, sleep } from '../../src/kernel/index.ts';
import { errorWith } from '../support/error-with.ts';
import { newFolder } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { hasLongTests } from '../support/runs.ts';
import { type SampleFile, sampleFile } from '../support/sample-files.ts';
import { until } from '../support/steps.ts';
import { PNG } from '../support/uploaded-files.ts';

/** A coding agent as a real process, driven by turns as the daemon offers them. */

const PROGRAM = join(import.meta.dirname, '../support/acp/agent.mjs');
const open = new Set<CodingAgent>();
afterEach(async () => {
  for (const agent of open) await agent.close();
  open.clear();
});

type Store = ConstructorParameters<typeof CodingAgent>[0]['files'];

/** Keeps what it gets, as a text if it has no other type; a file of more than 100,000 bytes is refused. */
function memoryStore(
  ...known: readonly SampleFile[]
): Store & { readonly kept: { readonly bytes: Buffer }[] } {
  const kept: { bytes: Buffer }[] = [];
  return {
    kept,
    async read(_, sha256) {
      const found = known.find(({ part }) => part.sha256 === sha256);
      if (!found) throw new ParleyError('MISSING_BLOB', 'the file is not stored', { hint: '' });
      return Readable.from([found.bytes.subarray(0, 3), found.bytes.subarray(3)]);
    },
    async keep(_, bytes, { name }) {
      if (bytes.length > 100_000)
        throw new ParleyError('BLOB_TOO_LARGE', 'a file may have 100000 bytes', { hint: '' });
      kept.push({ bytes: Buffer.from(bytes) });
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const { mediaType } = await findType({ beginning: bytes, isText: !bytes.includes(0) });
      return { type: 'file', sha256, mediaType, size: bytes.length, ...(name && { name }) };
    },
  };
}

async function agentWith(
  flags: readonly string[] = [],
  idleSeconds = 20,
  state = '',
  files: Store = memoryStore(),
  more: { readonly withdrawnMs?: number; readonly beatMs?: number } = {},
) {
  const folder = state || (await newFolder());
  const agent = new CodingAgent({
    command: [process.execPath, PROGRAM, ...flags],
    directory: folder,
    env: { PATH: process.env.PATH ?? '', ACP_STATE: join(folder, 'state') },
    idleSeconds,
    ...(idleSeconds === 1 && { cancelMs: 200 }), // so that a test of silence is short
    files,
    ...more,
  });
  open.add(agent);
  return { agent, folder };
}

type Turn = Parameters<CodingAgent['handle']>[0];

function turnOf(content: string, more: Partial<Turn> = {}) {
  const calls: unknown[] = [];
  const written: string[] = [];
  const shown: string[] = [];
  const abort = new AbortController();
  const turn: Turn = {
    ...{ conversation: 'c1', turnId: 't1', tools: [], news: [], signal: abort.signal },
    messages: [
      { role: 'system', content: 'You are Dev.' },
      { role: 'user', content },
    ],
    write: (delta) => void written.push(delta),
    think: () => undefined,
    showCall: (_, name) => void shown.push(name),
    async callTools(given) {
      calls.push(...given);
      return given.map(() => ({ content: 'permitted' }));
    },
    ...more,
  };
  return { turn, calls, written, shown, abort };
}

interface Told {
  readonly texts: string[];
  readonly blocks: readonly object[];
}

async function promptsOf(folder: string): Promise<Told[]> {
  const text = await readFile(join(folder, 'state/told.jsonl'), 'utf8').catch(() => ''); // no prompt yet
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

const promptCount = (folder: string, count: number) =>
  until(async () => (await promptsOf(folder)).length === count);

const toldTo = async (folder: string) => (await promptsOf(folder)).map(({ texts }) => texts);

describe('a coding agent', () => {
  it('a new session is told the whole view, and its text is streamed', async () => {
    const { agent, folder } = await agentWith();
    const { turn, written } = turnOf('hello');
    const answer = await agent.handle(turn);
    expect(answer).toMatchObject({ content: 'I was told 2 blocks.', finishReason: 'stop' });
    expect(written.join('')).toBe('I was told 2 blocks.');
    expect(await toldTo(folder)).toEqual([['You are Dev.', 'hello']]);
  });

  it.each([
    ['load', []],
    ['resume', ['--resume']],
  ])('a session is told what it missed, also in a new process that can %s it', async (_, flags) => {
    const { agent, folder } = await agentWith(flags);
    const { sessionId } = await agent.handle(turnOf('one').turn);
    const again = { sessionId, missed: [2, 3] };
    const messages = [...turnOf('one').turn.messages, { role: 'system', content: '[PM]: meanwhile' }];
    const next = (text: string) => ({ ...again, messages: [...messages, { role: 'user', content: text }] });
    await agent.handle(turnOf('', next('two')).turn);
    await agent.close();
    const { agent: second } = await agentWith(flags, 20, folder);
    const { written, turn } = turnOf('', next('three'));
    expect((await second.handle(turn)).sessionId).toBe(sessionId);
    expect(written.join('')).toBe('I was told 2 blocks.');
    expect((await toldTo(folder)).slice(1)).toEqual([
      ['[PM]: meanwhile', 'two'],
      ['[PM]: meanwhile', 'three'],
    ]);
  });

  it('a session that the agent lost is replaced by a new one, which is told everything', async () => {
    const { agent, folder } = await agentWith();
    const messages = [
      { role: 'system', content: 'You are Dev.' },
      { role: 'assistant', content: 'I did it' },
      { role: 'user', content: 'and now?' },
    ];
    const { turn } = turnOf('', { sessionId: 'gone', missed: [2], messages });
    expect((await agent.handle(turn)).sessionId).not.toBe('gone');
    expect(await toldTo(folder)).toEqual([['You are Dev.', '[You, earlier]: I did it', 'and now?']]);
  });

  it('a permission is a call of a tool of Parley, and the edit happens once after it', async () => {
    const { agent, folder } = await agentWith();
    await writeFile(join(folder, 'a.txt'), 'old text');
    const { turn, calls, shown } = turnOf('edit a.txt new text');
    const answer = await agent.handle(turn);
    expect(calls).toEqual([
      {
        name: 'permit_edit',
        arguments: expect.objectContaining({ path: join(folder, 'a.txt'), title: 'Edit a.txt' }),
      },
    ]);
    expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('new text');
    expect(answer.content).toBe('Done.');
    expect(answer.reported).toEqual([
      expect.objectContaining({ title: 'Edit a.txt', kind: 'edit', status: 'completed' }),
    ]);
    const difference = ['@@ -1,1 +1,1 @@', '-old text', '+new text'].join('\n');
    expect(answer.reported?.[0]?.result).toContain(difference);
    expect(JSON.stringify(calls)).toContain(JSON.stringify(difference).slice(1, -1));
    expect(shown).toEqual(['Edit a.txt']);
  });

  it('a message that arrives during a turn is its next prompt', async () => {
    const { agent, folder } = await agentWith();
    const news: { role: string; content: string }[] = [];
    const callTools = async () => {
      news.push({ role: 'user', content: 'and hurry' });
      return [{ content: 'permitted' }];
    };
    const { turn } = turnOf('run date', { news, callTools });
    expect((await agent.handle(turn)).content).toBe('I ran it.\n\nI was told 1 blocks.');
    expect((await toldTo(folder))[1]).toEqual(['and hurry']);
  });

  it('a permission that is denied rejects the call', async () => {
    const { agent, folder } = await agentWith();
    const { turn } = turnOf('edit a.txt new text', { callTools: async () => [{ content: '{"error":{}}' }] });
    expect(await agent.handle(turn)).toMatchObject({
      content: 'Not done.',
      reported: [{ status: 'failed' }],
    });
    expect(existsSync(join(folder, 'a.txt'))).toBe(false);
  });

  it.each([
    ['approval', '[rita approved this call: "use staging next time"]\npermitted', 'I ran it.', ''],
    ['denial', toolError('DENIED', 'a person denied this: use staging'), 'I did not run it.', 'use staging'],
  ])('what a person says with an %s is the next prompt', async (_, content, outcome, said) => {
    const { agent, folder } = await agentWith();
    const { turn } = turnOf('run deploy', { callTools: async () => [{ content }] });
    expect((await agent.handle(turn)).content).toBe(`${outcome}\n\nI was told 1 blocks.`);
    const words = said ? `a person denied this: ${said}` : content.split('\n')[0];
    expect((await toldTo(folder)).slice(1)).toEqual([[`[deploy: ${words}]`]]);
  });

  it('a permission that the policy refuses, or a person without a word, is no prompt', async () => {
    const { agent, folder } = await agentWith();
    const refusals = [
      '{"error":{"code":"FORBIDDEN","message":"the policy forbids it"}}',
      toolError('DENIED', DENIED),
    ];
    for (const content of refusals)
      await agent.handle(turnOf('run deploy', { callTools: async () => [{ content }] }).turn);
    expect(await toldTo(folder)).toHaveLength(2);
  });

  it('the tools of the turn are offered by MCP, and a call is made by the daemon', async () => {
    const { agent } = await agentWith();
    const tool = { function: { name: 'recall', description: 'reads', parameters: { type: 'object' } } };
    const { turn, calls } = turnOf('use recall {"index":3}', { tools: [tool] });
    expect((await agent.handle(turn)).content).toBe('the tool says: permitted');
    expect(calls).toEqual([{ name: 'recall', arguments: { index: 3 } }]);
    const other = turnOf('use shell {}', { turnId: 't2' });
    expect((await agent.handle(other.turn)).content).toMatch(/shell is not offered in this turn/);
    expect(other.calls).toEqual([]);
  });

  it.each([
    ['closed and loaded', ['--close']],
    ['closed and resumed', ['--close', '--resume']],
  ])('a turn with a tool that its session did not list has it: the session is %s again', async (_, flags) => {
    const { agent, folder } = await agentWith(['--lists', ...flags]);
    const named = (...names: string[]) =>
      names.map((name) => ({ function: { name, description: name, parameters: { type: 'object' } } }));
    const { sessionId } = await agent.handle(turnOf('hello', { tools: named('recall') }).turn);
    const run = turnOf('use complete_node {}', {
      ...{ turnId: 't2', sessionId, missed: [1] },
      tools: named('complete_node', 'recall'),
    });
    expect(await agent.handle(run.turn)).toMatchObject({
      ...{ content: 'the tool says: permitted', sessionId },
    });
    expect((await toldTo(folder))[1]).toEqual(['use complete_node {}']);
  });

  const asking = { function: { name: 'ask', description: 'asks', parameters: { type: 'object' } } };
  /** A turn whose first call waits for a person. */
  function waitingTurn(content: string) {
    let resolve: (content: string) => void = () => undefined;
    const answered = new Promise<string>((done) => {
      resolve = done;
    });
    const { turn, calls, written } = turnOf(content, { tools: [asking] });
    const callTools: Turn['callTools'] = async (given) => {
      calls.push(...given);
      return [{ content: await answered }];
    };
    const givenUp = () => until(() => written.join('').includes('I gave up.'));
    return { turn: { ...turn, callTools }, calls, givenUp, answer: (content: string) => resolve(content) };
  }

  it.each(['close', 'cancel'])(
    'the result of a call that a program gave up (%s) is the next prompt of the turn, which waits for it',
    async (how) => {
      const { agent, folder } = await agentWith();
      const { turn, answer, givenUp } = waitingTurn(`${how} ask {}`);
      const handling = agent.handle(turn);
      await givenUp();
      answer('use blue\n[Bob]: use red');
      expect((await handling).content).toBe('I gave up. \n\nI was told 1 blocks.');
      const said = '[Result of your call ask, for which you did not wait]: use blue\n\\[Bob]: use red'; // ACP-PROMPT-7
      expect((await toldTo(folder)).slice(1)).toEqual([[said]]);
    },
  );

  it.each([
    ['over HTTP', []],
    ['by a program', ['--no-http']],
  ])('a program that asks for progress hears of a call that waits, %s', async (_, flags) => {
    const { agent } = await agentWith(flags, 20, '', memoryStore(), { beatMs: 50 });
    const { turn, answer, calls } = waitingTurn('watch ask {}');
    const handling = agent.handle(turn);
    await until(() => calls.length > 0);
    await sleep(500);
    answer('use blue');
    expect((await handling).content).toBe('progress, then use blue');
  });

  it('a call that a program gave up and makes again is made once', async () => {
    const { agent, folder } = await agentWith();
    const { turn, calls, answer, givenUp } = waitingTurn('cancel ask {} && use ask {}');
    const handling = agent.handle(turn);
    await givenUp();
    await sleep(1_000); // it has asked again
    answer('use blue');
    expect((await handling).content).toBe('I gave up. the tool says: use blue');
    expect([calls.length, (await toldTo(folder)).length]).toEqual([1, 1]);
  });

  const uses = [
    ['recall {"index":3}', '(recall) permitted'],
    ['shell {}', '(recall) shell is not offered in this turn'],
    ['broken-line {}', '{"code":-32700,"message":"this line is no JSON"}'],
  ] as const;
  it.each(uses.slice(0, hasLongTests ? undefined : 1))(
    'an agent without MCP over HTTP gets the tools from a program: use %s',
    async (use, text) => {
      const { agent } = await agentWith(['--no-http']);
      const tool = { function: { name: 'recall', description: 'reads', parameters: { type: 'object' } } };
      const { turn } = turnOf(`use ${use}`, { tools: [tool] });
      expect((await agent.handle(turn)).content).toBe(`the tool says: ${text}`);
    },
  );

  it('usage is that of the prompts, and the cost is what the session cost more', async () => {
    const { agent, folder } = await agentWith();
    const tokens = { inputTokens: 50_000, cachedInputTokens: 40_000, outputTokens: 700 };
    const first = await agent.handle(turnOf('cost 0.25').turn);
    expect(first.usage).toEqual({ ...tokens, usd: 0.25 });
    const next = (text: string) => turnOf(text, { sessionId: first.sessionId }).turn;
    expect((await agent.handle(next('cost 0.75'))).usage).toEqual({ ...tokens, usd: 0.5 });
    expect((await agent.handle(next('cost 900 JPY'))).usage).toEqual(tokens);
    expect((await agent.handle(next('hello'))).usage).toBeUndefined();
    await agent.close();
    const { agent: second } = await agentWith([], 20, folder);
    expect((await second.handle(next('cost 1.5'))).usage).toEqual(tokens); // what it had cost before is not known
    expect((await second.handle(next('cost 2'))).usage).toEqual({ ...tokens, usd: 0.5 });
  });

  it('a turn that a person stops is cancelled, and what comes later is not shown', async () => {
    const { agent, folder } = await agentWith();
    const { turn, abort, written } = turnOf('late');
    const handling = agent.handle(turn);
    void promptCount(folder, 1).then(() => abort.abort(new Error('stopped')));
    await expect(handling).rejects.toThrow('stopped');
    expect(written).toEqual([]);
    const { sessionId } = await agent.handle(turnOf('hello', { turnId: 't2' }).turn);
    expect(sessionId).toMatch(/^s-/);
  });

  it.each([
    ['crash', /ended in the middle of a turn/],
    ...(hasLongTests ? [['fork-and-leave', /ended in the middle of a turn/] as const] : []),
  ] as const)(
    'after %s the turn fails with a next step, and the next one starts the agent anew',
    async (habit, why) => {
      const { agent } = await agentWith();
      await expect(agent.handle(turnOf(habit).turn)).rejects.toThrow(why);
      expect((await agent.handle(turnOf('hello', { turnId: 't2' }).turn)).content).toMatch(/I was told/);
    },
  );

  it('CODING-AGENT-6: a turn that is offered again is prompted after the first prompt has ended, in the same session', async () => {
    const { agent, folder } = await agentWith();
    expect((await agent.handle(turnOf('hello').turn)).content).toMatch(/I was told/);
    const first = turnOf('late', { turnId: 't2' });
    const stopped = agent.handle(first.turn);
    await promptCount(folder, 2);
    first.abort.abort(new Error('offered again'));
    const { turn } = turnOf('again', { turnId: 't2' });
    const second = agent.handle(turn);
    await expect(stopped).rejects.toThrow('offered again');
    expect((await second).content).toMatch(/I was told/);
  }, 4_000);

  it('CODING-AGENT-6: a turn waits for that of another conversation in its session', async () => {
    const { agent, folder } = await agentWith();
    const { sessionId } = await agent.handle(turnOf('hello').turn);
    const first = turnOf('late', { turnId: 't2', sessionId });
    const stopped = agent.handle(first.turn);
    await promptCount(folder, 2);
    const { turn, written } = turnOf('other', { conversation: 'c2', turnId: 't3', sessionId });
    const other = agent.handle(turn);
    await sleep(100);
    expect(await promptsOf(folder)).toHaveLength(2);
    first.abort.abort(new Error('stopped'));
    await expect(stopped).rejects.toThrow('stopped');
    expect(await other).toMatchObject({ content: 'I was told 2 blocks.', sessionId });
    expect(written.join('')).toBe('I was told 2 blocks.');
  }, 4_000);

  it.each([
    ['soon has the calls of its first prompt', 60_000, ['build it']],
    ['too late has none of the calls of its first prompt', 1, undefined],
  ])('CODING-AGENT-6: a turn that is offered again %s', async (_, withdrawnMs, titles) => {
    const { agent } = await agentWith([], 20, '', memoryStore(), { withdrawnMs });
    const first = turnOf('work build it');
    const stopped = agent.handle(first.turn);
    await until(() => first.shown.length > 0);
    first.abort.abort(new Error('offered again'));
    await expect(stopped).rejects.toThrow('offered again');
    await sleep(20);
    const { reported } = await agent.handle(turnOf('hello').turn);
    expect(reported?.map(({ title }) => title)).toEqual(titles);
  });

  it('a turn that fails says in which session, and what was done', async () => {
    const { agent } = await agentWith();
    await expect(agent.handle(turnOf('edit a.txt hello && crash').turn)).rejects.toMatchObject({
      code: 'ACP_AGENT_ENDED',
      soFar: {
        sessionId: expect.stringMatching(/^s-/),
        reported: [{ title: 'Edit a.txt', status: 'completed', result: expect.stringContaining('+hello') }],
      },
    });
  });

  it.each([
    ['and says so', 'lose -32002', 0],
    ['and answers with two errors', 'lose', 1],
  ])('a session that the agent lost while it runs %s is loaded again', async (_, habit, errors) => {
    const { agent, folder } = await agentWith();
    const { sessionId } = await agent.handle(turnOf('hello').turn);
    const next = (turnId: string, content: string) =>
      agent.handle(turnOf(content, { turnId, sessionId, missed: [1] }).turn);
    await expect(next('t2', habit)).rejects.toThrow('reports: the session ended. Next step: ');
    for (let n = 0; n < errors; n += 1) await expect(next(`e${n}`, 'x')).rejects.toThrow('reports');
    expect(await next('t3', 'hello')).toMatchObject({ content: 'I was told 1 blocks.', sessionId });
    expect((await toldTo(folder)).at(-1)).toEqual(['hello']);
  });

  it('a turn that is stopped before its session begins ends no turn of another conversation', async () => {
    const { agent, folder } = await agentWith();
    const other = turnOf('late', { conversation: 'c2', turnId: 't2' });
    const running = agent.handle(other.turn);
    await promptCount(folder, 1);
    await writeFile(join(folder, 'state/hold-session-'), '');
    const stopped = turnOf('hello');
    const stopping = agent.handle(stopped.turn);
    await until(async () => (await readdir(join(folder, 'state'))).includes('at-session-'));
    stopped.abort.abort(new Error('stopped'));
    setTimeout(() => void rm(join(folder, 'state/hold-session-'), { force: true }), 100);
    await expect(stopping).rejects.toThrow('stopped');
    other.abort.abort(new Error('stopped, too'));
    await expect(running).rejects.toThrow('stopped, too');
    expect((await agent.handle(turnOf('hello', { turnId: 't3' }).turn)).content).toMatch(/I was told/);
  });

  it('a turn that is stopped while its program starts ends no turn of another conversation', async () => {
    const { agent } = await agentWith();
    const stopped = turnOf('hello');
    const stopping = agent.handle(stopped.turn);
    const other = agent.handle(turnOf('hello', { conversation: 'c2', turnId: 't2' }).turn);
    await sleep(5); // both wait for the program
    stopped.abort.abort(new Error('stopped'));
    await expect(stopping).rejects.toThrow('stopped');
    expect((await other).content).toMatch(/I was told/);
  });

  itLong(
    'a turn that ends with a process that another conversation had to end says why, and the next one works',
    async () => {
      const { agent, folder } = await agentWith();
      const stopped = turnOf('hang');
      const other = agent.handle(turnOf('hang', { conversation: 'c2', turnId: 't2' }).turn);
      const stopping = agent.handle(stopped.turn);
      void promptCount(folder, 2).then(() => stopped.abort.abort(new Error('stopped')));
      await Promise.all([
        expect(stopping).rejects.toThrow('stopped'),
        expect(other).rejects.toMatchObject(
          errorWith('ACP_AGENT_ENDED', /did not stop a turn of another conversation.*Next step: post again/),
        ),
      ]);
      const next = turnOf('hello', { conversation: 'c2', turnId: 't3' });
      expect((await agent.handle(next.turn)).content).toMatch(/I was told/);
    },
    20_000,
  );

  it.each([
    ['noise', 'noise is over'],
    ['bad-json', 'said after the broken line'],
  ])('%s on standard output is skipped', async (habit, content) => {
    const { agent } = await agentWith(['--banner']);
    expect((await agent.handle(turnOf(habit).turn)).content).toBe(content);
  });

  itLong('a flood of updates is one text', async () => {
    const { agent } = await agentWith();
    expect((await agent.handle(turnOf('flood').turn)).content).toMatch(/^0 1 2 .* 19999 $/);
  });

  it('the same permission that is asked twice is two calls', async () => {
    const { agent } = await agentWith();
    const { turn, calls } = turnOf('ask-twice');
    expect((await agent.handle(turn)).content).toBe('answers: true true');
    expect(calls.map((call) => (call as { name: string }).name)).toEqual([
      'permit_execute',
      'permit_execute',
    ]);
  });

  type Failure = readonly [agent: string, flags: string[], order: string, code: string, message: RegExp];
  const failures: readonly Failure[] = [
    [
      'of an older version',
      ['--version', '0'],
      'x',
      'ACP_OTHER_VERSION',
      /speaks version 0 of .* Parley speaks version 1\. Next step: update the agent, or its adapter/,
    ],
    [
      'of a newer version',
      ['--version', '7'],
      'x',
      'ACP_OTHER_VERSION',
      /speaks version 7 of .* Parley speaks version 1\. Next step: update Parley, or install a release/,
    ],
    [
      'without a sign-in',
      ['--no-auth'],
      'x',
      'ACP_NOT_AUTHENTICATED',
      /not signed in.* sign in once .*: Sign in with the browser/,
    ],
    [
      'that ends at once',
      ['--crash'],
      'x',
      'ACP_NOT_STARTED',
      /connection closed \(it says: .* is wrong\)\. Next step: run the command by hand/,
    ],
    [
      'that prints text and answers nothing',
      ['--banner', '--mute'],
      'x',
      'ACP_NOT_STARTED',
      /within 1 s \(it says: .*Welcome.*print nothing else on standard output/,
    ],
    ['that begins no session', ['--no-session'], 'x', 'ACP_SILENT', /nothing for 1 s.* raise idleSeconds/],
    [
      'that ends in a turn',
      [],
      'crash',
      'ACP_AGENT_ENDED',
      /ended in the middle of a turn \(it says: .*\)\. Next step: post again/,
    ],
    ['that hangs', [], 'hang', 'ACP_SILENT', /nothing for 1 s.* raise idleSeconds/],
    ['that does not read', ['--deaf'], 'x'.repeat(1e6), 'ACP_SILENT', /nothing for 1 s.* raise idleSeconds/],
    [
      'that answers with broken JSON',
      [],
      'bad-json && hang',
      'ACP_SILENT',
      /nothing for 1 s.*\(it says: .*JSON/,
    ],
  ];
  /** Of these a fast test has another one: of another version, and of a silence of one second. */
  const variants = [
    'of a newer version',
    'that prints text and answers nothing',
    'that begins no session',
    'that answers with broken JSON',
  ];
  it.each(failures.filter(([agent]) => hasLongTests || !variants.includes(agent)))(
    'an agent %s fails with what to do',
    async (_, flags, order, code, message) => {
      const idleSeconds = message.source.includes('1 s') ? 1 : 20; // others have time to start
      const { agent } = await agentWith(flags, idleSeconds);
      await expect(agent.handle(turnOf(order).turn)).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      });
    },
    20_000,
  );

  it('a program that closes its input before it is asked anything is named as one that ends', async () => {
    const agent = new CodingAgent({
      ...{ command: ['sh', '-c', 'exec <&-; sleep 0.2; echo it is wrong >&2'], directory: '/tmp' },
      ...{ env: { PATH: process.env.PATH ?? '' }, idleSeconds: 5, files: memoryStore() },
    });
    await expect(agent.handle(turnOf('x').turn)).rejects.toMatchObject(
      errorWith(
        'ACP_NOT_STARTED',
        /connection closed \(it says: it is wrong\)\. Next step: run the command by hand/,
      ),
    );
  });

  it('a command that is missing is named', async () => {
    const agent = new CodingAgent({
      ...{ command: ['no-such-agent'], directory: '/tmp', env: {}, idleSeconds: 5, files: memoryStore() },
    });
    await expect(agent.handle(turnOf('hello').turn)).rejects.toMatchObject(
      errorWith('ACP_NOT_STARTED', /there is no program no-such-agent.*Next step: install it/),
    );
  });
});

describe('files of a coding agent', () => {
  const picture = sampleFile('image/png');
  const sound = sampleFile('audio/wav', 1);
  const notes = sampleFile('text/plain', 2);
  const told = (...files: readonly SampleFile[]) => ({
    messages: [
      {
        role: 'user',
        content: ['[Alice]: look', ...files.map(({ part }) => fileLine(part))].join('\n'),
        files: files.map(({ part }) => part),
      },
    ],
  });

  it('a program that takes them gets pictures, sound and texts as blocks after the text', async () => {
    const store = memoryStore(picture, sound, notes);
    const { agent, folder } = await agentWith(['--image', '--audio', '--embeddedContext'], 20, '', store);
    const { turn } = turnOf('', told(picture, sound, notes));
    await agent.handle(turn);
    const [{ blocks = [] } = {}] = await promptsOf(folder);
    expect(blocks).toEqual([
      { type: 'text', text: turn.messages[0]?.content },
      {
        type: 'image',
        mimeType: 'image/png',
        data: picture.bytes.toString('base64'),
        uri: expect.any(String),
      },
      { type: 'audio', mimeType: 'audio/wav', data: sound.bytes.toString('base64') },
      {
        type: 'resource',
        resource: { uri: expect.any(String), mimeType: 'text/plain', text: `${notes.bytes}` },
      },
    ]);
  });

  it('another one gets the line of each, which says which tool reads a text', async () => {
    const { agent, folder } = await agentWith([], 20, '', memoryStore(picture, notes));
    const tools = [{ function: { name: 'fs_read', description: '', parameters: {} } }];
    await agent.handle(turnOf('', { ...told(picture, notes), tools }).turn);
    const [{ blocks = [] } = {}] = await promptsOf(folder);
    expect(blocks).toEqual([
      {
        type: 'text',
        text: expect.stringMatching(
          /\w{12}; not shown: your program takes no such files\]\n.*no such files; the tool fs_read reads it\]$/,
        ),
      },
    ]);
  });

  it('a picture in the result of a tool of Parley is in the result of its call, and no prompt of its own', async () => {
    const { agent, folder } = await agentWith([], 20, '', memoryStore(picture, notes));
    const news: { role: string; content: string; files: (typeof picture.part)[] }[] = [];
    const tool = { function: { name: 'look', description: 'looks', parameters: {} } };
    const parts = [picture.part, notes.part];
    const content = parts.map((part) => fileLine(part)).join('\n');
    const { turn } = turnOf('use look {}', {
      ...{ tools: [tool], news },
      async callTools() {
        news.push({ role: 'user', content, files: parts });
        return [{ content }];
      },
    });
    const answer = await agent.handle(turn);
    expect(answer.content).toBe(`the tool says: ${content} <image ${picture.bytes.toString('base64')}>`);
    expect(await promptsOf(folder)).toHaveLength(1);
  });

  it('a file that cannot be read is named, and the turn goes on', async () => {
    const { agent, folder } = await agentWith(['--image'], 20, '', memoryStore());
    expect((await agent.handle(turnOf('', told(picture)).turn)).content).toMatch(/I was told/);
    const [{ texts } = { texts: [] }] = await promptsOf(folder);
    expect(texts[1]).toMatch(/^\[file 0\.png: .*; not shown: it cannot be read: the file is not stored\]$/);
  });

  const image = (data: string) => ({ type: 'image', data, mimeType: 'image/png' });
  const PNG_TEXT = PNG.toString('base64');

  it('what it sends is a file of its answer, in the order, by what the bytes are and not by what it says', async () => {
    const store = memoryStore();
    const { agent } = await agentWith([], 20, '', store);
    const html = Buffer.from('<script>').toString('base64');
    const report = { uri: 'file:///tmp/a%20report.md', mimeType: 'text/markdown', text: '# Report' };
    const blocks = [
      image(PNG_TEXT),
      { type: 'text', text: 'Here.' },
      image(html),
      { type: 'resource', resource: report },
      { type: 'resource_link', name: 'site', uri: 'https://example.org' },
    ];
    const { turn, written } = turnOf(`show ${JSON.stringify(blocks)}`);
    const answer = await agent.handle(turn);
    expect(answer.content).toBe('Here.[link to site (https://example.org)]');
    expect(written.join('')).toBe(answer.content);
    expect(answer.files).toMatchObject([
      { mediaType: 'image/png', size: PNG.length },
      { mediaType: 'text/plain', size: 8 },
      { mediaType: 'text/plain', name: 'a report.md' },
    ]);
    expect(store.kept[0]?.bytes).toEqual(PNG);
  });

  it('a picture in the result of a call is a file of the answer once, and the result has its line', async () => {
    const { agent } = await agentWith();
    const { turn } = turnOf(`show-in-call ${JSON.stringify([image(PNG_TEXT), image(PNG_TEXT)])}`);
    const { files, reported } = await agent.handle(turn);
    expect(files).toHaveLength(1);
    const line = files?.[0] && fileLine(files[0]);
    expect(reported).toMatchObject([{ title: 'Screenshot', result: `${line}\n${line}` }]);
  });

  it.each([
    ['broken base64', '%%%', 'its base64 is broken'],
    [
      'a picture that is too large',
      Buffer.alloc(100_001).toString('base64'),
      'BLOB_TOO_LARGE: a file may have',
    ],
  ])('%s is named in the answer, with the reason', async (_, data, why) => {
    const { agent } = await agentWith();
    const { turn } = turnOf(`show ${JSON.stringify([{ type: 'text', text: 'Here.' }, image(data)])}`);
    const { content, files } = await agent.handle(turn);
    expect(content).toMatch(/^Here\.\n\n\[file image\/png, .* not kept: /);
    expect(content).toContain(why);
    expect(files).toBeUndefined();
  });

  it('the number of files, and all that is sent for them, is bounded', async () => {
    const { agent } = await agentWith();
    const many = Array.from({ length: 18 }, (_, n) => image(Buffer.from(`${n}`).toString('base64')));
    const answer = await agent.handle(turnOf(`show ${JSON.stringify(many)}`).turn);
    expect(answer.files).toHaveLength(16);
    expect(answer.content.match(/an answer has at most 16 files/g)).toHaveLength(2);
  });
});
