import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  definitionOf,
  type RequestSources,
  type ToolDefinition,
  textsOf,
} from '../../../src/agents/index.ts';
import { Conversation, DEFAULT_VIEW_POLICY, type Entry } from '../../../src/conversation/index.ts';
import { explainRequest } from '../../../src/daemon/api/api.ts';
import { exportConversation, fsck, importConversation } from '../../../src/daemon/index.ts';
import { migrateStore } from '../../../src/daemon/offline/migrate.ts';
import { Definitions } from '../../../src/daemon/team/definitions.ts';
import { sha256Of } from '../../../src/kernel/index.ts';
import type { DefinitionTexts } from '../../../src/persistence/index.ts';
import { openFileSource, openFileStore, openFileTarget } from '../../../src/persistence/jsonl/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { Log, sourcesOf } from '../agents/support.ts';

const tool = (name: string): ToolDefinition => ({ name, description: name, parameters: {}, risk: 'safe' });

/** Texts in memory that count their puts, and fail when told so. */
function countedTexts() {
  const kept = new Map<string, string>();
  const counted = { puts: 0, fails: false, kept };
  const texts: DefinitionTexts = {
    async put(more) {
      counted.puts += 1;
      if (counted.fails) throw new Error('the disk is full');
      for (const [hash, text] of more) kept.set(hash, text);
    },
    get: async (hash) => kept.get(hash) ?? null,
  };
  return { texts, counted };
}

const teamOf = (sources: RequestSources) => ({ sources, agents: new Map() });

function startOf(agent = 'pm'): Entry & { type: 'turn-started' } {
  const log = new Log();
  log.start(agent, log.person('one', [agent]));
  const [, started] = log.entries;
  if (started?.type !== 'turn-started') throw new Error('no start');
  return started;
}

describe('the definitions of a daemon', () => {
  it('a turn names the definition of its agent, which is stored once in the life of the process (DEFINITIONS-1)', async () => {
    const { texts, counted } = countedTexts();
    const definitions = new Definitions(texts);
    const [first, second] = [startOf(), startOf()];
    const team = teamOf(sourcesOf('pm', 'dev'));
    definitions.name([first, second], team);
    expect(first.definition).toBe(definitions.current('pm', team)?.hash);
    await Promise.all([definitions.store([first]), definitions.store([second])]);
    await definitions.store([first]);
    expect(counted.puts).toBe(1);
    expect(counted.kept.has(first.definition ?? '')).toBe(true);
  });

  it('a view contains the requested texts of the definition as far as they fit in the answer', async () => {
    const log = new Log();
    const known = { sources: sourcesOf('pm'), definitions: new Definitions(countedTexts().texts) };
    log.answer('pm', log.start('pm', log.person('one')), 'answer one');
    const answerOf = async (room: number) => {
      const request = { conversation: 'demo', agent: 'pm', at: 2, texts: ['agent', 'persona', 'none'] };
      const explained = await explainRequest(log.entries, request, known, room);
      if (!explained.ok) throw new Error(explained.refusal.message);
      return explained.explanation;
    };
    const whole = await answerOf(1_000_000);
    expect(Object.keys(whole.report.definition.texts ?? {})).toEqual(['agent', 'persona']);
    const size = JSON.stringify(whole).length;
    const cut = await answerOf(size - 100);
    expect(Object.keys(cut.report.definition.texts ?? {})).toEqual(['persona']);
    expect(JSON.stringify(cut).length).toBeLessThan(size - 100);
    expect((await answerOf(1)).report.definition.texts).toEqual({});
  });

  it('a failed put is an error for the append, and is tried again', async () => {
    const { texts, counted } = countedTexts();
    const definitions = new Definitions(texts);
    const started = startOf();
    definitions.name([started], teamOf(sourcesOf('pm')));
    counted.fails = true;
    await expect(definitions.store([started])).rejects.toThrow('the disk is full');
    counted.fails = false;
    await definitions.store([started]);
    expect(counted.kept.has(started.definition ?? '')).toBe(true);
  });

  it('a turn of an unknown agent names none', () => {
    const started = startOf('gone');
    new Definitions(countedTexts().texts).name([started], teamOf(sourcesOf('pm')));
    expect(started.definition).toBeUndefined();
  });

  it('is computed again only when the tools change, and a running turn keeps its own', () => {
    const live = sourcesOf('pm');
    let tools: ReadonlyMap<string, ToolDefinition> = new Map();
    const pm = live.agents.get('pm');
    if (!pm) throw new Error('no agent');
    const card = { ...pm.card, tools: ['look'] };
    const sources = { ...live, tools: () => tools, agents: new Map([['pm', { ...pm, card }]]) };
    const definitions = new Definitions(countedTexts().texts);
    const team = teamOf(sources);
    const log = new Log();
    const turnId = log.start('pm', log.person('one'));
    definitions.name(log.entries, team);
    const conversation = new Conversation({ viewPolicy: () => DEFAULT_VIEW_POLICY } as never, log.entries);
    const before = definitions.current('pm', team);
    expect(definitions.current('pm', team)).toBe(before);
    tools = new Map([['look', tool('look')]]);
    expect(definitions.current('pm', team)?.parts.has('tool.look')).toBe(true);
    expect(before?.parts.has('tool.look')).toBe(false);
    const offered = () =>
      definitions.requestsOf('demo', () => team).draft(conversation, 'pm', turnId)?.draft.request.tools
        .length;
    expect(offered()).toBe(0); // DEFINITIONS-2
    definitions.name(log.entries, team);
    expect(offered()).toBe(1);
  });
});

