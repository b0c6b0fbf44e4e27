import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkLaws, type Entry, Knowledge } from '../../../src/conversation/index.ts';
import { exportConversation, exportToFile, fsck, importConversation } from '../../../src/daemon/index.ts';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { itLong } from '../../support/long.ts';
import { size } from '../../support/runs.ts';
import { PNG } from '../../support/uploaded-files.ts';
import { Log } from '../agents/support.ts';

const call = (id: string, name = 'shell') => ({ id, type: 'function', function: { name, arguments: '{}' } });
const LEGACY = [
  { id: 7, role: 'user', content: 'do it', timestamp: 1_700_000_000_000, mood: { of: 'the day' } },
  { role: 'assistant', agentId: 'pm', content: null, tool_calls: [call('x'), call('x'), call('y')] },
  { role: 'tool', tool_call_id: 'x', content: 'of the first' },
  {
    role: 'user',
    name: 'Alice',
    content: [
      { type: 'text', text: 'and ' },
      { type: 'text', text: 'this' },
    ],
  },
  { role: 'tool', tool_call_id: 'nobody', content: 'an orphan' },
  { role: 'developer', content: 'be kind', phase: 'plan', isCollapsed: 'perhaps' },
  { role: 'assistant', content: 'done', meta: { own: 1 }, includeInContext: false, id: '7' },
];

