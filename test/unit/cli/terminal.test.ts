import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Entry, ParleyError } from '../../../src/client/index.ts';
import {
  agent,
  chunk,
  ended,
  entryOf,
  type FakeDaemon,
  fakeDaemon,
  person,
  posted,
  start,
  started,
  terminal,
} from './support.ts';

/** Copies to the clipboard, clears the screen, and reverses what follows. */
const HOSTILE = 'x\u001b]52;c;QUJD\u0007\u009b2J\u202e';

/** A chat at a terminal. */
function chatAt(log: readonly Entry[] = [], ...args: string[]) {
  const { io, stdin, type, screen } = terminal();
  const detail = { id: 'c', length: 0, phase: 'chat', mode: 'agent', activeAgent: null, agents: {} };
  const stop = (body: object) => {
    daemon.say(entryOf('agent-stopped', daemon.log.length, { agent: null, by: 'alice', ...body }));
    return detail;
  };
  const daemon = fakeDaemon({ stop, resume: detail, phase: { ...detail, phase: HOSTILE } });
  daemon.onPost = (message) => {
    const at = daemon.log.length;
    const turn = `t${at}`;
    daemon.say({ ...person(at, message.content), id: message.id ?? '' }, started(at + 1, 'pm', [at], turn));
    daemon.say(agent(at + 2, 'pm', 'Hello', { turnId: turn }), ended(at + 3, 'pm', 'completed', turn));
    return posted(message, at, ['pm']);
  };
  daemon.say(...log);
  const running = start(['chat', 'c', ...args], { daemon, io });
  return {
    daemon,
    stdin,
    running,
    type,
    screen,
    /** Without colours and cursor movements. */
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is taken out
    text: () => screen().replaceAll(/\u001b\[[0-9;?]*[A-Za-z]/g, ''),
    reading: () => !stdin.isPaused(),
    /** What the command ended with, after these keys. */
    leave(keys = '/quit\r') {
      stdin.write(keys);
      return running.done;
    },
  };
}

/** Once it shows its prompt. */
async function atTerminal(...given: Parameters<typeof chatAt>) {
  const chat = chatAt(...given);
  await expect.poll(chat.text).toContain('> ');
  return chat;
}

const stopsAndResumes = ({ requests }: FakeDaemon) =>
  requests.flatMap(({ endpoint, body }) =>
    endpoint === 'stop' || endpoint === 'resume' ? [[endpoint, body]] : [],
  );

describe('chat on a terminal', () => {
  it('a chat on a terminal prints the answer, shows the prompt again, and ends on Ctrl-D', async () => {
    const { daemon, running, type, text, leave } = await atTerminal();
    await expect.poll(text).toMatch(/\/help.*\n> $/);
    type('hi\r');
    await expect.poll(text).toMatch(/pm: Hello\n.*> $/s);
    expect((await leave('\u0004')).code).toBe(0);
    expect(daemon.posts).toMatchObject([{ content: 'hi' }]);
    expect([daemon.closed, running.listeners()]).toEqual([1, 0]);
  });

  it('a chat on a terminal lets no control character of another author or of the daemon act on it', async () => {
    const { daemon, type, screen, text, leave } = await atTerminal();
    daemon.say(
      person(0, HOSTILE),
      started(1, 'pm', [0]),
      agent(2, 'pm', HOSTILE),
      ended(3, 'pm', 'completed'),
    );
    await expect.poll(text).toContain('pm: x]52;c;QUJD2J');
    type('/phase plan\r');
    await expect.poll(screen).toContain('c: phase x');
    await leave('\u0004');
    const unsafe = ['\u001b]', '\u0007', '\u009b', '\u202e'];
    expect(unsafe.filter((one) => screen().includes(one))).toEqual([]);
  });

  it('a chat on a terminal does not repeat what the person typed', async () => {
    const { type, text, leave } = await atTerminal();
    type('a word\r');
    await expect.poll(text).toContain('Hello');
    await leave();
    expect(text().match(/a word/g)).toHaveLength(1); // its echo
  });

  it('a chat on a terminal shows no prompt in the middle of an answer', async () => {
    const { daemon, text, leave } = await atTerminal();
    daemon.say(started(0, 'pm', []), chunk('pm', 0, 'One\n'), chunk('pm', 1, 'two'));
    await expect.poll(text).toMatch(/pm: One\n {2}two$/);
    daemon.say(agent(1, 'pm', 'One\ntwo'), ended(2, 'pm'));
    await expect.poll(text).toMatch(/two\n.*> $/s);
    await leave();
  });

  it('a chat on a terminal keeps the typed line while others post', async () => {
    const { daemon, type, text, leave } = await atTerminal();
    type('half a');
    await expect.poll(text).toContain('half a');
    daemon.say(person(0, 'me too'));
    await expect.poll(text).toMatch(/Alice: me too\n> half a$/);
    type(' line\r');
    await expect.poll(() => daemon.posts.length).toBe(1);
    expect(daemon.posts).toMatchObject([{ content: 'half a line' }]);
    await leave();
  });

  it('a chat on a terminal aborts the turn on the first Ctrl-C, and ends on the second', async () => {
    const { daemon, type, text, reading, leave } = await atTerminal();
    daemon.say(started(0, 'pm', []), chunk('pm', 0, 'On and on'));
    await expect.poll(text).toContain('On and on');
    type('\u0003');
    await expect.poll(text).toContain('Ctrl-C again leaves');
    expect(stopsAndResumes(daemon)).toEqual([
      ['stop', { conversation: 'c', agent: 'pm', publisher: 'alice' }],
      ['resume', { conversation: 'c', agent: 'pm', publisher: 'alice', stop: 1 }],
    ]);
    daemon.say(ended(2, 'pm', 'aborted'));
    await expect.poll(text).toContain('aborted');
    expect((await leave('\u0003')).code).toBe(0);
    expect(reading()).toBe(false); // An input that is read keeps the process alive.
  });

  it('Ctrl-C in a chat stops the agents whose turns are open, and resumes none that another person stopped', async () => {
    const stopped = (index: number, agent: string) =>
      entryOf('agent-stopped', index, {
        agent,
        by: 'boss',
        author: { kind: 'person', id: 'boss', name: 'Boss' },
      });
    const { daemon, type, text, leave } = await atTerminal();
    daemon.say(
      stopped(0, 'ops'),
      stopped(1, 'dev'),
      entryOf('agent-resumed', 2, { agent: 'dev', by: 'boss' }),
    );
    daemon.say(started(3, 'pm', []), started(4, 'dev', []), started(5, 'qa', []), ended(6, 'qa'));
    daemon.say(stopped(7, 'pm'), chunk('dev', 0, 'On and on'));
    await expect.poll(text).toContain('On and on');
    type('\u0003');
    await expect.poll(text).toContain('Ctrl-C again leaves');
    expect(stopsAndResumes(daemon)).toMatchObject([
      ['stop', { agent: 'pm' }],
      ['stop', { agent: 'dev' }],
      ['resume', { agent: 'dev', stop: 9 }],
    ]);
    expect((await leave('\u0003')).code).toBe(0);
  });

  it('a chat on a terminal posts pasted lines as one message once Enter is pressed', async () => {
    const { daemon, running, type, text, screen } = await atTerminal();
    expect(screen()).toContain('\u001b[?2004h');
    type('\u001b[200~/one\rtwo\r\rthree\u001b[201~');
    await expect.poll(text).toContain('4 lines pasted');
    // The first paste, too: the line is cleared before the note.
    expect(screen().split('4 lines pasted')[0]).toMatch(/\[0J(.\[2m)?$/);
    expect(daemon.posts).toEqual([]);
    type(' and a half\r');
    await expect.poll(() => daemon.posts.length).toBe(1);
    expect(daemon.posts).toMatchObject([{ content: '/one\ntwo\n\nthree and a half' }]);
    type('\u001b[200~/quit\r\u001b[201~\r'); // A single pasted line is treated like a typed one.
    expect((await running.done).code).toBe(0);
    expect(screen().lastIndexOf('\u001b[?2004l')).toBeGreaterThan(screen().lastIndexOf('\u001b[?2004h'));
  });

  it('a chat ends without an error when its terminal closes and can no longer be reset', async () => {
    const { stdin, running } = await atTerminal();
    const gone = Object.assign(new Error('setRawMode EIO'), { code: 'EIO' });
    Object.assign(stdin, { setRawMode: () => stdin.emit('error', gone) });
    running.signal('SIGHUP');
    expect(await running.done).toMatchObject({ code: 0, err: '' });
  });

  it('a chat on a terminal discards pasted lines on Ctrl-C without aborting a turn', async () => {
    const { daemon, type, text, leave } = await atTerminal();
    type('\u001b[200~one\rtwo\u001b[201~');
    await expect.poll(text).toContain('2 lines pasted');
    type('\u0003');
    await expect.poll(text).toContain('discarded');
    type('three\r');
    await expect.poll(() => daemon.posts.length).toBe(1);
    expect(daemon.posts).toMatchObject([{ content: 'three' }]);
    expect(daemon.requests.map(({ endpoint }) => endpoint)).not.toContain('stop');
    await leave();
  });
});

describe('a text on a terminal that may be the answer to a call', () => {
  const callOf = (approvalId: string) => ({
    ...{ approvalId, conversation: 'c', agent: 'pm', tool: 'write', arguments: '{}' },
    ...{ risk: 'risky', mayHaveRun: false },
  });
  /** With calls that wait, as `waiting` says then. */
  async function withCalls(waiting: () => readonly string[]) {
    const terminal = chatAt();
    const { client } = terminal.daemon;
    const { request } = client;
    client.request = async (endpoint, body, options) =>
      endpoint === 'approvals'
        ? ({ approvals: waiting().map(callOf), more: 0 } as never)
        : request(endpoint, body, options);
    await expect.poll(terminal.text).toContain('> ');
    return terminal;
  }

  it('is sent when it is typed again, and asked about each time, also after it was sent before', async () => {
    const waiting: string[] = [];
    const { daemon, type, text, leave } = await withCalls(() => waiting);
    type('yes\r');
    await expect.poll(() => daemon.posts.length).toBe(1);
    await expect.poll(text).toMatch(/pm: Hello\n.*> $/s);
    waiting.push('ap1');
    type('yes\r');
    await expect.poll(text).toContain('/approve or /deny decides');
    expect(daemon.posts.length).toBe(1);
    type('yes\r');
    await expect.poll(() => daemon.posts.length).toBe(2);
    await leave('\u0004');
  });

  it('is kept like any other while the daemon does not answer, in the order in which it was typed', async () => {
    let isAway = true;
    const { daemon, type, text, leave } = await withCalls(() => {
      if (isAway) throw AWAY;
      return [];
    });
    daemon.onPost = ((answers) => (message) => {
      if (isAway) throw AWAY;
      return answers(message);
    })(daemon.onPost);
    type('ok\rtell me more\r');
    await expect.poll(text).toContain('the daemon does not answer: messages are kept');
    isAway = false;
    daemon.reach(true);
    await expect
      .poll(() => daemon.log.flatMap((one) => ('role' in one && one.role === 'user' ? one.content : [])))
      .toEqual(['ok', 'tell me more']);
    expect(text()).not.toContain('no daemon answers');
    await leave('\u0004');
  });

  it('is sent also if the person leaves at once', async () => {
    const { daemon, leave } = await withCalls(() => []);
    expect(await leave('ok\r\u0004')).toMatchObject({ code: 0, err: '' });
    expect(daemon.posts).toMatchObject([{ content: 'ok' }]);
  });
});

it('a message that is typed while a file is uploaded has that file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-chat-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'plan.txt'), 'a plan');
  const { daemon, type, text, leave } = await atTerminal();
  const { upload } = daemon.client;
  daemon.client.upload = async (...given) => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    return upload(...given);
  };
  type(`/file ${join(folder, 'plan.txt')}\rlook\rand another\r`);
  await expect.poll(() => daemon.posts.length).toBe(2);
  expect(daemon.posts).toMatchObject([
    { content: 'look', parts: [{ name: 'plan.txt' }] },
    { content: 'and another' },
  ]);
  expect(daemon.posts[1]?.parts).toBeUndefined();
  expect(text()).toContain('with your message: [file plan.txt');
  await leave('\u0004');
});

const AWAY = new ParleyError('DAEMON_NOT_RUNNING', 'no daemon answers');

describe('chat on a terminal, while the daemon does not answer', () => {
  it('messages that are typed meanwhile are kept, and sent in order, once, with their ids', async () => {
    const { daemon, type, text, leave } = await atTerminal();
    const answers = daemon.onPost;
    let isAway = true;
    const atOnce: number[] = [];
    let unanswered = 0;
    daemon.onPost = async (message) => {
      if (isAway) throw AWAY;
      atOnce.push(++unanswered);
      await new Promise((resolve) => setTimeout(resolve, 5));
      unanswered--;
      return answers(message);
    };
    type('one\r');
    await expect.poll(text).toContain('the daemon does not answer: messages are kept, and sent when it does');
    type('two\rthree\r');
    await expect.poll(() => text().match(/· kept/g)).toHaveLength(2);
    expect(daemon.posts).toMatchObject([{ content: 'one' }]);
    isAway = false;
    daemon.reach(true);
    await expect.poll(() => daemon.posts.length).toBe(4);
    expect(daemon.posts.map(({ content }) => content)).toEqual(['one', 'one', 'two', 'three']);
    expect(atOnce).toEqual([1, 1, 1]);
    expect(new Set(daemon.posts.map(({ id }) => id)).size).toBe(3);
    expect(daemon.posts[1]?.id).toBe(daemon.posts[0]?.id);
    await expect.poll(() => text().match(/pm: Hello/g)).toHaveLength(3);
    expect(text().match(/the daemon answers again/g)).toHaveLength(1);
    expect(text()).not.toContain('no daemon answers');
    expect(await leave('\u0004')).toMatchObject({ code: 0, err: '' });
  });

  it('the loss of the daemon is reported once, with a prompt, and an interrupted answer is printed again', async () => {
    const { daemon, text, leave } = await atTerminal();
    daemon.say(started(0, 'pm', []), chunk('pm', 0, 'One two'));
    await expect.poll(text).toContain('pm: One two');
    daemon.reach(false);
    daemon.reach(false);
    await expect.poll(text).toMatch(/pm: One two\n(> )?· the daemon does not answer: messages .*\n> $/);
    daemon.say(chunk('pm', 2, 'four'), agent(1, 'pm', 'One two three four'), ended(2, 'pm'));
    await expect.poll(text).toMatch(/\n> · the daemon answers again\n.*pm: One two three four\n.*> $/s);
    expect(text().match(/does not answer/g)).toHaveLength(1);
    await leave();
  });

  it('a person who leaves is told the commands that send what the daemon does not have', async () => {
    const { daemon, running, type, text } = await atTerminal([], '--as', 'Bob B', '--publisher', 'bob');
    daemon.reach(false);
    type("it's one\r/run fix two words\r- milk\r");
    await expect.poll(() => text().match(/· kept/g)).toHaveLength(3);
    type('\u0004');
    const { code, err } = await running.done;
    expect(code).toBe(1);
    const lines = err.trimEnd().split('\n');
    expect(lines[0]).toBe(
      'parley: the daemon did not acknowledge 3 messages. To send what it does not have:',
    );
    expect(lines[1]).toMatch(
      /^ {2}parley say c 'it'\\''s one' --id [\da-f-]{36} --publisher bob --as 'Bob B'$/,
    );
    expect(lines[2]).toMatch(/^ {2}parley run fix 'two words' --conversation c --id [\da-f-]{36} --publ/);
    expect(lines[3]).toMatch(/^ {2}parley say c --id [\da-f-]{36} --publisher bob --as 'Bob B' -- '- milk'$/);
    expect(lines).toHaveLength(4);
    expect(daemon.posts).toEqual([]);
  });

  it('the commands for messages with files name the files again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-chat-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [plan, other] = [join(folder, 'my plan.txt'), join(folder, 'other.txt')];
    for (const path of [plan, other]) writeFileSync(path, path);
    const { daemon, running, type, text } = await atTerminal();
    for (const [file, line] of [
      [plan, 'look'],
      [other, '/run fix it'],
    ]) {
      type(`/file ${file}\r`);
      await expect.poll(text).toContain(`[file ${basename(file ?? '')}`);
      daemon.reach(false);
      type(`${line}\r`);
      await expect.poll(() => text().match(/· kept/g)?.length).toBe(file === plan ? 1 : 2);
    }
    type('\u0004');
    const [, said, ran] = (await running.done).err.split('\n');
    expect(said).toMatch(
      new RegExp(`^ {2}parley say c look --file '${plan}' --id [\\da-f-]{36} --publisher alice$`),
    );
    expect(ran).toMatch(/^ {2}parley run fix it .* --publisher alice +# without its files: .*other\.txt$/);
  });

  it('a person who leaves at once waits for the acknowledgement of the last message', async () => {
    const { daemon, leave } = await atTerminal();
    const answers = daemon.onPost;
    daemon.onPost = async (message) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return answers(message);
    };
    expect(await leave('one\r\u0004')).toMatchObject({ code: 0, err: '' });
    expect(daemon.log[0]).toMatchObject({ content: 'one' });
  });

  it('a refused message is reported, and the next one is sent', async () => {
    const { daemon, type, text, leave } = await atTerminal();
    const answers = daemon.onPost;
    daemon.onPost = (message) => {
      if (message.content === 'bad') throw new ParleyError('UNKNOWN_AGENT', 'there is no agent ghost');
      return answers(message);
    };
    daemon.reach(false);
    type('bad\rgood\r');
    await expect.poll(() => text().match(/· kept/g)).toHaveLength(2);
    daemon.reach(true);
    await expect.poll(text).toContain('pm: Hello');
    expect(text()).toContain('parley: there is no agent ghost');
    expect((await leave('\u0004')).code).toBe(0);
  });
});

it.each([
  ['alice', []],
  ['alice/Al', ['--as', 'Al']],
])('the history of a chat on a terminal starts with the messages of this person: %s', async (me, args) => {
  const mine = (index: number, content: string, id = me) =>
    person(index, content, { author: { kind: 'person', id, name: 'Alice' } });
  const foreign = mine(2, 'of another person', 'bob');
  const log = [
    mine(0, 'first'),
    mine(1, '/etc is a folder'),
    foreign,
    mine(3, 'a\u001b]0;x\u0007'),
    mine(4, 'a\nb'),
    mine(5, 'under another name', 'alice/Bea'),
  ];
  const { daemon, type, leave } = await atTerminal(log, ...args);
  type('\u001b[A\r\u001b[A\u001b[A\r');
  await expect.poll(() => daemon.posts.length).toBe(2);
  expect(daemon.posts).toMatchObject([{ content: '/etc is a folder' }, { content: 'first' }]);
  await leave('\u0004');
});
