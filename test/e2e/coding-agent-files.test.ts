import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesOf, type MessageEntry } from '../../src/client/index.ts';
import { promptsOf } from '../support/acp/prompts.ts';
import { launcher, strangersEnvironment } from '../support/cli.ts';
import { shared, sharedFolder } from '../support/lifetime.ts';
import { checkLog, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { startProject } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';
import { PNG, pngOf } from '../support/uploaded-files.ts';

/** Files of a coding agent that the daemon runs, and of one that joined over NATS. */

const PROGRAM = join(import.meta.dirname, '../support/acp/agent.mjs');
const DRAWN = pngOf(7, 5);
const LIMIT = 100_000;
const folder = sharedFolder();
const stateOf = (agent: string) => join(folder, agent);
const command = [process.execPath, PROGRAM, '--image'];

const project = shared(() =>
  startProject({
    nats: {},
    settings: { blobs: { maxBytes: LIMIT } },
    agents: {
      here: `---
name: Here
runtime: acp
command: ${JSON.stringify(command)}
env: { ACP_STATE: ${JSON.stringify(stateOf('here'))} }
tools: [fs_read]
---
You draw.`,
      there: '---\nname: There\nruntime: bus\ntools: [fs_read]\n---\nYou draw.',
    },
  }),
);

/** A program on another machine, as far as the daemon can tell. */
shared(async () => {
  const args = ['join', 'there', '--command', command.join(' '), '--cwd', folder, '--nats', project.nats.url];
  const child = spawn(process.execPath, [launcher, ...args], {
    env: { ...strangersEnvironment(), ACP_STATE: stateOf('there') },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data'); // it says that it runs
  return {
    async close() {
      child.kill('SIGINT');
      await once(child, 'exit');
    },
  };
});

const image = (bytes: Buffer) => [{ type: 'image', mimeType: 'image/png', data: bytes.toString('base64') }];

describe.each(hasLongTests ? ['here', 'there'] : ['there'])('files of the coding agent %s', (agent) => {
  async function answerTo(conversation: string, content: string, bytes?: Buffer): Promise<MessageEntry> {
    const { client } = project;
    const files = bytes ? [await client.upload(bytes, { name: 'plan.png' })] : [];
    await client.post({
      conversation,
      content,
      ...(files.length > 0 && { parts: files }),
      to: [agent],
      publisher: 'alice',
    });
    const entries = await followUntil(client, conversation, turnsEnded(1));
    expect(checkLog(await project.logFile(conversation))).toEqual([]);
    return ofType(entries, 'message').at(-1) as MessageEntry;
  }

  it('is shown a posted picture, and its own is a file of its answer with the same bytes', async () => {
    const conversation = `drawn-${agent}`;
    const answer = await answerTo(conversation, `show ${JSON.stringify(image(DRAWN))}`, PNG);
    const told = await readFile(join(stateOf(agent), 'told.jsonl'), 'utf8');
    expect(told).toContain(`"type":"image","mimeType":"image/png","data":"${PNG.toString('base64')}"`);
    const { received, printed, sent } = await promptsOf(
      project,
      project.client,
      conversation,
      agent,
      stateOf(agent),
    );
    expect({ printed, sent }).toEqual({ printed: received, sent: [true] });
    const [file] = filesOf(answer);
    expect(file).toMatchObject({ mediaType: 'image/png', size: DRAWN.length, width: 7, height: 5 });
    const pieces: Uint8Array[] = [];
    for await (const piece of project.client.download(conversation, file?.sha256 ?? '')) pieces.push(piece);
    expect(Buffer.concat(pieces)).toEqual(DRAWN);
  });

  it('a picture that a tool of Parley reads is in the result of its call', async () => {
    await writeFile(join(project.root, 'drawn.png'), DRAWN);
    const answer = await answerTo(`read-${agent}`, 'use fs_read {"path":"@project/drawn.png"}');
    expect(answer.content).toContain('drawn.png');
    expect(answer.content).toContain(`<image ${DRAWN.toString('base64')}>`);
    const { received, printed } = await promptsOf(
      project,
      project.client,
      `read-${agent}`,
      agent,
      stateOf(agent),
    );
    expect(received).toHaveLength(1);
    expect(printed).toEqual(received);
  });

  it('a picture that the daemon does not take is named in its answer', async () => {
    const large = Buffer.concat([DRAWN, Buffer.alloc(LIMIT)]);
    const answer = await answerTo(`large-${agent}`, `show ${JSON.stringify(image(large))}`);
    expect(answer.content).toMatch(
      /^\[file image\/png, 100 kB: not kept: BLOB_TOO_LARGE: a file may have 100 kB\]$/,
    );
    expect(filesOf(answer)).toEqual([]);
  });
});
