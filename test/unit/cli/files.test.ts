import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { renderFsck } from '../../../src/cli/commands/offline/files.ts';
import { createPalette } from '../../../src/cli/render/text.ts';
import { ParleyError } from '../../../src/client/index.ts';
import type { FsckOptions, FsckReport, ImportOptions } from '../../../src/daemon/index.ts';
import { parley } from './support.ts';

/** The commands that work on files without a daemon: `fsck`, `export`, `import`. */

const plain = createPalette(false);
type Finding = FsckReport['findings'][number];

const torn = (more: Partial<Finding> = {}): Finding => ({
  kind: 'torn-tail',
  index: null,
  text: '22 bytes were never acknowledged',
  repair: 'cuts them off',
  repaired: false,
  ...more,
});
const broken = torn({ kind: 'law', index: 3, text: 'entry 3: no such turn\nsecond line', repair: null });
const report = (conversation: string, ...findings: Finding[]): FsckReport => ({ conversation, findings });
const inUse = new ParleyError('DATA_DIRECTORY_IN_USE', 'the directory is in use by process 7', {
  hint: 'stop that daemon',
});

describe('the report of fsck for people', () => {
  const shown = (reports: FsckReport[], planned = false) => renderFsck(reports, plain, planned).split('\n');

  it('the report of fsck is one line if nothing was found, for any number of conversations', () => {
    expect(shown([])).toEqual(['0 conversations: sound']);
    expect(shown([report('work')])).toEqual(['1 conversation: sound']);
    expect(shown([report('work'), report('home')])).toEqual(['2 conversations: sound']);
  });

  it('the report of fsck names conversation, kind and place of each finding, and what can be repaired', () => {
    expect(shown([report('home'), report('work', torn(), broken)])).toEqual([
      'found   work torn-tail: 22 bytes were never acknowledged',
      'found   work law: entry 3: no such turn',
      'second line',
      '2 conversations: 2 found; 1 can be repaired with --repair (docs/guides/troubleshooting.md)',
    ]);
  });

  it('the report of fsck says if nothing can be repaired', () => {
    expect(shown([report('work', broken)]).at(-1)).toBe(
      '1 conversation: 1 found; none can be repaired (docs/guides/troubleshooting.md)',
    );
  });

  it('the report of fsck names the repair of each finding', () => {
    expect(shown([report('work', torn(), broken)], true).slice(0, -1)).toEqual([
      'found   work torn-tail: 22 bytes were never acknowledged',
      '        a repair cuts them off',
      'found   work law: entry 3: no such turn',
      'second line',
      '        cannot be repaired',
    ]);
  });

  it('the report of fsck separates what was repaired from what remains', () => {
    const repaired = torn({ repaired: true });
    expect(shown([report('work', repaired)], true)).toEqual([
      'fixed   work torn-tail: 22 bytes were never acknowledged',
      '1 conversation: sound now, 1 fixed',
    ]);
    expect(shown([report('work', repaired, broken)]).at(-1)).toContain('1 found; none can be repaired');
  });

  it('the report of fsck has colours only if they are enabled', () => {
    const colours = createPalette(true);
    const [found, repaired] = [torn(), torn({ repaired: true })].map((one) =>
      renderFsck([report('work', one)], colours, false),
    );
    expect(found).toContain(`${colours.red('found ')}  ${colours.bold('work')}`);
    expect(repaired).toContain(colours.green('fixed '));
  });
});

