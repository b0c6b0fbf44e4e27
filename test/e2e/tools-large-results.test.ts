import { access, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Entry, ParleyClient } from '../../src/client/index.ts';
import type { FakeReply, FakeRequest } from '../support/fake-provider.ts';
import { shared } from '../support/lifetime.ts';
import { checkLog, finished, followUntil, ofType, parseLog } from '../support/log.ts';
import { openProject, type RunningDaemon } from '../support/project.ts';

const PAM =
  '---\nname: Pam\ndescription: works\nphases: [chat]\ntools: [shell, fs_read]\n---\nPERSONA OF PAM';
/** What `shell` puts before the output of the command. */
const STATUS = '[exit code 0]\n';
const INLINE_BYTES = 51_200;
const NEXT_PAGE = /\n\[there is more: continue with (from|offset): (\d+)\]$/;

/** Text of so many bytes whose five hundredth character is cut by code that counts bytes or UTF-16 units. */
function textOf(bytes: number): string {
  const odd = 'é𝄞…😀'.repeat(200);
  return `${odd}${'x'.repeat(bytes - Buffer.byteLength(odd))}`;
}

describe('a large tool result', () => {
  let daemon: RunningDaemon;
  let client: ParleyClient;

  const project = shared(() =>
    openProject({
      nats: {},
      agents: { pm: PAM },
      files: { 'workflows/look.yaml': WORKFLOW },
      settings: { tools: { policy: [{ tool: 'shell', allow: true }] } },
      model: answerTo,
    }),
  );
  const { provider } = project;
  beforeAll(async () => {
    await writeFile(join(project.root, 'inline.txt'), textOf(INLINE_BYTES - STATUS.length));
    await writeFile(join(project.root, 'large.txt'), textOf(INLINE_BYTES + 1 - STATUS.length));
    daemon = await project.up();
    client = await project.connect();
  });

  const post = (conversation: string, content: string) =>
    client.post({ conversation, publisher: 'alice', content });
  const turnOf = (conversation: string) => followUntil(client, conversation, finished(1));

  it('a result of 51,200 bytes is in the log unchanged', async () => {
    await post('inline', 'inline');
    const [result] = resultsOf(await turnOf('inline'));
    expect(Buffer.byteLength(result?.content ?? '')).toBe(INLINE_BYTES);
    expect(result).toMatchObject({ content: `${STATUS}${textOf(INLINE_BYTES - STATUS.length)}` });
    expect(result).not.toHaveProperty('fullOutputPath');
    await expect(access(outputs('inline'))).rejects.toThrow('ENOENT');
  });

  it.each(['chat', 'agent', 'run'] as const)(
    'a result of 51,201 bytes is a file that fs_read returns byte for byte in mode %s',
    async (mode) => {
      const to = mode === 'run' ? { workflow: 'look', input: 'large' } : {};
      if (mode !== 'agent')
        await client.request('mode', { conversation: mode, mode, publisher: 'alice', ...to });
      if (mode !== 'run') await post(mode, 'large');
      const [preview, ...pages] = resultsOf(await turnOf(mode));
      const full = `${STATUS}${textOf(INLINE_BYTES + 1 - STATUS.length)}`;
      expect(Buffer.byteLength(full)).toBe(INLINE_BYTES + 1);

      const shown = [...full].slice(0, 500).join('');
      const path = `@state/logs/tool-results/${mode}/${preview?.id}.json`;
      expect(preview?.content).toBe(`${shown}\n[Full output: ${path}]`);
      expect(preview?.fullOutputPath).toBe(path);
      expect(await readFile(join(outputs(mode), `${preview?.id}.json`), 'utf8')).toBe(full);

      expect(pages.length).toBeGreaterThan(1);
      const read = pages.map(({ content }) => wordsOf(content ?? '')).join('');
      expect(Buffer.from(read).equals(Buffer.from(full))).toBe(true);
      expect(new Set(banners(mode))).toEqual(new Set([`- active: ${mode}`]));
    },
  );

  it('deleting a conversation removes the file of a large result, and can be repeated', async () => {
    for (const existed of [true, false]) {
      const removed = await project.parley('rm', 'chat', '--json');
      expect([removed.code, removed.json()]).toMatchObject([
        0,
        [{ deleted: true, existed, erased: { outputs: existed ? 1 : 0 } }],
      ]);
    }
    await expect(access(join(project.data, 'conversations', 'chat'))).rejects.toThrow('ENOENT');
    await access(outputs('agent'));
    expect(await daemon.stop()).toBe(0);
    for (const conversation of ['inline', 'agent', 'run']) {
      const text = await project.logFile(conversation);
      expect(checkLog(text)).toEqual([]);
      expect(parseLog(text).at(-1)?.type).toMatch(/turn-ended|run-ended/);
    }
  });

  const outputs = (conversation: string) => join(project.data, 'conversations', conversation, 'outputs');

  /** The mode of each request about the file of this conversation. */
  function banners(mode: string): (string | undefined)[] {
    return provider.requests
      .map(({ json }) => json.messages ?? [])
      .filter((messages) => messages.some(({ content }) => content?.includes(`tool-results/${mode}/`)))
      .map(([prefix]) => /^- active: \w+$/m.exec(prefix?.content ?? '')?.[0]);
  }
});

const WORKFLOW = {
  id: 'look',
  start: 'look',
  nodes: { look: { agent: 'pm', brief: 'Look at the large file.', outcomes: { seen: 'end' } } },
};

/** An agent that runs a command, and reads back page by page what was too large to be shown. */
function answerTo({ json }: FakeRequest): FakeReply {
  const messages = json.messages ?? [];
  const last = messages.at(-1);
  if (last?.role !== 'tool') {
    const file = last?.content === 'inline' ? 'inline.txt' : 'large.txt';
    return call('shell', { command: `cat ${file}` });
  }
  const text = last.content ?? '';
  const path = /\[Full output: (\S+)\]$/.exec(text)?.[1];
  if (path !== undefined) return call('fs_read', { path });
  const [, unit, number] = NEXT_PAGE.exec(text) ?? [];
  if (unit !== undefined) {
    const previews = messages.map(({ content }) => /\[Full output: (\S+)\]$/.exec(content ?? '')?.[1]);
    return call('fs_read', { path: previews.find((found) => found !== undefined), [unit]: Number(number) });
  }
  const isRun = messages[0]?.content?.includes('- active: run');
  return isRun ? call('complete_node', { outcome: 'seen', summary: 'seen' }) : { text: 'seen' };
}

function call(name: string, given: object): FakeReply {
  return { toolCalls: [{ name, arguments: JSON.stringify(given) }] };
}

function resultsOf(entries: readonly Entry[]) {
  return ofType(entries, 'message').filter(({ toolName }) => toolName === 'shell' || toolName === 'fs_read');
}

/** A page without its note, which is on a line of its own. */
function wordsOf(page: string): string {
  const note = NEXT_PAGE.exec(page);
  if (!note) return page;
  return note[1] === 'from' ? page.slice(0, note.index + 1) : page.slice(0, note.index);
}
