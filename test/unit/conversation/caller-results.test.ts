import { describe, expect, it } from 'vitest';
import type { CallersResult, FilePart, Reply } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { PERSON } from './team.ts';
import { ToolTeam } from './tool-life.ts';

const fileOf = (digit: string): FilePart => ({
  ...{ type: 'file', sha256: digit.repeat(64), name: `${digit}.png`, mediaType: 'image/png', size: 10 },
});
const [A, B] = [fileOf('a'), fileOf('b')];

type Answer = Omit<CallersResult, 'call'>;

/** A turn whose newest request calls a tool of its caller. */
function called(known?: ToolTeam): ToolTeam {
  const team = known ?? new ToolTeam(['pm', 'dev'], false);
  if (!known) team.post('go', { by: PERSON.id, tools: [{ name: 'theirs' }] });
  team.act('pm', null, ['theirs']);
  return team;
}

function answer(team: ToolTeam, result: Answer): Reply | undefined {
  const asked = typed(team.entries, 'message').findLast(({ tool_calls }) => tool_calls !== undefined);
  const call = { index: asked?.index ?? 0, position: 0 };
  return team.do({ type: 'answer-calls', results: [{ call, ...result }], by: PERSON }).reply;
}

describe('a repetition of a result of a caller', () => {
  const first: Answer = { content: 'seen', files: [A] };

  it('is answered with the entry of the first one, and changes nothing', () => {
    const team = called();
    const reply = answer(team, first);
    const { length } = team.entries;
    expect(answer(team, first)).toEqual(reply);
    expect(team.entries).toHaveLength(length);
  });

  it.each<[string, Answer]>([
    ['other files', { content: 'seen', files: [B] }],
    ['one more file', { content: 'seen', files: [A, B] }],
    ['no file', { content: 'seen' }],
    ['another text', { content: 'unseen', files: [A] }],
  ])('with %s is refused, so that nothing is lost silently', (_, second) => {
    const team = called();
    answer(team, first);
    expect(answer(team, second)).toMatchObject({ kind: 'refused', refusal: { code: 'CALL_OVER' } });
  });

  it('is known where the model was shown a notice with the first one', () => {
    const team = called();
    answer(team, first);
    answer(called(team), first);
    const reply = answer(called(team), first);
    expect(typed(team.entries, 'message').at(-1)?.content).toMatch(/^seen\n\n\[The same calls/);
    expect(answer(team, first)).toEqual(reply);
  });
});
