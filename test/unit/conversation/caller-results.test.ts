import { describe, expect, it } from 'vitest';
import type { CallersResult, FilePart, Reply } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { PERSON } from './team-core.ts';
import { ToolCore } from './tool-core.ts';

const fileOf = (digit: string): FilePart => ({
  ...{ type: 'file', sha256: digit.repeat(64), name: `${digit}.png`, mediaType: 'image/png', size: 10 },
});
const [A, B] = [fileOf('a'), fileOf('b')];

type Answer = Omit<CallersResult, 'call'>;

/** A turn whose newest request calls a tool of its caller. */
function called(known?: ToolCore): ToolCore {
  const core = known ?? new ToolCore(['pm', 'dev'], false);
  if (!known) core.post('go', { by: PERSON.id, tools: [{ name: 'theirs' }] });
  core.act('pm', null, ['theirs']);
  return core;
}

function answer(core: ToolCore, result: Answer): Reply | undefined {
  const asked = typed(core.entries, 'message').findLast(({ tool_calls }) => tool_calls !== undefined);
  const call = { index: asked?.index ?? 0, position: 0 };
  return core.do({ type: 'answer-calls', results: [{ call, ...result }], by: PERSON }).reply;
}

describe('a repetition of a result of a caller', () => {
  const first: Answer = { content: 'seen', files: [A] };

  it('is answered with the entry of the first one, and changes nothing', () => {
    const core = called();
    const reply = answer(core, first);
    const { length } = core.entries;
    expect(answer(core, first)).toEqual(reply);
    expect(core.entries).toHaveLength(length);
  });

  it.each<[string, Answer]>([
    ['other files', { content: 'seen', files: [B] }],
    ['one more file', { content: 'seen', files: [A, B] }],
    ['no file', { content: 'seen' }],
    ['another text', { content: 'unseen', files: [A] }],
  ])('with %s is refused, so that nothing is lost silently', (_, second) => {
    const core = called();
    answer(core, first);
    expect(answer(core, second)).toMatchObject({ kind: 'refused', refusal: { code: 'CALL_OVER' } });
  });

  it('is known where the model was shown a notice with the first one', () => {
    const core = called();
    answer(core, first);
    answer(called(core), first);
    const reply = answer(called(core), first);
    expect(typed(core.entries, 'message').at(-1)?.content).toMatch(/^seen\n\n\[The same calls/);
    expect(answer(core, first)).toEqual(reply);
  });
});