describe('conversations as files', () => {
  const data = folderPerTest();

  async function bring(
    content: unknown,
    conversation = 'old',
    resume?: (work: readonly string[]) => Promise<boolean>,
  ) {
    const file = join(data, 'messages.json');
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
    const outcome = await importConversation({
      ...{ dataDirectory: data, file, conversation, agent: 'assistant' },
      ...(resume && { resume }),
    });
    if (outcome === null) throw new Error('it was declined');
    return outcome;
  }
  async function entriesOf(conversation = 'old'): Promise<Entry[]> {
    const lines = await exportConversation(data, conversation, 'jsonl');
    return lines.split('\n').map((line) => JSON.parse(line));
  }

  it('imports a messages.json, keeps unknown fields, and closes calls without a result', async () => {
    expect(await bring(LEGACY)).toEqual({ conversation: 'old', entries: 9, duplicate: false, work: [] });
    const entries = await entriesOf();
    expect(entries.slice(0, 7)).toMatchObject([
      {
        id: '7',
        createdAt: '2023-11-14T22:13:20.000Z',
        author: { kind: 'person', name: 'User' },
        meta: { imported: { id: 7, timestamp: 1_700_000_000_000, mood: { of: 'the day' } } },
      },
      { id: 'import-1', author: { kind: 'agent', id: 'pm' } },
      { call: { index: 1, position: 0 }, tool_call_id: 'c1_0', meta: { imported: { tool_call_id: 'x' } } },
      {
        content: 'and this',
        author: { id: 'import/Alice' },
        meta: { imported: { content: LEGACY[3]?.content } },
      },
      { role: 'tool', content: 'an orphan' },
      { role: 'system', phase: 'plan', meta: { imported: { role: 'developer', isCollapsed: 'perhaps' } } },
      { id: 'import-6', author: { id: 'assistant' }, includeInContext: false, meta: { own: 1 } },
    ]);
    expect(entries[4]).not.toHaveProperty('call');
    expect(entries.slice(7, 9)).toMatchObject([
      { call: { index: 1, position: 1 }, content: expect.stringContaining('NO_RESULT') },
      { call: { index: 1, position: 2 }, content: expect.stringContaining('NO_RESULT') },
    ]);
    expect(checkLaws(entries)).toEqual([]);
    expect(await fsck({ dataDirectory: data, repair: false })).toEqual([
      { conversation: 'old', findings: [] },
    ]);
  });

  it('assigns results to calls that share an id in order, newest message first (L10)', async () => {
    const asks = (...names: string[]) => ({
      role: 'assistant',
      content: null,
      tool_calls: names.map((name) => call('same', name)),
    });
    const gives = (content: string) => ({ role: 'tool', tool_call_id: 'same', content });
    await bring([
      { role: 'user', content: 'do it' },
      asks('one', 'two', 'three'),
      gives('of one'),
      asks('four', 'five'),
      ...['of four', 'of five', 'of two', 'of three', 'of none'].map(gives),
    ]);
    const entries = (await entriesOf()).filter((entry) => entry.type === 'message');
    const results = entries.flatMap(({ role, call: place, content }) => {
      const asked = place && entries[place.index]?.tool_calls?.[place.position]?.function.name;
      return role === 'tool' ? [[asked, content]] : [];
    });
    expect(results).toEqual([
      ...['one', 'four', 'five', 'two', 'three'].map((name) => [name, `of ${name}`]),
      [undefined, 'of none'],
    ]);
    const written = await exportConversation(data, 'old', 'openai');
    await bring(written, 'again');
    expect(await exportConversation(data, 'again', 'openai')).toBe(written);
    const behind = JSON.parse(written).map(({ content }: { content: string | null }) => content);
    expect(behind).toEqual(['do it', null, 'of one', 'of two', 'of three', null, 'of four', 'of five']);
  });

  it('treats each answer of an agent as given with knowledge of everything before it (V10)', async () => {
    await bring([...LEGACY.slice(0, 2), { role: 'assistant', agentId: 'pm', content: 'done' }]);
    const entries = await entriesOf();
    const knowledge = new Knowledge('pm', { includeCollapsed: false });
    knowledge.catchUp(entries);
    expect(entries.filter(({ index }) => knowledge.isUnshown(index))).toEqual([]);
  });

  it('exported, imported and exported again is the same, but for what ends the import', async () => {
    await bring(LEGACY);
    for (const format of ['openai', 'jsonl'] as const) {
      const first = await exportConversation(data, 'old', format);
      await bring(`${first}\n`, `again-${format}`);
      const again = await exportConversation(data, `again-${format}`, format);
      if (format === 'openai') expect(again).toBe(first);
      else expect(again.split('\n').slice(0, 9)).toEqual(first.split('\n').slice(0, 9));
    }
  });

  it('keeps every entry of a log except its ingress sequences', async () => {
    const log = new Log();
    log.answer('pm', log.start('pm', log.person('one')), 'two');
    Object.assign(log.entries[0] ?? {}, { ingressSequence: 5 });
    const lines = log.entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
    await bring(lines);
    const { ingressSequence: _, ...first } = log.entries[0] as Entry;
    const kept = [first, ...log.entries.slice(1)].map((entry) => ({ ...entry, copiedFrom: 'old' }));
    const end = {
      index: kept.length,
      type: 'forked',
      from: 'old',
      at: kept.length - 1,
      file: 'messages.json',
    };
    expect(await entriesOf()).toMatchObject([...kept, end]);
  });

  it('ends what is outstanding in a file, unless the operator has seen it and resumes it', async () => {
    const log = Log.begun('one');
    const file = log.entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
    const work = ['pm continues its turn'];
    expect(await bring(file)).toMatchObject({ duplicate: false, work });
    expect(await readdir(data)).not.toContain('open');
    expect((await entriesOf()).at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'aborted' });
    expect(await bring(file)).toMatchObject({ duplicate: true });
    const seen: unknown[] = [];
    const answer = (isWanted: boolean) => async (shown: readonly string[]) => {
      seen.push(shown);
      return isWanted;
    };
    await expect(bring(file, 'resumed', answer(false))).rejects.toThrow('declined');
    expect(await readdir(join(data, 'conversations'))).not.toContain('resumed');
    await bring(file, 'resumed', answer(true));
    expect(seen).toEqual([work, work]);
    expect(await readdir(join(data, 'open'))).toEqual(['resumed']);
    expect(await entriesOf('resumed')).toEqual(log.entries);
  });

  it('does nothing when the conversation exists already, and refuses to mix two conversations (L4)', async () => {
    await bring(LEGACY);
    const before = await readFile(join(data, 'conversations', 'old', 'log.jsonl'));
    expect(await bring(LEGACY)).toMatchObject({ duplicate: true });
    await expect(bring([{ role: 'user', content: 'other' }])).rejects.toMatchObject({
      code: 'CONVERSATION_EXISTS',
    });
    expect(await readFile(join(data, 'conversations', 'old', 'log.jsonl'))).toEqual(before);
  });

  const nested = `${'['.repeat(9_000)}${']'.repeat(9_000)}`;
  /** An entry of a log with these fields. */
  const line = (fields: object) => {
    const log = new Log();
    log.person('one');
    return `${JSON.stringify({ ...log.entries[0], ...fields })}\n`;
  };
  const endless = { type: 'summary', agent: 'pm', entries: [[0, 2 ** 52]], fromIndex: 0, toIndex: 9 };

  it.each<[string, string, RegExp]>([
    ['is cut short', JSON.stringify(LEGACY).slice(0, -9), /JSON/],
    ['has a message without a role', '[{"content":"x"}]', /message 0 \(from 0\): its role is missing/],
    ['holds something else', '[3]', /message 0 .*not an object/],
    [
      'has calls that are none',
      '[{"role":"assistant","tool_calls":[{"id":"a"}]}]',
      /its tool_calls are not calls/,
    ],
    ['has content that is none', '[{"role":"user","content":{}}]', /its content is neither/],
    ['has a role named like a property of all', '[{"role":"constructor"}]', /its role is "constructor"/],
    ['is nested too deep', `[{"role":"user","content":"x","z":${nested}}]`, /message 0 .*nested too deep/],
    ['has a line that is nested too deep', `{"z":${nested}}\n`, /line 1: it is nested too deep/],
    ['has a summary of more than there can be', line(endless), /entry 0: the summary names ranges/],
    ['is empty', '[]', /no message/],
    ['ends within a line', '{"index":0', /last line is cut short/],
    ['has a broken line', '{"index":0\n', /line 1: /],
    ['has a line that is no entry', '{"index":0,"type":"message"}\n', /line 1 is not an entry: id/],
    ['breaks a law', line({ index: 4 }), /line 0 has index 4/],
  ])('refuses a file that %s, names the position, and keeps a copy', async (_, content, reason) => {
    await expect(bring(content)).rejects.toMatchObject(errorWith('IMPORT_INVALID', reason));
    await bring(content).catch(() => undefined);
    const kept = await readdir(join(data, 'quarantine')); // once, however often it is tried
    expect(kept).toHaveLength(1);
    expect(await readFile(join(data, 'quarantine', kept[0] ?? ''), 'utf8')).toBe(content);
    expect(await readdir(data)).not.toContain('conversations');
  });

  it.each<[string, string, RegExp]>([
    ['an empty object', '{}', /neither an array of messages nor JSON Lines of entries/],
    ['null', 'null', /neither an array of messages nor JSON Lines of entries/],
    ['a number', '3', /neither an array of messages nor JSON Lines of entries/],
    ['an object on several lines', '{\n  "a": 1\n}\n', /neither an array of messages nor JSON Lines/],
    ['an object around the messages', '{"messages":[{"role":"user","content":"x"}]}', /its field messages/],
    [
      'a message on each line',
      '{"role":"user","content":"x"}\n{"role":"user","content":"y"}\n',
      /line 1 is not an entry: type: expected one of message, .*, got nothing/,
    ],
    [
      'an entry with a field of another type',
      line({ content: 3 }),
      /line 1 .*: content: expected a text, got 3/,
    ],
    [
      'a message whose call has no type',
      '[{"role":"assistant","tool_calls":[{"id":"a"}]}]',
      /its tool_calls are not calls: 0\.type: expected one of function, got nothing/,
    ],
  ])('refuses %s with the position and the accepted forms', async (_, content, reason) => {
    const refused = await bring(content).catch((error: unknown) => error);
    expect(refused).toMatchObject(errorWith('IMPORT_INVALID', reason, '[{"role":"user","content":"…"}, …]'));
    expect(refused).toMatchObject({ hint: expect.stringContaining('parley export --format jsonl') });
    expect((refused as Error).message).not.toMatch(/Invalid input|cut short/);
  });

  it.each<[string, string, RegExp]>([
    [
      'a number that JSON cannot write',
      '[{"role":"user","content":"x","meta":{"a":[1e999]}}]',
      /message 0 .*meta\.a\.0/,
    ],
    ['such a number in an entry', line({ meta: { a: 7 } }).replace('7', '1e999'), /line 1.*meta\.a/],
  ])('refuses %s instead of importing another value', async (_, content, reason) => {
    await expect(bring(content)).rejects.toMatchObject(errorWith('IMPORT_INVALID', reason));
  });

  it('refuses a file that is not UTF-8, and names the byte', async () => {
    const file = join(data, 'latin.json');
    await writeFile(file, Buffer.from('[{"role":"user","content":"gr\xfc\xdf"}]', 'latin1'));
    const refused = importConversation({
      dataDirectory: data,
      file,
      conversation: 'old',
      agent: 'assistant',
    });
    await expect(refused).rejects.toThrow('it is not UTF-8 at byte 29 (from 0)');
  });

  it('gives no message an id that the file gives to another one', async () => {
    await bring([
      { id: 'import-1', role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
    ]);
    expect((await entriesOf()).slice(0, 2).map(({ id }) => id)).toEqual(['import-1', 'import-1-1']);
  });

  const ask = { role: 'assistant', content: null, tool_calls: [call('same')] };
  itLong.each<[string, (at: number) => object]>([
    ['by as many people', (at) => ({ role: 'user', name: `N${at}`, content: 'words' })],
    ['with calls of one id', (at) => (at % 2 === 0 ? ask : { role: 'user', content: 'words' })],
  ])(
    'an import of many messages %s ends before the time limit',
    async (_, message) => {
      const length = size(20_000);
      const { entries } = await bring(Array.from({ length }, (__, at) => message(at)));
      expect(entries).toBeGreaterThanOrEqual(length);
    },
    60_000,
  );

  it('refuses a missing file, and a directory that a daemon uses', async () => {
    const missing = { dataDirectory: data, file: join(data, 'no'), conversation: 'old', agent: 'a' };
    await expect(importConversation(missing)).rejects.toMatchObject({ code: 'USAGE_FILE' });
    const store = await openFileStore(data);
    await expect(bring(LEGACY)).rejects.toMatchObject({ code: 'DATA_DIRECTORY_IN_USE' });
    await store.close();
  });
});

