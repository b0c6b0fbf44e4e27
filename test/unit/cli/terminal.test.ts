import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { agent, chunk, ended, fakeDaemon, person, posted, start, started } from './support.ts';

/** A chat as a person at a terminal has it. */
function atTerminal() {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  const chunks: string[] = [];
  stdout.on('data', (data: Buffer) => chunks.push(data.toString()));
  const detail = { id: 'c', length: 0, phase: 'chat', mode: 'agent', activeAgent: null, agents: {} };
  const daemon = fakeDaemon({ stop: detail, resume: detail });
  daemon.onPost = (message) => {
    const at = daemon.log.length;
    const turn = `t${at}`;
    daemon.say({ ...person(at, message.content), id: message.id ?? '' }, started(at + 1, 'pm', [at], turn));
    daemon.say(agent(at + 2, 'pm', 'Hello', { turnId: turn }), ended(at + 3, 'pm', 'completed', turn));
    return posted(message, at, ['pm']);
  };
  const running = start(['chat', 'c'], { daemon, io: { stdin, stdout } });
  return {
    daemon,
    stdin,
    running,
    type: (text: string) => stdin.write(text),
    screen: () => chunks.join(''),
    /** Without colours and movements of the cursor. */
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is taken out
    text: () => chunks.join('').replaceAll(/\u001b\[[0-9;?]*[A-Za-z]/g, ''),
    reading: () => !stdin.isPaused(),
  };
}

describe('chat on a terminal', () => {
  it('answers, offers the prompt again, and leaves on Ctrl-D', async () => {
    const { daemon, running, type, text } = atTerminal();
    await expect.poll(text).toMatch(/\/help.*\n> $/);
    type('hi\r');
    await expect.poll(text).toMatch(/pm: Hello\n.*> $/s);
    type('\u0004');
    expect((await running.done).code).toBe(0);
    expect(daemon.posts).toMatchObject([{ content: 'hi' }]);
    expect([daemon.closed, running.listeners()]).toEqual([1, 0]);
  });

  it('does not repeat what the person typed', async () => {
    const { running, type, text } = atTerminal();
    await expect.poll(text).toContain('> ');
    type('a word\r');
    await expect.poll(text).toContain('Hello');
    type('/quit\r');
    await running.done;
    expect(text().match(/a word/g)).toHaveLength(1); // its echo
  });

  it('offers no prompt in the middle of an answer', async () => {
    const { daemon, running, type, text } = atTerminal();
    await expect.poll(text).toContain('> ');
    daemon.say(started(0, 'pm', []), chunk('pm', 0, 'One\n'), chunk('pm', 1, 'two'));
    await expect.poll(text).toMatch(/pm: One\n {2}two$/);
    daemon.say(agent(1, 'pm', 'One\ntwo'), ended(2, 'pm'));
    await expect.poll(text).toMatch(/two\n.*> $/s);
    type('/quit\r');
    await running.done;
  });

  it('keeps what is being typed while others talk', async () => {
    const { daemon, running, type, text } = atTerminal();
    await expect.poll(text).toContain('> ');
    type('half a');
    await expect.poll(text).toContain('half a');
    daemon.say(person(0, 'me too'));
    await expect.poll(text).toMatch(/Alice: me too\n> half a$/);
    type(' line\r');
    await expect.poll(() => daemon.posts.length).toBe(1);
    expect(daemon.posts).toMatchObject([{ content: 'half a line' }]);
    type('/quit\r');
    await running.done;
  });

  it('aborts the turn on Ctrl-C, and leaves on the second', async () => {
    const { daemon, running, type, text, reading } = atTerminal();
    await expect.poll(text).toContain('> ');
    daemon.say(started(0, 'pm', []), chunk('pm', 0, 'On and on'));
    await expect.poll(text).toContain('On and on');
    type('\u0003');
    await expect.poll(text).toContain('Ctrl-C again leaves');
    const verbs = daemon.requests.map(({ endpoint }) => endpoint).slice(-2);
    expect(verbs).toEqual(['stop', 'resume']);
    daemon.say(ended(1, 'pm', 'aborted'));
    await expect.poll(text).toContain('aborted');
    type('\u0003');
    expect((await running.done).code).toBe(0);
    expect(reading()).toBe(false); // an input that is read keeps the process alive
  });

  it('posts lines that are pasted together as one message, once Enter is pressed', async () => {
    const { daemon, running, type, text, screen } = atTerminal();
    await expect.poll(text).toContain('> ');
    expect(screen()).toContain('\u001b[?2004h');
    type('\u001b[200~/one\rtwo\r\rthree\u001b[201~');
    await expect.poll(text).toContain('4 lines pasted');
    expect(daemon.posts).toEqual([]);
    type(' and a half\r');
    await expect.poll(() => daemon.posts.length).toBe(1);
    expect(daemon.posts).toMatchObject([{ content: '/one\ntwo\n\nthree and a half' }]);
    type('\u001b[200~/quit\r\u001b[201~\r'); // one line is what it would be typed
    expect((await running.done).code).toBe(0);
    expect(screen().lastIndexOf('\u001b[?2004l')).toBeGreaterThan(screen().lastIndexOf('\u001b[?2004h'));
  });

  it('ends without an error when the terminal is closed, which can no longer be switched back', async () => {
    const { stdin, running, text } = atTerminal();
    await expect.poll(text).toContain('> ');
    const gone = Object.assign(new Error('setRawMode EIO'), { code: 'EIO' });
    Object.assign(stdin, { setRawMode: () => stdin.emit('error', gone) });
    running.signal('SIGHUP');
    expect(await running.done).toMatchObject({ code: 0, err: '' });
  });

  it('discards pasted lines on Ctrl-C, and aborts nothing by it', async () => {
    const { daemon, running, type, text } = atTerminal();
    await expect.poll(text).toContain('> ');
    type('\u001b[200~one\rtwo\u001b[201~');
    await expect.poll(text).toContain('2 lines pasted');
    type('\u0003');
    await expect.poll(text).toContain('discarded');
    type('three\r');
    await expect.poll(() => daemon.posts.length).toBe(1);
    expect(daemon.posts).toMatchObject([{ content: 'three' }]);
    expect(daemon.requests.map(({ endpoint }) => endpoint)).not.toContain('stop');
    type('/quit\r');
    await running.done;
  });
});
