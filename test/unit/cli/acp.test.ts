import { PassThrough, Readable, Writable } from 'node:stream';
import {
  type ContentBlock,
  client,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Entry, ParleyError } from '../../../src/client/index.ts';
import { fileLine, partsOf } from '../../../src/conversation/index.ts';
import { saidIn } from '../../support/acp-client.ts';
import { toolCall } from '../../support/log.ts';
import { sampleFile } from '../../support/sample-files.ts';
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
} from './support.ts';

/** An editor and `parley acp` in this process, with a fake daemon. `decide`: null answers no request for permission. */
async function edit(
  daemon: FakeDaemon,
  decide: ((asked: RequestPermissionRequest) => string) | null = () => 'approve',
) {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const running = start(['acp', '--publisher', 'ed'], { daemon, io: { stdin, stdout } });
  const updates: SessionUpdate[] = [];
  const asked: RequestPermissionRequest[] = [];
  let app = client({ name: 'editor' }).onNotification(
    methods.client.session.update,
    ({ params }) => void updates.push(params.update),
  );
  if (decide)
    app = app.onRequest(methods.client.session.requestPermission, ({ params }) => {
      asked.push(params);
      return { outcome: { outcome: 'selected', optionId: decide(params) } };
    });
  const input = Readable.toWeb(stdout) as ReadableStream<Uint8Array>;
  const connection = app.connect(ndJsonStream(Writable.toWeb(stdin), input));
  onTestFinished(async () => {
    stdin.end();
    await running.done;
  });
  const { agent: parley } = connection;
  const about = await parley.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION });
  const sessionId = async () =>
    (await parley.request(methods.agent.session.new, { cwd: '/shop', mcpServers: [] })).sessionId;
  return {
    ...{ parley, about, updates, asked, running, sessionId, stdin },
    async prompt(...prompt: ContentBlock[]) {
      const { stopReason } = await parley.request(methods.agent.session.prompt, {
        sessionId: await sessionId(),
        prompt,
      });
      return stopReason;
    },
  };
}

const text = (words: string): ContentBlock => ({ type: 'text', text: words });

/** A daemon that answers each post with these entries. The last one is the newest of its log. */
function answering(entries: (post: number) => readonly Entry[], answers: object = {}): FakeDaemon {
  const daemon = fakeDaemon({ workflows: { workflows: [] }, ...answers });
  daemon.onPost = (message) => {
    const index = daemon.log.length;
    const all = [person(index, message.content, { id: `${message.id}`, to: ['pm'] }), ...entries(index)];
    queueMicrotask(() => {
      for (const entry of all) daemon.say({ kind: 'entry', entry, isCurrent: entry === all.at(-1) });
    });
    return posted(message, index, ['pm']);
  };
  return daemon;
}

const requested = (index: number, mayHaveRun = false): Entry =>
  entryOf('approval-requested', index, {
    approvalId: 'c.3.aaaaaaaaaaaaaaaa',
    call: { index: 2, position: 0 },
    agent: 'pm',
    tool: 'shell',
    arguments: '{"command":"ls"}',
    risk: 'risky',
    mayHaveRun,
    turnId: 't-pm',
  });

/** A turn that waits for an approval. */
const waits = (mayHaveRun = false) => [
  started(1, 'pm', [0]),
  agent(2, 'pm', null, { tool_calls: [toolCall('shell', '{"command":"ls"}', 'k')] }),
  requested(3, mayHaveRun),
  ended(4, 'pm', 'waiting'),
];

const says = (content: string, fields: Parameters<typeof agent>[3] = {}) => [
  started(1, 'pm', [0]),
  agent(2, 'pm', content, fields),
  ended(3, 'pm'),
];

