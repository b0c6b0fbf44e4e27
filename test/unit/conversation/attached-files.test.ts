import { describe, expect, it } from 'vitest';
import { ATTACH, type FilePart, filesOf, partsOf } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { ToolCore } from './tool-core.ts';

const fileOf = (digit: string, name = `${digit}.png`): FilePart => ({
  ...{ type: 'file', sha256: digit.repeat(64), name, mediaType: 'image/png', size: 10 },
});
const [A, B] = [fileOf('a'), fileOf('b')];

function started(): ToolCore {
  const core = new ToolCore().posted('draw');
  core.judge.policy = 'run everything';
  return core;
}

/** The result of the running tool, with files. */
function done(core: ToolCore, name: string, ...files: FilePart[]) {
  const { agent, turnId, call } = core.tool(name);
  core.tools = core.tools.filter((tool) => tool.name !== name);
  return core.do({ type: 'tool-finished', agent, turnId, call, result: `did ${name}`, duration: 1, files });
}

function attach(core: ToolCore, file: FilePart, words: string | null = null): void {
  core.act('pm', words, [ATTACH, { path: file.name }]);
  done(core, ATTACH, file);
}

/** Text and files of each answer. */
const answers = (core: ToolCore) =>
  typed(core.entries, 'message').flatMap((entry) =>
    entry.role === 'assistant' ? [[entry.content, ...filesOf(entry).map(({ name }) => name)]] : [],
  );

describe('files that an agent attaches', () => {
  it('are parts of its next message, in the order of the calls', () => {
    const core = started();
    attach(core, A);
    attach(core, B);
    core.act('pm', 'here they are');
    expect(answers(core)).toEqual([[null], [null], ['here they are', 'a.png', 'b.png']]);
    expect(typed(core.entries, 'message').at(-1)?.parts).toEqual(partsOf('here they are', [A, B]));
    core.post('and now?');
    core.act('pm', 'nothing new');
    expect(answers(core).at(-1)).toEqual(['nothing new']);
  });

  it('are in a message with text that calls other tools, and not again in the last one', () => {
    const core = started();
    attach(core, A, 'I draw');
    core.act('pm', null, ['safe']);
    done(core, 'safe', B); // a file of another tool is not attached
    core.act('pm', 'the draft', ['safe']);
    done(core, 'safe');
    core.act('pm', 'done');
    expect(answers(core)).toEqual([['I draw'], [null], ['the draft', 'a.png'], ['done']]);
  });

  it('are an answer without a text, which is no failure (L16)', () => {
    const core = started();
    attach(core, A);
    core.act('pm', null);
    expect(answers(core)).toEqual([[null], ['', 'a.png']]);
    expect(typed(core.entries, 'turn-ended').at(-1)?.outcome).toBe('completed');
  });

  it('end with their turn', () => {
    const core = started();
    attach(core, A);
    core.do({ type: 'stop', agent: null, by: { kind: 'person', id: 'alice', name: 'alice' } });
    core.crash(0);
    core.do({ type: 'resume', agent: null, by: { kind: 'person', id: 'alice', name: 'alice' } });
    core.post('again', { to: ['pm'] });
    core.act('pm', 'hello');
    expect(answers(core).at(-1)).toEqual(['hello']);
  });

  it('the agent is not shown them beside the call, but with its message (V19)', () => {
    const core = started();
    attach(core, A);
    expect(core.request('pm').map(([role]) => role)).toEqual(['user', 'assistant', 'tool']);
    core.act('pm', 'here', ['safe']);
    done(core, 'safe');
    expect(core.request('pm').map(([role]) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'assistant', 'tool', 'user'],
    ]);
  });

  it('a delegate gives its files with its answer to the asker, also without a text', () => {
    for (const text of ['it is drawn', null]) {
      const core = started();
      core.act('pm', '', ['delegate', { to: 'dev', request: 'draw' }]);
      core.act('dev', '', [ATTACH, { path: 'a.png' }]);
      done(core, ATTACH, A);
      core.act('dev', text);
      const result = typed(core.entries, 'message').findLast(({ role }) => role === 'tool');
      expect([result?.toolName, result?.content, filesOf(result ?? {})]).toEqual([
        'delegate',
        text ?? '',
        [A],
      ]);
      expect(core.shown()).toEqual([text ?? '[file a.png: image/png, 10 B, @blob/aaaaaaaaaaaa]']);
    }
  });
});

describe('files of results', () => {
  it('another picture with the same text is another result', () => {
    const core = started();
    for (let call = 1; call <= 9; call += 1) {
      core.act('pm', null, ['safe']);
      done(core, 'safe', fileOf(String(call)));
    }
    expect(core.turn('pm')).not.toBeNull();
  });

  it('the same picture again and again ends the turn', () => {
    const core = started();
    for (let call = 1; call <= 5; call += 1) {
      core.act('pm', null, ['safe']);
      done(core, 'safe', A);
    }
    expect(core.turn('pm')).toBeNull();
  });

  it('the result that the audit log has is recovered with its files (L12)', () => {
    const core = started();
    core.act('pm', null, ['safe']);
    const { index, position } = core.tool('safe').call;
    core.crash(0, [{ index, position, content: 'did safe', files: [A] }]);
    expect(typed(core.entries, 'message').at(-1)).toMatchObject({
      ...{ role: 'tool', content: 'did safe', parts: partsOf('did safe', [A]) },
    });
  });

  it('a late result names its files in the note', () => {
    const core = started();
    core.act('pm', null, ['safe']);
    const { agent, turnId, call } = core.tool('safe');
    done(core, 'safe');
    core.act('pm', 'done');
    core.do({ type: 'tool-finished', agent, turnId, call, result: 'late', duration: 1, files: [A] });
    expect(typed(core.entries, 'note').at(-1)?.content).toContain(
      'late\n[file a.png: image/png, 10 B, @blob/aaaaaaaaaaaa]: not kept',
    );
  });

  it('half of a surrogate pair in a result or a name is not stored', () => {
    const core = started();
    core.act('pm', null, ['safe']);
    const { agent, turnId, call } = core.tool('safe');
    const files = [fileOf('a', 'a\ud800')];
    core.do({ type: 'tool-finished', agent, turnId, call, result: 'x\ud800', duration: 1, files });
    expect(typed(core.entries, 'message').at(-1)?.parts).toEqual([
      { type: 'text', text: 'x\ufffd' },
      fileOf('a', 'a\ufffd'),
    ]);
  });
});
