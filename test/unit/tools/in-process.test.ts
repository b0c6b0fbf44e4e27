import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createInProcessTools, tool } from '../../../src/tools/index.ts';
import { toolRun } from './support.ts';

function outcomeOf(value: unknown) {
  const made = tool({
    name: 'draw',
    description: 'Draws.',
    input: z.object({}),
    risk: 'safe',
    run: () => value,
  });
  return createInProcessTools([made], () => false).run(toolRun('draw'), new AbortController().signal);
}

describe('the result of a function', () => {
  const bytes = Buffer.from('picture');

  it.each([
    ['a text', { content: 'drawn', files: [{ bytes, name: 'a.png' }] }, 'drawn'],
    ['a value', { content: { pieces: 1 }, files: [{ bytes, name: 'a.png' }] }, '{"pieces":1}'],
    ['nothing', { files: [{ bytes, name: 'a.png' }] }, ''],
  ])('may have files beside %s', async (_, value, content) => {
    expect(await outcomeOf(value)).toEqual({
      kind: 'completed',
      content,
      files: [{ bytes, name: 'a.png' }],
    });
  });

  it.each([
    ['no file', { content: 'x', files: [] }],
    ['names of files', { content: 'x', files: ['a.png'] }],
    ['files of another form', { content: 'x', files: [{ name: 'a.png', bytes: 7 }] }],
    ['a name that is no text', { content: 'x', files: [{ name: 7, bytes }] }],
    ['null', null],
  ])('with %s in a list `files` is a value like others', async (_, value) => {
    expect(await outcomeOf(value)).toEqual({ kind: 'completed', content: JSON.stringify(value) });
  });
});