describe('definitions beside logs', () => {
  const root = folderPerTest();
  const at = (name: string) => join(root, name);
  const definition = definitionOf(sourcesOf('pm'), 'pm');
  if (!definition) throw new Error('no definition');

  beforeEach(async () => {
    const store = await openFileStore(at('data'));
    await store.definitions.put(textsOf(definition));
    const log = new Log();
    log.answer('pm', log.start('pm', log.person('one')), 'two');
    const entries = log.entries.map((entry) => {
      if (entry.type === 'turn-started') return { ...entry, definition: definition.hash };
      return entry.type === 'message' && entry.role === 'assistant'
        ? { ...entry, requestHash: 'f'.repeat(64) }
        : entry;
    });
    const opened = await store.open('demo');
    await opened.log.append(0, entries);
    await opened.log.close();
    await store.initialiseMarks();
    await store.close();
  });

  const findings = async (views: boolean, dataDirectory = at('data')) =>
    (await fsck({ dataDirectory, repair: false, views })).flatMap((report) => report.findings);

  it('fsck --views names the answer whose recorded hash is not that of its request', async () => {
    expect(await findings(false)).toEqual([]);
    expect(await findings(true)).toMatchObject([{ kind: 'view', index: 2, repair: null }]);
  });

  it('a link in place of a text is not followed', async () => {
    const path = join(at('data'), 'definitions', definition.hash);
    await writeFile(at('other'), definition.manifest);
    await rm(path);
    await symlink(at('other'), path);
    expect(await findings(false)).toMatchObject([
      { kind: 'definition', index: 1, text: expect.stringContaining('is a link') },
    ]);
    const store = await openFileStore(at('data'));
    await store.definitions.put(textsOf(definition));
    await store.close();
    expect(await findings(false)).toEqual([]);
  });

  it('an export whose text was changed is refused as a whole, and names the line', async () => {
    const exported = await exportConversation(at('data'), 'demo', 'jsonl');
    const lines = exported.split('\n');
    expect(lines.filter((line) => line.startsWith('{"type":"definition"'))).toHaveLength(
      textsOf(definition).size,
    );
    await writeFile(at('changed.jsonl'), `${exported.replaceAll('Tool policy.', 'Another one.')}\n`);
    const bring = (file: string) =>
      importConversation({ dataDirectory: at('new'), file, conversation: 'demo', agent: 'pm' });
    await mkdir(at('new'));
    await expect(bring(at('changed.jsonl'))).rejects.toMatchObject(
      errorWith('IMPORT_INVALID', /line \d+: its text does not have its hash/),
    );
    await writeFile(at('same.jsonl'), `${exported}\n`);
    await bring(at('same.jsonl'));
    expect(await findings(false, at('new'))).toEqual([]);
  });

  it('a move of all conversations moves them, and a damaged one ends it', async () => {
    const stored = async (directory: string) => (await readdir(join(directory, 'definitions'))).sort();
    const move = async () => {
      const source = await openFileSource(at('data'));
      const target = await openFileTarget(at('to'));
      try {
        await migrateStore(source.archive, target);
      } finally {
        await target.store.close();
        await source.close();
      }
    };
    const damaged = join(at('data'), 'definitions', sha256Of('"x"'));
    await writeFile(damaged, '"y"');
    await expect(move()).rejects.toMatchObject({ code: 'MIGRATION_SOURCE_DAMAGED' });
    await rm(damaged);
    await move();
    expect(await stored(at('to'))).toEqual(await stored(at('data')));
    expect(await findings(false, at('to'))).toEqual([]);
  });
});