describe('fsck', () => {
  function inspecting(...reports: FsckReport[]) {
    const asked: FsckOptions[] = [];
    const fsck = async (options: FsckOptions) => {
      asked.push(options);
      return reports;
    };
    return { asked, options: { daemonModule: { fsck }, workingDirectory: '/work' } };
  }

  it('fsck checks every conversation of the data directory and changes nothing', async () => {
    const { asked, options } = inspecting(report('work'));
    expect(await parley(['fsck'], options)).toMatchObject({ code: 0, out: '1 conversation: sound\n' });
    await parley(['fsck', 'work'], { ...options, env: { PARLEY_DATA: 'other' } });
    await parley(['--data', '/elsewhere', 'fsck'], options);
    expect(asked).toEqual([
      { dataDirectory: resolve('/work/data'), repair: false },
      { dataDirectory: resolve('/work/other'), repair: false, conversation: 'work' },
      { dataDirectory: resolve('/elsewhere'), repair: false },
    ]);
  });

  it('fsck repairs with --repair, and only reports the repairs with --dry-run', async () => {
    const { asked, options } = inspecting(report('work', torn()));
    expect((await parley(['fsck', '--repair'], options)).out).not.toContain('a repair cuts');
    expect((await parley(['fsck', '--repair', '--dry-run'], options)).out).toContain(
      'a repair cuts them off',
    );
    expect(asked.map(({ repair }) => repair)).toEqual([true, false]);
  });

  it('fsck exits with 1 while a finding remains, and with 0 if all were repaired', async () => {
    const repaired = torn({ repaired: true });
    expect((await parley(['fsck'], inspecting(report('work', torn())).options)).code).toBe(1);
    expect(
      (await parley(['fsck', '--repair'], inspecting(report('a', repaired), report('b', broken)).options))
        .code,
    ).toBe(1);
    expect((await parley(['fsck', '--repair'], inspecting(report('work', repaired)).options)).code).toBe(0);
  });

  it('fsck prints one report per line for programs', async () => {
    const reports = [report('home'), report('work', torn())];
    const ran = await parley(['--json', 'fsck'], inspecting(...reports).options);
    expect(ran.json()).toEqual(reports);
    expect(ran.code).toBe(1);
  });

  it('fsck refuses --dry-run without --repair, and an invalid id, before it reads anything', async () => {
    const { asked, options } = inspecting();
    const dry = await parley(['fsck', '--dry-run'], options);
    expect(dry).toMatchObject({ code: 2, out: '' });
    expect(dry.err).toContain('--dry-run requires --repair\n  give both, or neither');
    const named = await parley(['fsck', 'a/b'], options);
    expect(named.code).toBe(2);
    expect(named.err).toContain('A conversation id is 1 to 128 letters');
    expect(asked).toEqual([]);
  });

  it('fsck reports why it cannot read, and what to do', async () => {
    const options = { daemonModule: { fsck: () => Promise.reject(inUse) } };
    const ran = await parley(['fsck', '--repair'], options);
    expect(ran).toMatchObject({ code: 1, out: '' });
    expect(ran.err).toBe('parley: the directory is in use by process 7\n  stop that daemon\n');
  });
});

describe('export', () => {
  const daemonModule = {
    exportConversation: async (...asked: unknown[]) => asked.slice(0, 3).join(' '),
  };

  it('export prints the messages, or all entries, of one conversation', async () => {
    const options = { daemonModule, workingDirectory: '/work' };
    const data = resolve('/work/data');
    expect(await parley(['export', 'demo'], options)).toMatchObject({
      code: 0,
      out: `${data} demo openai\n`,
      err: '',
    });
    expect((await parley(['export', 'demo', '--format', 'jsonl'], options)).out).toBe(`${data} demo jsonl\n`);
  });

  it('export lets no control character of a message act on a terminal, and keeps it in a file', async () => {
    const text = 'copied \u001b]52;c;cm0gLXJm\u0007 \u009b2J \u202e\n\ttab';
    const daemonModule = {
      exportConversation: async (_: string, __: string, format: string) =>
        format === 'markdown' ? text : JSON.stringify({ text }),
    };
    const exported = async (format: string, isTerminal: boolean) =>
      (await parley(['export', 'demo', '--format', format], { daemonModule, isTerminal })).out;
    expect(await exported('markdown', true)).toBe(
      'copied \\u001b]52;c;cm0gLXJm\\u0007 \\u009b2J \\u202e\n\ttab\n',
    );
    expect(await exported('markdown', false)).toBe(`${text}\n`);
    for (const isTerminal of [true, false]) {
      const json = await exported('openai', isTerminal);
      expect(json).not.toMatch(/\p{Cc}(?<!\n)|\p{Cf}/u);
      expect(JSON.parse(json)).toEqual({ text });
    }
  });

  it.each([
    [['export'], "missing required argument 'conversation'"],
    [['export', 'a b'], 'A conversation id is 1 to 128 letters'],
    [['export', 'demo', '--format', 'xml'], 'Allowed choices are openai, markdown, jsonl'],
  ])('export refuses %j', async (argv, why) => {
    const ran = await parley(argv, { daemonModule });
    expect(ran).toMatchObject({ code: 2, out: '' });
    expect(ran.err).toContain(why);
  });

  it('export of no rated answers prints nothing', async () => {
    const daemonModule = { exportConversation: async () => '' };
    expect((await parley(['export', 'demo', '--format', 'cases'], { daemonModule })).out).toBe('');
  });

  it('export says which file cannot be written, and why', async () => {
    const fault = Object.assign(new Error('ENOENT: no such file or directory, open'), { code: 'ENOENT' });
    const options = { daemonModule: { exportToFile: () => Promise.reject(fault) } };
    const told = await parley(['export', 'demo', '--out', '/none/x.json'], options);
    expect([told.code, told.err]).toEqual([
      2,
      expect.stringMatching(/cannot write \/none\/x\.json: ENOENT.*\n.*--out/),
    ]);
  });

  it('export reports a missing conversation to people and to programs', async () => {
    const missing = new ParleyError('NOT_FOUND', 'there is no conversation demo', { hint: '`parley ls`' });
    const options = { daemonModule: { exportConversation: () => Promise.reject(missing) } };
    const told = await parley(['export', 'demo'], options);
    expect(told).toMatchObject({ code: 1, out: '' });
    expect(told.err).toBe('parley: there is no conversation demo\n  `parley ls`\n');
    const parsed = await parley(['--json', 'export', 'demo'], options);
    expect(parsed.code).toBe(1);
    expect(`${parsed.out}${parsed.err}`).toContain('"code":"NOT_FOUND"');
  });
});