describe('an editor in front of a team', () => {
  it('acp names what it can do', async () => {
    const { about } = await edit(fakeDaemon());
    expect(about).toMatchObject({
      protocolVersion: 1,
      agentInfo: { name: 'parley' },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
      },
    });
  });

  it('a prompt of several blocks is one text: links in their place, attached texts quoted after it, and its files', async () => {
    const daemon = answering(() => says('So.'));
    const { prompt } = await edit(daemon);
    const reason = await prompt(
      text('Look at '),
      { type: 'resource_link', name: 'a.ts', uri: 'file:///shop/a.ts' },
      text(' and this:'),
      text('@pm'),
      { type: 'resource', resource: { uri: 'file:///shop/b.md', text: '```\n@dev\n```\n' } },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource', resource: { uri: 'file:///c.pdf', blob: 'AAAA', mimeType: 'application/pdf' } },
    );
    expect(reason).toBe('end_turn');
    expect(daemon.posts).toMatchObject([
      {
        publisher: 'ed',
        content: [
          'Look at [a.ts](file:///shop/a.ts) and this:\n@pm[b.md](file:///shop/b.md)',
          'file:///shop/b.md:\n````\n```\n@dev\n```\n````',
        ].join('\n\n'),
        parts: [
          { type: 'file', size: 3 },
          { type: 'file', size: 3, name: 'c.pdf' },
        ],
      },
    ]);
    expect([...daemon.files.values()]).toEqual([Buffer.alloc(3)]);
  });

  it.each<[string, ContentBlock, object]>([
    ['a picture', { type: 'image', data: 'AAAA', mimeType: 'image/png' }, { size: 3 }],
    [
      'a long attached text',
      { type: 'resource', resource: { uri: 'file:///a%20b.log', text: 'x'.repeat(100_001) } },
      { name: 'a b.log', size: 100_001 },
    ],
  ])('%s alone is a prompt with a file', async (_, block, file) => {
    const daemon = answering(() => says('So.'));
    const { prompt } = await edit(daemon);
    expect(await prompt(block)).toBe('end_turn');
    expect(daemon.posts).toMatchObject([{ content: '', parts: [{ type: 'file', ...file }] }]);
  });

  it('a file with broken base64, or that the daemon refuses, is the error of its prompt, and nothing is posted', async () => {
    const daemon = answering(() => says('So.'));
    const { prompt } = await edit(daemon);
    await expect(
      prompt(text('look'), { type: 'image', data: '%', mimeType: 'image/png' }),
    ).rejects.toMatchObject({
      ...{
        code: -32_602,
        message: 'nothing was posted: [file image/png, 0 B: not kept: its base64 is broken]',
      },
    });
    const refused = new ParleyError('BLOB_TOO_LARGE', 'a file may have 3 bytes', {
      hint: 'send a smaller one',
    });
    daemon.client.upload = () => Promise.reject(refused);
    await expect(prompt({ type: 'image', data: 'AAAA', mimeType: 'image/png' })).rejects.toMatchObject({
      ...{
        code: -32_602,
        message: 'a file may have 3 bytes; send a smaller one',
        data: { code: 'BLOB_TOO_LARGE' },
      },
    });
    expect(daemon.posts).toEqual([]);
  });

  it('a file of an answer or a result is its line, then its content; one that is too large is its line', async () => {
    const known = sampleFile('image/png', 1);
    const large = sampleFile('image/png', 2, { size: 5_000_001 });
    const call = toolCall('fs_read', '{"path":"@project/a.png"}', 'k');
    const daemon = answering(() => [
      started(1, 'pm', [0]),
      agent(2, 'pm', null, { tool_calls: [call] }),
      agent(3, 'pm', 'seen', {
        role: 'tool',
        call: { index: 2, position: 0 },
        parts: partsOf('seen', [known.part]),
      }),
      agent(4, 'pm', 'So.', { parts: partsOf('So.', [known.part, large.part]) }),
      ended(5, 'pm'),
    ]);
    for (const { part, bytes } of [known, large]) daemon.files.set(part.sha256, bytes);
    const { prompt, updates } = await edit(daemon);
    await prompt(text('hi'));
    const picture = { type: 'image', mimeType: 'image/png', data: known.bytes.toString('base64') };
    const result = updates.find(({ sessionUpdate }) => sessionUpdate === 'tool_call_update');
    expect(result).toMatchObject({
      content: [{ content: { text: `seen\n${fileLine(known.part)}` } }, { content: picture }],
    });
    const said = updates.flatMap((update) =>
      update.sessionUpdate === 'agent_message_chunk' ? [update.content] : [],
    );
    expect(said).toMatchObject([
      { text: 'So.' },
      { text: `\n\n${fileLine(known.part)}` },
      picture,
      { text: `\n\n${fileLine(large.part)}` },
    ]);
  });

  it('live text is sent as it arrives, and once', async () => {
    const daemon = answering(() => [started(1, 'pm', [0])]);
    const { prompt, updates } = await edit(daemon);
    const reason = prompt(text('hi'));
    await expect.poll(() => daemon.log.length).toBe(2);
    daemon.say(chunk('pm', 0, 'One '), chunk('pm', 1, 'two'));
    await expect.poll(() => saidIn(updates)).toBe('One two');
    daemon.say(agent(2, 'pm', 'One two three'), { kind: 'entry', entry: ended(3, 'pm'), isCurrent: true });
    expect(await reason).toBe('end_turn');
    expect(saidIn(updates)).toBe('One two three');
  });

  it.each([
    ['length', 'max_tokens', 'cut at the output limit'],
    ['content_filter', 'end_turn', 'cut by the content filter'],
    ['stop', 'end_turn', ''],
  ])('an answer that ended by %s ends the prompt with %s', async (finishReason, reason, words) => {
    const { prompt, updates } = await edit(answering(() => says('So', { finishReason })));
    expect(await prompt(text('hi'))).toBe(reason);
    expect(saidIn(updates)).toMatch(words === '' ? /^So$/ : new RegExp(`^So\n\n\\(the answer was ${words}`));
  });

  it('a limit ends the prompt with max_turn_requests, and is named', async () => {
    const limit = { limit: 'modelCallsPerTurn', agent: 'pm', content: 'too many calls', turnId: 't-pm' };
    const entries = [started(1, 'pm', [0]), entryOf('limit-reached', 2, limit), ended(3, 'pm', 'limited')];
    const { prompt, updates } = await edit(answering(() => entries));
    expect(await prompt(text('hi'))).toBe('max_turn_requests');
    expect(saidIn(updates)).toBe('(too many calls)');
  });

  it.each(['BAD_REQUEST', 'NOT_FOUND'])(
    'a failure of a model is no fault of the prompt or the session: %s',
    async (code) => {
      const content = `LLM_ERROR ${JSON.stringify({ code, message: 'no such model' })}`;
      const failed = agent(2, 'pm', content, { partType: 'error', turnId: 't-pm' });
      const { prompt } = await edit(
        answering(() => [started(1, 'pm', [0]), failed, ended(3, 'pm', 'failed')]),
      );
      const error = { code: -32_603, message: 'no such model', data: { code } };
      await expect(prompt(text('hi'))).rejects.toMatchObject(error);
    },
  );

  it('a message to a stopped agent is an error with the command that resumes it', async () => {
    const conversation = { length: 1, agents: { pm: { status: 'stopped' } }, mode: 'agent' };
    const { prompt } = await edit(answering(() => [], { conversation }));
    await expect(prompt(text('hi'))).rejects.toMatchObject({
      message: expect.stringMatching(/^pm is stopped: it answers after `parley resume \w+/),
      data: { code: 'AGENT_STOPPED' },
    });
  });

  it('mentions of no agent, and a message that nobody answers, are named', async () => {
    const daemon = fakeDaemon({ workflows: { workflows: [] } });
    daemon.onPost = (message) => {
      queueMicrotask(() => daemon.say({ kind: 'entry', entry: person(0, 'hi'), isCurrent: true }));
      return { ...posted(message, 0, []), unknownMentions: ['dve'] };
    };
    const { prompt, updates } = await edit(daemon);
    expect(await prompt(text('@dve hi'))).toBe('end_turn');
    expect(saidIn(updates)).toBe('(there is no agent @dve)\n\n(no agent answers this message)');
  });

  it('reported calls of an agent in another process are calls that are over', async () => {
    const reported = [
      { title: 'Edit a.ts', kind: 'edit', status: 'completed', arguments: '{"a":1}', result: '+x' },
      { title: 'Dance', kind: 'dance', status: 'failed' },
    ];
    const { prompt, updates } = await edit(answering(() => says('Done.', { reported })));
    await prompt(text('hi'));
    expect(updates.slice(1)).toMatchObject([
      {
        sessionUpdate: 'tool_call',
        title: 'Edit a.ts',
        kind: 'edit',
        status: 'completed',
        rawInput: { a: 1 },
      },
      { sessionUpdate: 'tool_call', title: 'Dance', kind: 'other', status: 'failed' },
    ]);
  });

  it('a call that may have run is resolved: run it again, or it did not run', async () => {
    const daemon = answering(() => waits(true), {
      answer: () => {
        const answered = { approvalId: 'c.3.aaaaaaaaaaaaaaaa', call: { index: 2, position: 0 } };
        const again = [
          entryOf('approval-answered', 5, { ...answered, answer: 'rerun' }),
          started(6, 'pm', []),
          agent(7, 'pm', 'Again.'),
          ended(8, 'pm'),
        ];
        for (const entry of again) daemon.say({ kind: 'entry', entry, isCurrent: entry === again.at(-1) });
        return { accepted: true };
      },
    });
    const { prompt, updates, asked } = await edit(daemon, ({ options }) => `${options[0]?.optionId}`);
    expect(await prompt(text('hi'))).toBe('end_turn');
    expect(asked[0]?.options.map(({ optionId, kind }) => [optionId, kind])).toEqual([
      ['rerun', 'allow_once'],
      ['failed', 'reject_once'],
    ]);
    expect(daemon.requests).toContainEqual({
      endpoint: 'answer',
      body: { approvalId: 'c.3.aaaaaaaaaaaaaaaa', answer: 'rerun', publisher: 'ed' },
    });
    expect(saidIn(updates)).toBe('Again.');
  });

  it.each<[string, ((asked: RequestPermissionRequest) => string) | null, RegExp]>([
    [
      'of a person without the right',
      () => 'approve',
      /FORBIDDEN: ed may not; ask an operator; pm wants to call shell/,
    ],
    ['by an editor that cannot ask', null, /Method not found.*pm wants to call shell/],
    ['by an editor that chooses no option', () => 'perhaps', /^\(pm wants to call shell/],
  ])('an approval %s stays pending, is named, and ends the prompt', async (_, decide, words) => {
    const answer = new ParleyError('FORBIDDEN', 'ed may not', { hint: 'ask an operator' });
    const { prompt, updates } = await edit(
      answering(() => waits(), { answer }),
      decide,
    );
    expect(await prompt(text('hi'))).toBe('end_turn');
    expect(saidIn(updates)).toMatch(words);
    expect(saidIn(updates)).toContain(
      '`parley approve c.3.aaaaaaaaaaaaaaaa` or `parley deny c.3.aaaaaaaaaaaaaaaa`',
    );
  });

  it('a conversation that is deleted ends the prompt with an error', async () => {
    const daemon = answering(() => [started(1, 'pm', [0])]);
    const gone = new ParleyError('CONVERSATION_DELETED', 'this conversation was deleted', {
      hint: 'begin another',
    });
    const follow = daemon.client.follow;
    daemon.client.follow = async function* (...given) {
      for await (const event of follow(...given)) {
        if (event.kind === 'entry' && event.entry.index > 0) throw gone;
        yield event;
      }
    };
    const { prompt } = await edit(daemon);
    await expect(prompt(text('hi'))).rejects.toThrow('this conversation was deleted; begin another');
  });

  it('a session that is closed is unknown', async () => {
    const { parley, sessionId } = await edit(fakeDaemon({ workflows: { workflows: [] } }));
    const id = await sessionId();
    await parley.request(methods.agent.session.close, { sessionId: id });
    const again = parley.request(methods.agent.session.prompt, { sessionId: id, prompt: [text('hi')] });
    await expect(again).rejects.toThrow(`there is no session "${id}" here`);
  });

  it('the end of the input ends the command, and closes its connection', async () => {
    const daemon = answering(() => [started(1, 'pm', [0])]);
    const { prompt, running, stdin } = await edit(daemon);
    prompt(text('hi')).catch(() => {});
    await expect.poll(() => daemon.log.length).toBe(2);
    stdin.end();
    expect(await running.done).toMatchObject({ code: 0, err: '' });
    expect(daemon.closed).toBe(1);
    expect(daemon.requests.map(({ endpoint }) => endpoint)).not.toContain('stop');
  });
});
