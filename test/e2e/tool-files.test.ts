import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { checkLaws, type FilePart, filesOf, partsOf } from '../../src/conversation/index.ts';
import type { FakeHandler } from '../support/fake-provider.ts';
import { shared, sharedFolder, untilTestEnds } from '../support/lifetime.ts';
import { callsOf, checkLog, finished, followUntil, ofType } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import {
  modelAt,
  openProject,
  type Project,
  type ProjectOptions,
  sharedProject,
  startProject,
} from '../support/project.ts';
import { filesIn } from '../support/sample-files.ts';
import { pngOf } from '../support/uploaded-files.ts';

/** Files of tools' results and of agents' answers, in a daemon. */

const PROGRAM = fileURLToPath(new URL('../support/mcp-program.mjs', import.meta.url));
const [LOCAL, REMOTE] = [pngOf(4, 3), pngOf(5, 2)];
const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const call = (name: string, given: object = {}) => ({ name, arguments: JSON.stringify(given) });

const REPLIES: Readonly<Record<string, readonly ReturnType<typeof call>[]>> = {
  'local shot': [call('mcp__local__shot')],
  'remote shot': [call('mcp__remote__shot')],
  'read it': [call('fs_read', { path: '@project/plan.png' })],
  'attach it': [call('attach', { path: '@project/plan.png' })],
  'attach a secret': [call('attach', { path: '@project/id_rsa' })],
};
/** Calls what the newest message of a person says, and ends after the result. */
const model: FakeHandler = ({ json }) => {
  const messages = json.messages ?? [];
  const said = messages.findLastIndex(({ content }) => typeof content === 'string' && content in REPLIES);
  const isDone = messages.slice(said + 1).some(({ role }) => role === 'tool');
  return isDone || said === -1
    ? { text: 'Noted.' }
    : { toolCalls: REPLIES[String(messages[said]?.content)] ?? [] };
};

const AGENT =
  '---\nname: Pam\nphases: [chat]\ntools: [fs_read, attach, mcp__local__shot, mcp__remote__shot]\n---\nPERSONA';

const web = shared(() => startMcpHttpServer({ picture: REMOTE }));
const marks = join(sharedFolder(), 'marks');

const optionsWith = (blobs: object = {}): ProjectOptions => ({
  nats: {},
  http: true,
  model,
  settings: (url) => {
    const args = [PROGRAM, LOCAL.toString('base64')];
    const local = { command: process.execPath, args, env: { MARKS: marks }, trustReadOnlyHint: true };
    const mcpServers = { local, remote: { url: web.url, trustReadOnlyHint: true } };
    const models = { default: { ...modelAt(url), accepts: ['image'] } };
    return { blobs, models, tools: { mcpServers } };
  },
  agents: { pm: AGENT, artist: '---\nname: Artist\nruntime: bus\n---\nPERSONA' },
});

const resultOf = (entries: readonly Entry[]) =>
  callsOf(entries)[0]?.results[0] ?? expect.unreachable('no result');
const shots = async () => (await readFile(marks, 'utf8')).match(/^shot$/gm)?.length ?? 0;

/** Posts it in a conversation of its own, and follows that until the turn has ended. */
async function entriesAfter({ client }: Project, conversation: string, content: string): Promise<Entry[]> {
  await client.post({ conversation, publisher: 'alice', content });
  return followUntil(client, conversation, finished(1));
}

