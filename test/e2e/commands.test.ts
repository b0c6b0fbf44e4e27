import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import type { FakeHandler } from '../support/fake-provider.ts';
import { ask, entriesOf, followUntil, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { sharedProject } from '../support/project.ts';

/** The commands on a running daemon; some of them in a process of their own, all of them in long tests. */
describe('the command line', () => {
  let handler: FakeHandler = () => ({ text: 'fine' });
  const project = sharedProject({
    model: (request, count) => handler(request, count),
  });
  const { client, provider } = project;

  const post = (conversation: string, content: string) =>
    client.post({ conversation, publisher: 'alice', content });

  it('stop keeps the text so far, starts nothing until resume, and then all waiting messages get one answer', async () => {
    handler = () => ({ text: 'partial words', hang: 'after-text' });
    const before = provider.requests.length;
    const streamed = followLive('halted', 'partial words');
    await post('halted', 'begin');
    await provider.waitForRequests(before + 1);
    await streamed;
    expect((await project.parley('stop', 'halted')).code).toBe(0);
    const stopped = await followUntil(client, 'halted', turnsEnded(1));
    expect(stopped.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'aborted' });
    expect(stopped.at(-2)).toMatchObject({ type: 'message', role: 'assistant', content: 'partial words' });
    expect(stopped.at(-2)).not.toHaveProperty('partType', 'error');
    await provider.waitForIdle();

    handler = () => ({ text: 'on again' });
    const waited = await project.parley('say', 'halted', 'first wish', '--wait');
    expect(waited.code).toBe(0);
    expect(waited.stderr).toContain('pm is stopped');
    await post('halted', 'second wish');
    expect(provider.requests.length).toBe(before + 1);
    expect((await project.parley('resume', 'halted')).code).toBe(0);
    const resumed = await followUntil(client, 'halted', turnsEnded(2));
    expect(resumed.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
    expect(provider.requests.length).toBe(before + 2);
    const sent = provider.requests
      .at(-1)
      ?.json.messages?.slice(-2)
      .map(({ content }) => content);
    expect(sent).toEqual([expect.stringMatching(/first wish$/), expect.stringMatching(/second wish$/)]);
  });

  /** Until the live text of a call is this. Begin it before the post: it does not get what was streamed before. */
  async function followLive(conversation: string, words: string): Promise<void> {
    let said = '';
    for await (const event of client.follow(conversation, { from: 0 })) {
      if (event.kind === 'live') said += event.chunk.delta;
      if (said === words) return;
    }
  }

  it('ls lists, show prints from an index, and rm deletes and can be repeated', async () => {
    handler = () => ({ text: 'fine' });
    await ask(client, 'doomed', 'words to be forgotten');
    const listed = await project.parley('ls', '--json');
    expect(listed.json()).toContainEqual(
      expect.objectContaining({
        id: 'doomed',
        title: 'words to be forgotten',
        phase: 'chat',
        mode: 'agent',
        length: 5,
      }),
    );
    const shown = await project.parley('show', 'doomed', '--from', '2', '--json');
    expect(shown.json().map(({ index }) => index)).toEqual([2, 3, 4]);

    const removed = await project.parley('rm', 'doomed', '--json');
    expect([removed.code, removed.json()]).toMatchObject([0, [{ deleted: true, existed: true }]]);
    const again = await project.parley('rm', 'doomed');
    expect([again.code, again.stdout]).toEqual([0, 'no conversation "doomed"\n']);
    await expect(access(join(project.data, 'conversations', 'doomed'))).rejects.toThrow('ENOENT');
    const gone = await runCli(['show', 'doomed', '--json', '--data', project.data]);
    expect(gone.code).toBe(1);
    expect(gone.json()).toEqual([{ error: expect.objectContaining({ code: 'NOT_FOUND' }) }]);

    const entries = await ask(client, 'doomed', 'a new life');
    expect(entries[0]).toMatchObject({ index: 0, content: 'a new life' });
  });

  it('rm during a call ends it, and the conversation does not return', async () => {
    handler = () => ({ text: 'never to be kept', hang: 'after-text' });
    const before = provider.requests.length;
    await post('cut', 'begin');
    await provider.waitForRequests(before + 1);
    expect(await client.request('delete', { conversation: 'cut' })).toMatchObject({
      deleted: true,
      existed: true,
    });
    await provider.waitForIdle();
    await expect(entriesOf(client, 'cut')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(access(join(project.data, 'conversations', 'cut'))).rejects.toThrow('ENOENT');
  });

  itLong('phase and mode print the new value, and refuse unknown ones', async () => {
    handler = () => ({ text: 'fine' });
    await ask(client, 'switches', 'hello');
    const phase = await project.parley('phase', 'switches', 'plan', '--json');
    expect(phase.json()).toEqual([expect.objectContaining({ id: 'switches', phase: 'plan' })]);
    const mode = await project.parley('mode', 'switches', 'agent', '--agent', 'qa', '--json');
    expect(mode.json()).toEqual([expect.objectContaining({ mode: 'agent', activeAgent: 'qa' })]);
    const said = await project.parley('say', 'switches', 'who is it now?', '--json');
    expect(said.json()).toEqual([expect.objectContaining({ agents: ['qa'] })]);
    const wrong = await project.parley('phase', 'switches', 'lunch');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('verification')]);
    const nobody = await project.parley('say', 'switches', 'x', '--to', 'nobody');
    expect([nobody.code, nobody.stderr]).toEqual([
      1,
      expect.stringMatching(/nobody.*known agents: dev, pm, qa/s),
    ]);
  });

  it('tail prints live text and entries until it is stopped', async () => {
    handler = () => ({ text: 'seen while it was said', delayMs: 5 });
    const enough = new AbortController();
    const tail = runCli(['tail', 'watched', '--data', project.data, '--json'], {
      signal: enough.signal,
      onOutput: (output) => {
        if (output.includes('"turn-ended"')) enough.abort();
      },
    });
    await post('watched', 'speak');
    const { code, json } = await tail;
    expect(code).toBe(0);
    const lines = json();
    const entries = lines.filter((line) => 'index' in line);
    expect(entries.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
  });

  it('chat works with piped input', async () => {
    handler = (request) => ({ text: `heard: ${request.json.messages?.at(-1)?.content}` });
    const { code, stdout } = await runCli(['chat', 'piped', '--data', project.data], {
      input: 'hello there\nand again\n',
    });
    expect(code).toBe(0);
    expect(stdout).toContain('heard: hello there');
    expect(stdout).toContain('heard: and again');
    const entries = await entriesOf(client, 'piped');
    expect(entries.filter(({ type }) => type === 'turn-ended').length).toBe(2);
  });

  it('agents lists the roster, and doctor finds the daemon', async () => {
    const agents = await project.parley('agents', '--json');
    expect(agents.json().map(({ slug }) => slug)).toEqual(['dev', 'pm', 'qa']);
    const doctor = await runCli(['doctor', '--config', project.config, '--data', project.data]);
    expect(doctor.stdout + doctor.stderr).toMatch(/nats-server|daemon/i);
  });

  it('delivery interrupt aborts the running turn, keeps its text, and answers the newer message', async () => {
    handler = () => ({ text: 'the long way', hang: 'after-text' });
    const before = provider.requests.length;
    const streamed = followLive('urgent', 'the long way');
    await post('urgent', 'slowly please');
    await streamed;
    handler = () => ({ text: 'the short way' });
    const said = await project.parley('say', 'urgent', 'now!', '--delivery', 'interrupt', '--wait');
    expect(said.code).toBe(0);
    expect(said.stdout).toContain('the short way');
    const words = (await entriesOf(client, 'urgent')).flatMap((entry) =>
      entry.type === 'message' && entry.role === 'assistant' ? [entry.content] : [],
    );
    expect(words).toEqual(['the long way', 'the short way']);
    expect(provider.requests.length).toBe(before + 2);
  });

  it('delivery steer shows messages that arrive during a turn together with its next call', async () => {
    handler = (_, count) => ({ text: `answer ${count}`, delayMs: 60 });
    const before = provider.requests.length;
    await post('steered', 'one');
    await provider.waitForRequests(before + 1);
    await post('steered', 'two');
    await post('steered', 'three');
    await followUntil(client, 'steered', turnsEnded(2));
    expect(provider.requests.length).toBe(before + 2);
    const sent = provider.requests
      .at(-1)
      ?.json.messages?.slice(1)
      .map(({ content }) => content);
    expect(sent).toEqual(['one', `answer ${before}`, 'two', 'three']);
  });
});
