import { describe, expect, it } from 'vitest';
import { ATTACH, type FilePart, filesOf, partsOf } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { ToolTeam } from './tool-life.ts';

const fileOf = (digit: string, name = `${digit}.png`): FilePart => ({
  ...{ type: 'file', sha256: digit.repeat(64), name, mediaType: 'image/png', size: 10 },
});
const [A, B] = [fileOf('a'), fileOf('b')];

function started(): ToolTeam {
  const team = new ToolTeam().posted('draw');
  team.judge.policy = 'run everything';
  return team;
}

/** The result of the running tool, with files. */
function done(team: ToolTeam, name: string, ...files: FilePart[]) {
  const { agent, turnId, call } = team.tool(name);
  team.tools = team.tools.filter((tool) => tool.name !== name);
  return team.do({ type: 'tool-finished', agent, turnId, call, result: `did ${name}`, duration: 1, files });
}

function attach(team: ToolTeam, file: FilePart, words: string | null = null): void {
  team.act('pm', words, [ATTACH, { path: file.name }]);
  done(team, ATTACH, file);
}

/** Text and files of each answer. */
const answers = (team: ToolTeam) =>
  typed(team.entries, 'message').flatMap((entry) =>
    entry.role === 'assistant' ? [[entry.content, ...filesOf(entry).map(({ name }) => name)]] : [],
  );

describe('files that an agent attaches', () => {
  it('are parts of its next message, in the order of the calls', () => {
    const team = started();
    attach(team, A);
    attach(team, B);
    team.act('pm', 'here they are');
    expect(answers(team)).toEqual([[null], [null], ['here they are', 'a.png', 'b.png']]);
    expect(typed(team.entries, 'message').at(-1)?.parts).toEqual(partsOf('here they are', [A, B]));
    team.post('and now?');
    team.act('pm', 'nothing new');
    expect(answers(team).at(-1)).toEqual(['nothing new']);
  });

  it('are in a message with text that calls other tools, and not again in the last one', () => {
    const team = started();
    attach(team, A, 'I draw');
    team.act('pm', null, ['safe']);
    done(team, 'safe', B); // a file of another tool is not attached
    team.act('pm', 'the draft', ['safe']);
    done(team, 'safe');
    team.act('pm', 'done');
    expect(answers(team)).toEqual([['I draw'], [null], ['the draft', 'a.png'], ['done']]);
  });

  it('are an answer without a text, which is no failure (L16)', () => {
    const team = started();
    attach(team, A);
    team.act('pm', null);
    expect(answers(team)).toEqual([[null], ['', 'a.png']]);
    expect(typed(team.entries, 'turn-ended').at(-1)?.outcome).toBe('completed');
  });

  it('end with their turn', () => {
    const team = started();
    attach(team, A);
    team.do({ type: 'stop', agent: null, by: { kind: 'person', id: 'alice', name: 'alice' } });
    team.crash(0);
    team.do({ type: 'resume', agent: null, by: { kind: 'person', id: 'alice', name: 'alice' } });
    team.post('again', { to: ['pm'] });
    team.act('pm', 'hello');
    expect(answers(team).at(-1)).toEqual(['hello']);
  });

  it('the agent is not shown them beside the call, but with its message (V19)', () => {
    const team = started();
    attach(team, A);
    expect(team.request('pm').map(([role]) => role)).toEqual(['user', 'assistant', 'tool']);
    team.act('pm', 'here', ['safe']);
    done(team, 'safe');
    expect(team.request('pm').map(([role]) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'assistant', 'tool', 'user'],
    ]);
  });

  it('a delegate gives its files with its answer to the asker, also without a text', () => {
    for (const text of ['it is drawn', null]) {
      const team = started();
      team.act('pm', '', ['delegate', { to: 'dev', request: 'draw' }]);
      team.act('dev', '', [ATTACH, { path: 'a.png' }]);
      done(team, ATTACH, A);
      team.act('dev', text);
      const result = typed(team.entries, 'message').findLast(({ role }) => role === 'tool');
      expect([result?.toolName, result?.content, filesOf(result ?? {})]).toEqual([
        'delegate',
        text ?? '',
        [A],
      ]);
      expect(team.shown()).toEqual([text ?? '[file a.png: image/png, 10 B, @blob/aaaaaaaaaaaa]']);
    }
  });
});

describe('files of results', () => {
  it('another picture with the same text is another result', () => {
    const team = started();
    for (let call = 1; call <= 9; call += 1) {
      team.act('pm', null, ['safe']);
      done(team, 'safe', fileOf(String(call)));
    }
    expect(team.turn('pm')).not.toBeNull();
  });

  it('the same picture again and again ends the turn', () => {
    const team = started();
    for (let call = 1; call <= 5; call += 1) {
      team.act('pm', null, ['safe']);
      done(team, 'safe', A);
    }
    expect(team.turn('pm')).toBeNull();
  });

  it('the result that the audit log has is recovered with its files (L12)', () => {
    const team = started();
    team.act('pm', null, ['safe']);
    const { index, position } = team.tool('safe').call;
    team.crash(0, [{ index, position, content: 'did safe', files: [A] }]);
    expect(typed(team.entries, 'message').at(-1)).toMatchObject({
      ...{ role: 'tool', content: 'did safe', parts: partsOf('did safe', [A]) },
    });
  });

  it('a late result names its files in the note', () => {
    const team = started();
    team.act('pm', null, ['safe']);
    const { agent, turnId, call } = team.tool('safe');
    done(team, 'safe');
    team.act('pm', 'done');
    team.do({ type: 'tool-finished', agent, turnId, call, result: 'late', duration: 1, files: [A] });
    expect(typed(team.entries, 'note').at(-1)?.content).toContain(
      'late\n[file a.png: image/png, 10 B, @blob/aaaaaaaaaaaa]: not kept',
    );
  });

  it('half of a surrogate pair in a result or a name is not stored', () => {
    const team = started();
    team.act('pm', null, ['safe']);
    const { agent, turnId, call } = team.tool('safe');
    const files = [fileOf('a', 'a\ud800')];
    team.do({ type: 'tool-finished', agent, turnId, call, result: 'x\ud800', duration: 1, files });
    expect(typed(team.entries, 'message').at(-1)?.parts).toEqual([
      { type: 'text', text: 'x\ufffd' },
      fileOf('a', 'a\ufffd'),
    ]);
  });
});
