import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { looksLikeAnAnswer, parseChatLine } from '../../../src/cli/chat/session.ts';
import { ParleyError } from '../../../src/client/index.ts';
import { toolCall } from '../../support/log.ts';
import {
  agent,
  chunk,
  ended,
  entryOf,
  fakeDaemon,
  parley,
  person,
  posted,
  replying,
  reportOf,
  start,
  started,
  terminal,
  turn,
} from './support.ts';

const PM = { slug: 'pm', name: 'Project Manager', description: '', phases: [], modes: [] };
const NAMES = { agents: [{ ...PM, runtime: 'local', status: 'idle' }] };

/** A daemon whose project manager repeats each message. */
const echoing = (answers: Record<string, unknown> = {}) =>
  replying((at, { content }) => turn(at + 1, 'pm', at, `You said ${content}`, `t${at}`), {
    answers: { agents: NAMES, ...answers },
  });

describe('a line of a chat', () => {
  it.each([
    ['hello', { kind: 'message', text: 'hello' }],
    ['  ', { kind: 'nothing' }],
    ['/help', { kind: 'help' }],
    ['/quit', { kind: 'quit' }],
    ['/phase plan', { kind: 'phase', phase: 'plan' }],
    ['/phase', { kind: 'wrong', say: expect.any(String) }],
    ['/mode agent dev', { kind: 'mode', mode: 'agent', agent: 'dev' }],
    ['/mode', { kind: 'wrong', say: expect.any(String) }],
    ['/explain pm', { kind: 'explain', agent: 'pm' }],
    ['/explain', { kind: 'explain' }],
    ['/dance', { kind: 'wrong', say: expect.stringContaining('/dance') }],
    ['//etc is a folder', { kind: 'message', text: '/etc is a folder' }],
    ['/approve', { kind: 'decide', answer: 'approve', words: [] }],
    ['/approve ap1', { kind: 'decide', answer: 'approve', words: ['ap1'] }],
    ['/deny not there', { kind: 'decide', answer: 'deny', words: ['not', 'there'] }],
    ['/answer  red,  please', { kind: 'answer', text: 'red,  please' }],
    ['/answer', { kind: 'wrong', say: '/answer needs a text' }],
    ['/file  my plan.png', { kind: 'file', path: 'my plan.png' }],
    ['/file', { kind: 'wrong', say: '/file needs the path of a file' }],
    ['/run ship a  clock', { kind: 'run', workflow: 'ship', text: 'a  clock' }],
    ['/run ship', { kind: 'wrong', say: '/run needs a workflow and its input' }],
  ])('the chat line %j is parsed', (line, meaning) => {
    expect(parseChatLine(line)).toEqual(meaning);
  });
});