describe('import', () => {
  function importing(duplicate = false, work: readonly string[] = []) {
    const asked: ImportOptions[] = [];
    const importConversation = async (options: ImportOptions) => {
      asked.push(options);
      if (options.resume && !(await options.resume(work))) return null;
      return { conversation: options.conversation, entries: 3, duplicate, work };
    };
    return { asked, options: { daemonModule: { importConversation }, workingDirectory: '/work' } };
  }

  it('import reports how much it imported, and resolves the file from the working directory', async () => {
    const { asked, options } = importing();
    const ran = await parley(['import', 'old/messages.json', '--conversation', 'demo'], options);
    expect(ran).toMatchObject({ code: 0, out: 'demo: 3 entries imported\n', err: '' });
    await parley(['import', '/a.jsonl', '--conversation', 'demo', '--agent', 'pm'], options);
    expect(asked).toEqual([
      {
        dataDirectory: resolve('/work/data'),
        file: resolve('/work/old/messages.json'),
        conversation: 'demo',
        agent: 'assistant',
      },
      { dataDirectory: resolve('/work/data'), file: resolve('/a.jsonl'), conversation: 'demo', agent: 'pm' },
    ]);
  });

  it('import reports that the conversation was imported before', async () => {
    const { options } = importing(true);
    const argv = ['import', 'a.json', '--conversation', 'demo'];
    expect(await parley(argv, options)).toMatchObject({ code: 0, out: 'demo already has these 3 entries\n' });
    expect((await parley(['--json', ...argv], options)).json()).toEqual([
      { conversation: 'demo', entries: 3, duplicate: true, work: [] },
    ]);
  });

  it('import names what it ended; --resume lists what will run, and needs --yes without a terminal', async () => {
    const { options } = importing(false, ['pm called shell {}: it was approved, and runs']);
    const argv = ['import', 'a.jsonl', '--conversation', 'demo'];
    const plain = await parley(argv, options);
    expect(plain.code).toBe(0);
    expect(plain.err).toContain('ended, since a file starts nothing: pm called shell {}');
    const refused = await parley([...argv, '--resume'], options);
    expect([refused.code, refused.out]).toEqual([2, '']);
    expect(refused.err).toContain('pm called shell {}: it was approved, and runs');
    expect(refused.err).toContain('--yes');
    expect(await parley([...argv, '--resume', '--yes'], options)).toMatchObject({ code: 0, err: '' });
  });

  it.each([
    [['import', '--conversation', 'demo'], "missing required argument 'file'"],
    [['import', 'a.json'], "required option '--conversation <id>' not specified"],
    [['import', 'a.json', '--conversation', 'a.b'], 'A conversation id is 1 to 128 letters'],
    [['import', 'a.json', '--conversation', 'demo', '--agent', 'The PM'], 'Give the slug of an agent'],
    [['import', 'a.json', '--conversation', 'demo', '--nats', 'nats://x'], '--nats has no effect here'],
    [['import', 'a.json', '--conversation', 'demo', '--nats-user', 'ann'], '--nats-user has no effect here'],
    [['export', 'demo', '--nats', 'nats://x'], '--nats has no effect here'],
    [['fsck', '--prefix', 'team'], '--prefix has no effect here'],
  ])('import refuses %j and reads nothing', async (argv, why) => {
    const { asked, options } = importing();
    const ran = await parley(argv, options);
    expect(ran).toMatchObject({ code: 2, out: '' });
    expect(ran.err).toContain(why);
    expect(asked).toEqual([]);
  });

  it.each([
    [new ParleyError('USAGE_FILE', 'a.json cannot be read: ENOENT', { hint: 'name a messages.json' }), 2],
    [new ParleyError('IMPORT_INVALID', 'a.json was not imported: line 2', { hint: 'a copy is kept' }), 1],
    [new ParleyError('CONVERSATION_EXISTS', 'the conversation demo exists', { hint: 'another id' }), 1],
    [inUse, 1],
  ])('import reports why nothing was imported: $code', async (failure, code) => {
    const options = { daemonModule: { importConversation: () => Promise.reject(failure) } };
    const ran = await parley(['import', 'a.json', '--conversation', 'demo'], options);
    expect(ran).toMatchObject({ code, out: '' });
    expect(ran.err).toBe(`parley: ${failure.message}\n  ${failure.hint}\n`);
  });
});
