import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { looksLikeAnAnswer, parseChatLine } from '../../../src/cli/chat/commands.ts';
import { agent, ended, entryOf, fakeDaemon, parley, person, posted, start, started } from './support.ts';

const pendingCall = (approvalId: string) => ({
  ...{ approvalId, conversation: 'c', agent: 'pm', tool: 'write', arguments: '{"path":"a.txt"}' },
  ...{ risk: 'risky', mayHaveRun: false },
});
const CALL = { id: 'x', type: 'function' as const, function: { name: 'write', arguments: '{}' } };

/** A daemon in whose conversation these approvals are open, the first of which is in its log. */
function waiting(...ids: readonly string[]) {
  const approvals = ids.map(pendingCall);
  const daemon = fakeDaemon({ approvals: { approvals, more: 0 }, answer: { accepted: true } });
  daemon.onPost = (message) => posted(message, daemon.log.length, []);
  daemon.say(person(0, 'go'), started(1, 'pm', [0]), agent(2, 'pm', 'I write.', { tool_calls: [CALL] }));
  const call = { index: 2, position: 0 };
  if (ids[0]) daemon.say(entryOf('approval-requested', 3, { approvalId: ids[0], risk: 'risky', call }));
  daemon.say(ended(4, 'pm', 'waiting'));
  return daemon;
}
const answersOf = (daemon: ReturnType<typeof waiting>) =>
  daemon.requests.filter(({ endpoint }) => endpoint === 'answer').map(({ body }) => body);

describe('the commands of a chat', () => {
  it.each([
    ['/approve', { kind: 'decide', answer: 'approve', words: [] }],
    ['/approve ap1', { kind: 'decide', answer: 'approve', words: ['ap1'] }],
    ['/deny not there', { kind: 'decide', answer: 'deny', words: ['not', 'there'] }],
    ['/answer  red,  please', { kind: 'answer', text: 'red,  please' }],
    ['/answer', { kind: 'wrong', say: '/answer needs a text' }],
    ['/run ship a  clock', { kind: 'run', workflow: 'ship', text: 'a  clock' }],
    ['/run ship', { kind: 'wrong', say: '/run needs a workflow and its input' }],
  ])('the chat line %j is parsed', (line, meaning) => {
    expect(parseChatLine(line)).toEqual(meaning);
  });

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
    const daemon = fakeDaemon({});
    const asked = {
      id: 'call_0',
      type: 'function' as const,
      function: { name: 'ask', arguments: '{"question":"?"}' },
    };
    daemon.say(
      person(0, 'go'),
      started(1, 'pm', [0]),
      agent(2, 'pm', null, { tool_calls: [asked] }),
      ended(3, 'pm', 'waiting'),
    );
    daemon.onPost = (message) => {
      const at = daemon.log.length;
      const call = { index: 2, position: 0 };
      daemon.say({ ...person(at, message.content), id: message.id ?? '' });
      const result = agent(at + 1, 'pm', 'red', { role: 'tool', call, answers: [isInTime ? at : at - 1] });
      daemon.say(result, started(at + 2, 'pm', [at]), ended(at + 3, 'pm'));
      return posted(message, at, ['pm']);
    };
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
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
    const chunks: string[] = [];
    stdout.on('data', (data: Buffer) => chunks.push(data.toString()));
    const running = start(['chat', 'c'], { daemon, io: { stdin, stdout } });
    await expect.poll(() => chunks.join('')).toContain('/approve ap1');
    stdin.write('yes\r');
    await expect.poll(() => chunks.join('')).toContain('/approve or /deny decides');
    expect(daemon.posts).toEqual([]);
    stdin.write('yes\r');
    await expect.poll(() => daemon.posts.length).toBe(1);
    stdin.write('/approve\r');
    await expect.poll(() => answersOf(daemon).length).toBe(1);
    stdin.write('\u0004');
    await running.done;
  });
});
