import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectToolCall, expectTurn, type ModelFunction, tool } from '../../../src/testing/index.ts';
import { newFolder } from '../../support/lifetime.ts';
import { pngOf } from '../../support/uploaded-files.ts';
import { agentFile, start } from './support.ts';

/** Files in a team in memory. */

const PICTURE = pngOf(3, 2);
const TEAM = { 'agents/front.md': agentFile('Front', ['draw', 'fs_read', 'attach']) };
const draw = tool({
  ...{ name: 'draw', description: 'Draws a picture.', input: z.object({}), risk: 'safe' },
  run: () => ({ content: 'drawn', files: [{ bytes: PICTURE, name: 'drawn.png' }] }),
});
/** Makes the calls one after the other, then answers. */
const calling =
  (...calls: { name: string; arguments?: Record<string, unknown> }[]): ModelFunction =>
  ({ messages }) => {
    const next = calls[messages.filter(({ role }) => role === 'tool').length];
    return next ? [next] : 'Done.';
  };

describe('files in a team in memory', () => {
  it('a test posts a file, and reads what the log has of it', async () => {
    const team = await start({ config: await newFolder(TEAM), models: () => 'ok' });
    const { entries } = await team.say('look', { files: [{ bytes: PICTURE, name: 'plan.png' }] });
    const [post] = entries;
    if (post?.type !== 'message') throw new Error('no post');
    expect(post.parts).toMatchObject([
      { type: 'text', text: 'look' },
      { type: 'file', name: 'plan.png', mediaType: 'image/png', width: 3, height: 2 },
    ]);
    expect(team.viewOf('front')).toMatch(/look\n\[file plan\.png: image\/png, \d+ B, @blob\/\w{12}/);
  });

  it.each([
    ['a model that takes pictures', 'accepts: [image]', ['plan.png']],
    ['a model that takes none', 'accepts: []', []],
  ])('%s is shown the file, or its line alone', async (_, accepts, shown) => {
    const settings = `defaultAgent: front\nmodels: { default: { model: some, baseURL: "http://127.0.0.1:1/v1", apiKey: some, ${accepts} } }\n`;
    const names: (string | undefined)[] = [];
    const team = await start({
      config: await newFolder({ ...TEAM, 'parley.yaml': settings }),
      models: ({ files, last }) => {
        names.push(...files.map(({ name }) => name));
        return last;
      },
    });
    const { text } = await team.say('look', { files: [{ bytes: PICTURE, name: 'plan.png' }] });
    expect(text).toContain('[file plan.png: image/png');
    expect(names).toEqual(shown);
  });

  it('a file of a result follows it; the model still gets the result as the last message', async () => {
    const team = await start({
      ...{ config: await newFolder(TEAM), tools: [draw] },
      models: ({ tool: of, last }) => (of ? `${of}: ${last}` : [{ name: 'draw' }]),
    });
    await team.say('draw');
    expectTurn(team, { agent: 'front', text: 'draw: drawn' });
    const { files = [] } = expectToolCall(team, { tool: 'draw', result: 'drawn' });
    expect(await Promise.all(files.map((file) => team.bytes(file)))).toEqual([PICTURE]);
  });

  it('an agent attaches a file of the project and one of an earlier message to its answer', async () => {
    const project = await newFolder();
    await writeFile(join(project, 'a.csv'), 'a;b');
    let blob = '';
    const attach = (path: () => string) => ({
      get arguments() {
        return { path: path() };
      },
      name: 'attach',
    });
    const models = calling(
      attach(() => '@project/a.csv'),
      attach(() => blob),
    );
    const team = await start({ config: await newFolder(TEAM), project, models });
    const { sha256 } = (
      await team.say('first', { conversation: 'other', files: [{ bytes: PICTURE }] })
    ).entries
      .flatMap((entry) => (entry.type === 'message' ? (entry.parts ?? []) : []))
      .find((part) => part.type === 'file') ?? { sha256: '' };
    blob = `@blob/${sha256.slice(0, 12)}`;
    const { answers } = await team.say('send them', { files: [{ bytes: PICTURE, name: 'plan.png' }] });
    expect(answers.at(-1)).toMatchObject({ text: 'Done.', files: [{ name: 'a.csv' }, { name: 'plan.png' }] });
  });

  it('fs_read reads a file of the conversation, and none of another one', async () => {
    const seen: string[] = [];
    const models: ModelFunction = ({ tool: of, last }) => {
      if (of) seen.push(last);
      return of ? 'ok' : [{ name: 'fs_read', arguments: { path: last.match(/@blob\/\w+/)?.[0] ?? '' } }];
    };
    const team = await start({ config: await newFolder(TEAM), models });
    await team.say('read', { conversation: 'one', files: [{ bytes: Buffer.from('a;b'), name: 'a.csv' }] });
    const [, path = ''] = /(@blob\/\w{12})/.exec(team.viewOf('front', 'one')) ?? [];
    await team.say(`read ${path}`, { conversation: 'two' });
    expect(seen).toEqual(['a;b', expect.stringContaining('no message of this conversation has the file')]);
  });

  it('a file that is too large is refused, and nothing is posted', async () => {
    const team = await start({ config: await newFolder(TEAM), models: () => 'ok' });
    const files = [{ bytes: Buffer.alloc(20 * 1024 * 1024 + 1) }];
    await expect(team.say('look', { files })).rejects.toMatchObject({ code: 'BLOB_TOO_LARGE' });
    expect(team.entries()).toEqual([]);
  });
});