describe('files of results and answers', () => {
  const project = sharedProject(optionsWith());
  const { provider, client } = project;
  beforeAll(async () => {
    await writeFile(join(project.root, 'plan.png'), LOCAL);
    await writeFile(join(project.root, 'id_rsa'), 'KEY');
  });

  it.each([
    ['a local program', 'local shot', LOCAL, { width: 4, height: 3 }],
    ['a server over HTTP', 'remote shot', REMOTE, { width: 5, height: 2 }],
  ])(
    'a screenshot of %s is a file of the result, and the next request contains its bytes',
    async (_, words, bytes, size) => {
      const conversation = words.replace(' ', '-');
      const entries = await entriesAfter(project, conversation, words);
      expect(resultOf(entries).content).toMatch(/^\[file 1: image\/png, \d+ B\]$/);
      expect(filesOf(resultOf(entries))).toEqual([
        { type: 'file', sha256: hashOf(bytes), mediaType: 'image/png', size: bytes.length, ...size },
      ]);
      const { files, faults } = filesIn(provider.requests.at(-1)?.json);
      expect(faults).toEqual([]);
      expect(files).toEqual([{ role: 'user', mediaType: 'image/png', data: bytes.toString('base64') }]);
      expect(checkLog(await project.logFile(conversation))).toEqual([]);
    },
  );

  it('what an agent attaches is in its answer; a protected file waits for a person', async () => {
    const entries = await entriesAfter(project, 'attached', 'attach it');
    const answer = ofType(entries, 'message').at(-1);
    expect([answer?.role, answer?.content]).toEqual(['assistant', 'Noted.']);
    expect(filesOf(answer ?? {})).toMatchObject([{ sha256: hashOf(LOCAL), name: 'plan.png' }]);
    await client.post({ conversation: 'secret', publisher: 'alice', content: 'attach a secret' });
    const asked = await followUntil(
      client,
      'secret',
      (known) => ofType(known, 'approval-requested').length > 0,
    );
    expect(ofType(asked, 'approval-requested')[0]).toMatchObject({ tool: 'attach' });
  });

  it('an agent in another process answers with a file that it uploaded; with one that is not stored its turn fails', async () => {
    const uploaded = await fetch(`${project.http}/api/blobs?name=plan.png`, {
      method: 'PUT',
      body: new Uint8Array(LOCAL),
    });
    const file = (await uploaded.json()) as FilePart;
    const missing = { ...file, sha256: 'ab'.repeat(32) };
    await client.agent('artist', ({ conversation }) => ({
      ...{ content: 'drawn', files: [conversation === 'missing' ? missing : file] },
    }));
    const answer = async (conversation: string) => {
      await client.post({ conversation, publisher: 'alice', content: 'draw', to: ['artist'] });
      return ofType(await followUntil(client, conversation, finished(1)), 'message').at(-1);
    };
    expect(await answer('drawn')).toMatchObject({ content: 'drawn', parts: partsOf('drawn', [file]) });
    expect((await answer('missing'))?.content).toMatch(/^drawn\s+LLM_ERROR .*MISSING_BLOB/);
  });
});

itLong('a file of a result beyond the limit is named, and the call does not fail', async () => {
  const project = untilTestEnds(await startProject(optionsWith({ maxBytes: 10 })));
  const entries = await entriesAfter(project, 'demo', 'local shot');
  expect(resultOf(entries).content).toMatch(
    /^\[file 1: image\/png, \d+ B\]\n\[file 1, \d+ B: not kept: BLOB_TOO_LARGE: /,
  );
  expect(resultOf(entries).parts).toBeUndefined();
});

itLong.each(['file', 'jetstream'])(
  'store %s: a daemon that is killed between the record of a result and its report recovers it with its files, once (L12)',
  async (store) => {
    const env: Record<string, string> = { PARLEY_CRASH_POINTS: 'after-tool-record:1' };
    const project = untilTestEnds(await openProject({ ...optionsWith(), env }));
    const killed = await project.up('--allow-crash-points', '--store', store);
    const client = await project.connect();
    const before = await shots();
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'local shot' });
    expect(await killed.exited).toBeNull();
    expect(project.provider.requests).toHaveLength(1); // the result was not reported
    delete env.PARLEY_CRASH_POINTS;
    await project.up('--store', store);
    const entries = await followUntil(client, 'demo', finished(1));
    expect(filesOf(resultOf(entries))).toMatchObject([
      { sha256: hashOf(LOCAL), size: LOCAL.length, width: 4 },
    ]);
    expect(filesIn(project.provider.requests.at(-1)?.json).files).toMatchObject([
      { data: LOCAL.toString('base64') },
    ]);
    expect((await shots()) - before).toBe(1);
    expect(checkLaws(entries)).toEqual([]);
  },
);