describe('a chat with piped input', () => {
  it('a piped chat does not wait for a stopped agent, and explains how to resume it', async () => {
    const conversation = { length: 1, agents: { pm: { status: 'stopped' } } };
    const daemon = replying(() => [], { answers: { agents: NAMES, conversation } });
    const ran = await parley(['chat', 'c'], { daemon, stdin: 'one\ntwo\n' });
    expect(daemon.log.map((entry) => entry.type === 'message' && entry.content)).toEqual(['one', 'two']);
    expect([ran.code, ran.err]).toEqual([0, expect.stringContaining('parley resume c')]);
  });

  it('a piped chat sends each line after the previous one was answered, and ends with its input', async () => {
    const daemon = echoing();
    const ran = await parley(['chat', 'c', '--as', 'Bob'], { daemon, stdin: 'one\n\ntwo\n' });
    expect(ran).toMatchObject({
      code: 0,
      err: '',
      out: 'Project Manager: You said one\nProject Manager: You said two\n',
    });
    expect(daemon.posts).toMatchObject([
      { conversation: 'c', content: 'one', author: { name: 'Bob' } },
      { conversation: 'c', content: 'two', author: { name: 'Bob' } },
    ]);
    expect(daemon.closed).toBe(1);
  });

  it('a piped chat uses one conversation if none is named', async () => {
    const daemon = echoing();
    await parley(['chat'], { daemon, stdin: 'one\n' });
    expect(daemon.posts).toMatchObject([{ conversation: 'chat' }]);
  });

  it('a piped chat prints every entry with --json', async () => {
    const daemon = echoing();
    const ran = await parley(['chat', 'c', '--json'], { daemon, stdin: 'one\n' });
    expect(ran.json()).toEqual(daemon.log);
  });

  it('a piped chat shows what others write, and nothing older than itself', async () => {
    const daemon = echoing();
    daemon.say(person(0, 'old'));
    const post = daemon.onPost;
    daemon.onPost = (message) => {
      daemon.say(person(daemon.log.length, 'me too'));
      return post(message);
    };
    const { out } = await parley(['chat', 'c'], { daemon, stdin: 'one\n' });
    expect(out).toBe('Alice: me too\nProject Manager: You said one\n');
  });

  it('a piped chat answers a question of a turn with the next line', async () => {
    const daemon = replying(
      (at) => [
        ...[started(at + 1, 'pm', [at]), agent(at + 2, 'pm', at === 0 ? 'Which?' : 'Good.')],
        ended(at + 3, 'pm', at === 0 ? 'waiting' : 'completed'),
      ],
      { answers: { agents: NAMES } },
    );
    const { out, code } = await parley(['chat', 'c'], { daemon, stdin: 'one\nthis\n' });
    expect(out).toContain('Which?');
    expect(out).toContain('Good.');
    expect(code).toBe(0);
  });

  it('a piped chat executes its commands', async () => {
    const detail = { id: 'c', phase: 'plan', mode: 'agent', activeAgent: null, length: 0, agents: {} };
    const view = { messages: [{ role: 'user', content: 'seen' }], report: reportOf() };
    const daemon = echoing({ phase: detail, mode: detail, view });
    const stdin = '/help\n/agents\n/phase plan\n/mode chat dev\n/explain pm\n/quit\nnever\n';
    const { out, code } = await parley(['chat', 'c'], { daemon, stdin });
    expect(code).toBe(0);
    for (const text of [
      '/phase PHASE',
      'Project Manager',
      'c: phase plan',
      '── 0 user · trigger · entry 0 · 11 tokens ──\nseen',
    ]) {
      expect(out).toContain(text);
    }
    expect(daemon.requests).toContainEqual({
      endpoint: 'phase',
      body: { conversation: 'c', phase: 'plan', publisher: 'alice' },
    });
    expect(daemon.requests).toContainEqual({
      endpoint: 'mode',
      body: { conversation: 'c', mode: 'chat', agent: 'dev', publisher: 'alice' },
    });
    expect(daemon.posts).toEqual([]);
  });

  it('a piped chat reports an invalid line and continues, but exits with an error', async () => {
    const daemon = echoing();
    const refuse = daemon.onPost;
    daemon.onPost = (message) => {
      if (message.content !== 'bad') return refuse(message);
      throw new ParleyError('UNKNOWN_AGENT', 'no agent ghost', { hint: 'see /agents' });
    };
    const ran = await parley(['chat', 'c'], { daemon, stdin: 'bad\n/dance\n/mode party\ngood\n' });
    expect(ran.code).toBe(1);
    expect(ran.err).toBe(
      'parley: no agent ghost\n  see /agents\nparley: unknown command /dance: /help lists all commands\nparley: there is no mode party\n  chat, agent or run\n',
    );
    expect(ran.out).toBe('Project Manager: You said good\n');
  });

  it('a piped chat refuses a line that is not UTF-8, and posts the others unchanged', async () => {
    const daemon = echoing();
    const bytes = Buffer.concat([Buffer.from('é\n'), Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from('日本\n')]);
    const stdin = Readable.from([...bytes].map((byte) => Buffer.from([byte])));
    const io = { stdin: Object.assign(stdin, { isTTY: false }) };
    const ran = await parley(['chat', 'c'], { daemon, io });
    expect(ran.code).toBe(1);
    expect(ran.err).toMatch(/^parley: line 2 on stdin is not UTF-8\n {2}convert it first: `iconv /);
    expect(daemon.posts.map(({ content }) => content)).toEqual(['é', '日本']);
  });

  it('a piped chat prints the results of its commands as values with --json', async () => {
    const detail = { id: 'c', phase: 'plan', mode: 'agent', activeAgent: null, length: 0, agents: {} };
    const daemon = echoing({ phase: detail });
    const stdin = '/help\n/agents\n/phase plan\n';
    const ran = await parley(['chat', 'c', '--json'], { daemon, stdin });
    expect(ran.json()).toEqual([{ help: expect.stringContaining('/phase PHASE') }, NAMES, detail]);
  });

  it('a piped chat prints errors as values with --json', async () => {
    const ran = await parley(['chat', 'c', '--json'], { daemon: echoing(), stdin: '/dance\n' });
    expect(ran.json()).toMatchObject([{ error: { code: 'USAGE' } }]);
  });

  it.each([
    ['failed', 1],
    ['limited', 1],
    ['aborted', 0],
  ] as const)(
    'the exit code of a piped chat with a turn that is %s is that of `say --wait`: %i',
    async (outcome, code) => {
      const daemon = replying(() => [started(1, 'pm', [0]), ended(2, 'pm', outcome)], {
        answers: { agents: NAMES },
      });
      expect((await parley(['chat', 'c'], { daemon, stdin: 'x\n' })).code).toBe(code);
    },
  );

  const begun = () =>
    replying(() => [started(1, 'pm', [0]), chunk('pm', 0, 'Hel')], { answers: { agents: NAMES } });

  it('a piped chat reports a daemon that does not answer, and prints an interrupted answer once', async () => {
    const daemon = begun();
    const running = start(['chat', 'c'], { daemon, stdin: 'x\n' });
    await expect.poll(running.output).toContain('Manager: Hel');
    daemon.reach(false);
    daemon.say(agent(2, 'pm', 'Hello'), ended(3, 'pm'));
    expect(await running.done).toMatchObject({
      code: 0,
      out: 'Project Manager: Hello\n',
      err: '· the daemon does not answer\n· the daemon answers again\n',
    });
  });

  it('a piped chat ends on a signal', async () => {
    const daemon = begun();
    const running = start(['chat', 'c'], { daemon, stdin: 'x\ny\n' });
    await expect.poll(running.output).toContain('Manager: Hel');
    running.signal('SIGTERM');
    await running.done;
    expect([running.listeners(), daemon.closed, daemon.posts.length]).toEqual([0, 1, 1]);
  });
});

const pendingCall = (approvalId: string) => ({
  ...{ approvalId, conversation: 'c', agent: 'pm', tool: 'write', arguments: '{"path":"a.txt"}' },
  ...{ risk: 'risky', mayHaveRun: false },
});
const CALL = { id: 'x', type: 'function' as const, function: { name: 'write', arguments: '{}' } };

/** A daemon in whose conversation these approvals are open, the first of which is in its log. */
function waiting(...ids: readonly string[]) {
  return waitingFor(ids.map(pendingCall));
}

function waitingFor(approvals: readonly ReturnType<typeof pendingCall>[]) {
  const [first] = approvals;
  const daemon = fakeDaemon({ approvals: { approvals, more: 0 }, answer: { accepted: true } });
  daemon.onPost = (message) => posted(message, daemon.log.length, []);
  daemon.say(person(0, 'go'), started(1, 'pm', [0]), agent(2, 'pm', 'I write.', { tool_calls: [CALL] }));
  const call = { index: 2, position: 0 };
  if (first) daemon.say(entryOf('approval-requested', 3, { ...first, risk: 'risky', call }));
  daemon.say(ended(4, 'pm', 'waiting'));
  return daemon;
}
const answersOf = (daemon: ReturnType<typeof waiting>) =>
  daemon.requests.filter(({ endpoint }) => endpoint === 'answer').map(({ body }) => body);

describe('the commands of a chat', () => {
  it('a text that looks like an answer to an approval is recognized, a sentence is not', () => {
    for (const text of ['yes', 'OK!', 'approve', ' go ahead ', 'No.', "don't"])
      expect([text, looksLikeAnAnswer(text)]).toEqual([text, true]);
    for (const text of ['yes, and add a test', 'ok then tell me why', 'note', ''])
      expect([text, looksLikeAnAnswer(text)]).toEqual([text, false]);
  });

  it('/run posts the input with the workflow', async () => {
    const daemon = waiting();
    await parley(['chat', 'c'], { daemon, stdin: '/run ship a clock\n' });
    expect(daemon.posts).toMatchObject([{ workflow: 'ship', content: 'a clock', conversation: 'c' }]);
  });

  it('/approve with an id approves that call, and /deny gives the reason', async () => {
    const daemon = waiting('ap1', 'ap2');
    const ran = await parley(['chat', 'c'], { daemon, stdin: '/approve ap2\n/deny ap1 not there\n' });
    expect(ran.code).toBe(0);
    expect(answersOf(daemon)).toEqual([
      { approvalId: 'ap2', answer: 'approve', publisher: 'alice' },
      { approvalId: 'ap1', answer: 'deny', reason: 'not there', publisher: 'alice' },
    ]);
  });

  it.each([
    ['/approve', ['ap1', 'ap2'], 'name one: ap1, ap2'],
    ['/approve', [], 'no call waits for approval here'],
    ['/approve ap9', ['ap1'], 'no call with the approval id ap9 waits here'],
    ['/approve', ['ap1'], 'this call was not shown before: type /approve again'],
    ['/answer red', [], 'no agent waits for an answer'],
  ])('%s with the open approvals %j decides nothing and says why', async (line, ids, why) => {
    const daemon = waiting(...ids);
    const ran = await parley(['chat', 'c'], { daemon, stdin: `${line}\n` });
    expect([ran.code, answersOf(daemon), daemon.posts]).toEqual([1, [], []]);
    expect(ran.err).toContain(why);
  });

  it.each([
    ['is over', false],
    ['waits', true],
  ])('/answer to a question that %s when it arrives says so only if it is late', async (_, isInTime) => {
    const asked = toolCall('ask', '{"question":"?"}', 'call_0');
    const asks = agent(2, 'pm', null, { tool_calls: [asked] });
    const before = [person(0, 'go'), started(1, 'pm', [0]), asks, ended(3, 'pm', 'waiting')];
    const call = { index: 2, position: 0 };
    const daemon = replying(
      (at) => [
        agent(at + 1, 'pm', 'red', { role: 'tool', call, answers: [isInTime ? at : at - 1] }),
        ...[started(at + 2, 'pm', [at]), ended(at + 3, 'pm')],
      ],
      { before },
    );
    const ran = await parley(['chat', 'c'], { daemon, stdin: '/answer red\n' });
    expect(daemon.posts).toMatchObject([{ content: 'red', to: ['pm'] }]);
    const late = 'pm did not wait for an answer any more: your answer is a message to it';
    expect(ran.err.includes(late)).toBe(!isInTime);
  });

  it('/approve without an id approves the only call after it was shown', async () => {
    const daemon = waiting('ap1');
    const ran = await parley(['chat', 'c'], { daemon, stdin: '/approve\n/approve\n' });
    expect(ran.err).toContain('parley approve ap1');
    expect(answersOf(daemon)).toEqual([{ approvalId: 'ap1', answer: 'approve', publisher: 'alice' }]);
  });

  it('a piped yes is a message and approves nothing', async () => {
    const daemon = waiting('ap1');
    await parley(['chat', 'c'], { daemon, stdin: 'yes\n' });
    expect([daemon.posts.length, answersOf(daemon)]).toEqual([1, []]);
  });

  it('a typed yes while a call waits is asked about, and sent as a message when it is typed again', async () => {
    const daemon = waiting('ap1');
    const { io, type, screen } = terminal();
    const running = start(['chat', 'c'], { daemon, io });
    await expect.poll(screen).toContain('/approve ap1');
    type('yes\r');
    await expect.poll(screen).toContain('/approve or /deny decides');
    expect(daemon.posts).toEqual([]);
    type('yes\r');
    await expect.poll(() => daemon.posts.length).toBe(1);
    type('/approve\r');
    await expect.poll(() => answersOf(daemon).length).toBe(1);
    type('\u0004');
    await running.done;
  });

  it('a question of a server is answered by the command that takes its fields, which no line of a chat does', async () => {
    const asks = {
      server: 'air',
      message: 'Which day?',
      schema: { properties: { day: { type: 'string' } } },
    };
    const daemon = waitingFor([{ ...pendingCall('ap1'), arguments: '{"day":""}', ...{ asks } }]);
    const { io, type, screen } = terminal();
    const running = start(['chat', 'c'], { daemon, io });
    await expect.poll(screen).toContain(`parley approve ap1 --arguments '{"day":""}'   or   /deny ap1`);
    type('\u0004');
    await running.done;
  });
});

const WRITE = toolCall('write', '{"path":"a.txt"}', 'call_0');

describe('chat with piped input, while a call waits for approval', () => {
  const answers = { approvals: { approvals: [pendingCall('ap1')], more: 0 } };
  const asked = {
    approvalId: 'ap1',
    risk: 'risky',
    agent: 'pm',
    tool: 'write',
    arguments: '{"path":"a.txt"}',
  };
  const asks = [
    ...[started(1, 'pm', [0]), agent(2, 'pm', 'I write.', { tool_calls: [WRITE] })],
    entryOf('approval-requested', 3, { ...asked, call: { index: 2, position: 0 } } as object),
    ended(4, 'pm', 'waiting'),
  ];

  it('a piped chat prints the waiting call before its first message, and the command that answers it', async () => {
    const daemon = replying(() => [], { answers, before: [person(0, 'go'), ...asks] });
    const ran = await parley(['chat', 'c'], { daemon, stdin: 'hello?\nanyone?\n' });
    const listed = await parley(['approvals', 'c'], { daemon });
    expect(listed.out).toContain('parley approve ap1');
    expect(ran).toMatchObject({ code: 0, out: '', err: `waiting for a person:\n${listed.out}` });
  });

  it('a piped chat prints once the command for a call that starts to wait', async () => {
    const daemon = replying((index) => (index === 0 ? asks : []), { answers });
    const ran = await parley(['chat', 'c'], { daemon, stdin: 'go\nhello?\n' });
    const listed = await parley(['approvals', 'c'], { daemon });
    expect(ran).toMatchObject({ code: 0, err: `waiting for a person:\n${listed.out}` });
    expect(ran.out).toContain('· approval ap1 is needed (risky): pm wants to call write {"path":"a.txt"}');
  });
});