const NOTES = Buffer.from('a,b\n1,2\n').toString('base64');

describe('files of conversations that are exported and imported', () => {
  const root = folderPerTest();
  const at = (...names: string[]) => join(root, ...names);

  const bring = (file: string, data: string) =>
    importConversation({ dataDirectory: at(data), file, conversation: 'work', agent: 'pm' });
  async function bringUrls(...urls: string[]) {
    const parts = urls.map((url) => ({ type: 'file', file: { filename: 'notes.csv', file_data: url } }));
    await writeFile(
      at('messages.json'),
      JSON.stringify(parts.map((part) => ({ role: 'user', content: [part] }))),
    );
    return bring(at('messages.json'), 'data');
  }

  it('an own export is imported, whatever the names of its files say of their type', async () => {
    await bringUrls(`data:text/plain;base64,${NOTES}`, `data:image/png;base64,${PNG.toString('base64')}`);
    await exportToFile(at('data'), 'work', 'jsonl', at('work.jsonl'));
    expect(await bring(at('work.jsonl'), 'other')).toMatchObject({ duplicate: false });
    const exported = await exportConversation(at('other'), 'work', 'jsonl');
    expect(exported).toContain('"mediaType":"text/plain","name":"notes.csv"');
    expect(exported).toContain('"mediaType":"image/png"');
  });

  it.each([
    ['data:image/png;base64,%%%', 'message 1 (from 0): the base64 of its file is broken'],
    [`data:image/png;base64,${NOTES.slice(1)}%`, 'message 1 (from 0): the base64 of its file is broken'],
    ['data:image/png;base64,', 'message 1 (from 0): its file has no bytes'],
  ])('an import refuses the data URL %s with its place', async (url, why) => {
    await expect(bringUrls(`data:text/plain;base64,${NOTES}`, url)).rejects.toMatchObject(
      errorWith('IMPORT_INVALID', why),
    );
    await expect(exportConversation(at('data'), 'work', 'jsonl')).rejects.toThrow();
  });
});
