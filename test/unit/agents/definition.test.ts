import { describe, expect, it } from 'vitest';
import {
  type Definition,
  definitionAt,
  definitionOf,
  explain,
  partHashes,
  type RequestSources,
  readDefinition,
  sourcesOf,
  textsOf,
} from '../../../src/agents/index.ts';
import type { Workflow } from '../../../src/conversation/index.ts';
import { sha256Of } from '../../../src/kernel/index.ts';
import { Log, PROFILE, sourcesOf as plainSources } from './support.ts';

const TOOL = {
  name: 'mcp__web__get',
  description: 'reads a page',
  parameters: { type: 'object', properties: { url: { type: 'string' }, 7: {}, __x: {} }, required: ['url'] },
  risk: 'risky',
} as const;

/** Sources with every part that a definition contains. */
function sourcesWithAllParts(): RequestSources {
  const plain = plainSources('pm', 'dev');
  const [pm, dev] = ['pm', 'dev'].map((slug) => plain.agents.get(slug));
  if (!pm || !dev) throw new Error('no agent');
  const tools = new Map([
    [TOOL.name, TOOL],
    ['shell', { ...TOOL, name: 'shell' }],
  ]);
  const card = { ...pm.card, tools: ['mcp__web__*', 'mcp__gone__*', 'handoff'] };
  const build = {
    agent: 'pm',
    brief: 'Build.',
    tools: ['handoff'],
    outcomes: { done: 'end', again: 'build' },
    after: ['build'],
    answers: { title: 'NODE' },
    next: [{ when: { path: 'a', equals: 1 }, to: 'end' }],
  };
  const ship = { id: 'ship', start: 'build', nodes: { build }, answers: { title: 'RUN' } };
  return {
    ...plain,
    workflows: new Map([['ship', ship satisfies Required<Workflow>]]),
    tools: () => tools,
    availability: () => ({ rules: [{ match: { url: 'x' }, ruling: 'runs' }], otherwise: 'asks' }),
    agents: new Map([
      ['pm', { ...pm, card, persona: 'Persona of {{name}}, beside {{agents}}.' }],
      ['dev', dev],
    ]),
  };
}

function defined(sources: RequestSources): Definition {
  const definition = definitionOf(sources, 'pm');
  if (!definition) throw new Error('no definition');
  return definition;
}

/** Stores a definition and reads it, as another process would. */
function stored(definition: Definition, change: (texts: Map<string, string>) => void = () => undefined) {
  const texts = new Map(textsOf(definition));
  change(texts);
  return readDefinition(definition.hash, async (hash) => texts.get(hash) ?? null);
}

function logWithTurns(): Log {
  const log = new Log();
  log.answer('pm', log.start('pm', log.person('one')), 'answer one');
  log.person('two');
  return log;
}

function hashAt(log: Log, sources: RequestSources, at = 2): string {
  return reportAt(log, sources, at).requestHash;
}

function reportAt(log: Log, sources: RequestSources, at: number) {
  const outcome = explain(log.entries, { conversation: 'demo', agent: 'pm', at }, { live: sources });
  if (!outcome.ok) throw new Error(outcome.refusal.message);
  return outcome.explanation.report;
}

describe('a definition', () => {
  it('a definition gives the same bytes as its sources, also after it was stored (DEFINITION-1)', async () => {
    const sources = sourcesWithAllParts();
    const definition = defined(sources);
    const again = await stored(definition);
    expect(hashAt(logWithTurns(), sourcesOf(again))).toBe(hashAt(logWithTurns(), sources));
    expect(sourcesOf(again).workflows).toEqual(sources.workflows);
  });

  it('an edit changes the hash of one part of a definition', () => {
    const sources = sourcesWithAllParts();
    const before = partHashes(defined(sources));
    const pm = sources.agents.get('pm');
    if (!pm) throw new Error('no agent');
    const withPm = (more: object) => ({ ...sources, agents: new Map([['pm', { ...pm, ...more }]]) });
    const edits: Readonly<Record<string, RequestSources>> = {
      persona: withPm({ persona: 'Another.' }),
      'prompt.base-chat': { ...sources, prompts: { ...sources.prompts, baseChat: 'Other rules.' } },
      'prompt.tool-policy': { ...sources, prompts: { ...sources.prompts, toolPolicy: 'Other.' } },
      model: withPm({ profile: { ...pm.profile, fields: { ...pm.profile.fields, temperature: 1 } } }),
      policy: { ...sources, availability: () => ({ rules: [], otherwise: 'runs' }) },
      view: withPm({ historyLimits: { maxMessages: 5, maxChars: null } }),
      'tool.mcp__web__get': {
        ...sources,
        tools: () => new Map([[TOOL.name, { ...TOOL, description: 'reads one page' }]]),
      },
      roster: { ...sources, roster: plainSources('pm', 'dev', 'qa').roster },
    };
    for (const [part, edited] of Object.entries(edits)) {
      const after = partHashes(defined(edited));
      const changed = Object.keys({ ...before, ...after }).filter((name) => before[name] !== after[name]);
      expect(changed, part).toEqual([part]);
      expect(defined(edited).hash, part).not.toBe(defined(sources).hash);
    }
  });

  it('a definition contains only the tools that the agent may be offered, including those of the conversation', () => {
    const tools = [...sourcesOf(defined(sourcesWithAllParts())).tools().keys()];
    expect(tools).toEqual(['complete_node', 'handoff', 'mcp__web__get']);
  });

  it('a definition contains no header values (DEFINITION-3)', () => {
    const definition = defined(sourcesWithAllParts());
    expect([...textsOf(definition).values()].join()).not.toContain('s1');
    expect(JSON.parse(definition.parts.get('model') ?? '').headers).toEqual(['x-session']);
    const live = { 'x-session': 's2' };
    expect(sourcesOf(definition, () => live).agents.get('pm')?.profile.headers).toEqual(live);
  });

  it('a definition with fallbacks gives the bytes of each model that a turn asks, and has no header values', async () => {
    const sources = plainSources('pm');
    const pm = sources.agents.get('pm');
    if (!pm) throw new Error('no agent');
    const backup = {
      profile: {
        ...PROFILE,
        name: 'backup',
        fields: { model: 'other', max_tokens: 9 },
        headers: { 'x-b': 's9' },
      },
      viewPolicy: { ...pm.viewPolicy, otherAgentsAs: 'system' as const },
    };
    const withFallback = {
      ...sources,
      agents: new Map([['pm', { ...pm, fallbacks: [{ ...pm, ...backup }] }]]),
    };
    const definition = defined(withFallback);
    expect(defined(sources).parts.has('fallbacks')).toBe(false);
    expect([...textsOf(definition).values()].join()).not.toContain('s9');
    const log = new Log();
    const turnId = log.start('pm', log.person('one'));
    const author = { kind: 'agent', id: 'pm', name: 'Pm' };
    const requestHash = hashAt(log, withFallback, 1);
    const failed = { type: 'attempt-failed', turnId, agent: 'pm', author, requestHash, upTo: 2 };
    log.add({
      ...failed,
      model: 'default',
      code: 'TIMEOUT',
      message: 'x',
      duration: 1,
      next: { model: 'backup' },
    });
    log.answer('pm', turnId, 'answer one');

    const again = sourcesOf(await stored(definition));
    for (const at of [2, 3]) expect(hashAt(log, again, at)).toBe(hashAt(log, withFallback, at));
    expect([2, 3].map((at) => reportAt(log, again, at).model)).toEqual(['default', 'backup']);
    expect([2, 3].map((at) => reportAt(log, again, at).sent)).toEqual([true, 'unknown']);
    const next = log.start('pm', log.person('two'));
    expect(reportAt(log, again, log.answer('pm', next, 'answer two')).model).toBe('default');
    const headers = sourcesOf(definition, (name) => ({ 'x-live': name })).agents.get('pm')?.fallbacks?.[0]
      ?.profile.headers;
    expect(headers).toEqual({ 'x-live': 'backup' });
  });

  it('a definition of a newer version is read, and its unknown fields are kept', async () => {
    const definition = defined(sourcesWithAllParts());
    const model = JSON.stringify({ ...JSON.parse(definition.parts.get('model') ?? ''), speed: 'fast' });
    const parts = new Map([...definition.parts, ['model', model], ['mood', '"good"']]);
    const named = { format: 1, agent: 'pm', parts: partHashes({ parts }), madeBy: 'a newer version' };
    const manifest = JSON.stringify(named);
    const hash = sha256Of(manifest);
    const texts = textsOf({ ...definition, manifest, parts });
    const read = await readDefinition(hash, async (one) => texts.get(one) ?? null);
    expect(read.parts.get('mood')).toBe('"good"');
    expect(textsOf(read)).toEqual(texts);
    expect(sourcesOf(read).agents.get('pm')?.profile).toMatchObject({ speed: 'fast', name: 'default' });
  });

  it('a definition is refused with a code and a next step if a text is missing, damaged or invalid', async () => {
    const definition = defined(sourcesWithAllParts());
    const persona = sha256Of(definition.parts.get('persona') ?? '');
    const missing = { code: 'DEFINITION_MISSING', hint: expect.stringContaining('definitions/') };
    const damaged = { code: 'DEFINITION_DAMAGED', hint: expect.stringContaining('backup') };
    await expect(stored(definition, (texts) => texts.clear())).rejects.toMatchObject(missing);
    await expect(stored(definition, (texts) => texts.delete(persona))).rejects.toMatchObject(missing);
    await expect(stored(definition, (texts) => texts.set(persona, '"other"'))).rejects.toMatchObject(damaged);
    await expect(stored(definition, (texts) => texts.set(definition.hash, '{}'))).rejects.toMatchObject(
      damaged,
    );
    await expect(readDefinition('../x', async () => 'x')).rejects.toMatchObject(missing);
    const newer = JSON.stringify({ format: 2, agent: 'pm', parts: {} });
    await expect(readDefinition(sha256Of(newer), async () => newer)).rejects.toMatchObject({
      message: expect.stringContaining('format 2 is newer'),
    });
    const parts = new Map([...definition.parts, ['view', '{"viewPolicy":1}']]);
    expect(() => sourcesOf({ ...definition, parts })).toThrow(expect.objectContaining(damaged));
  });
});

describe('an explanation with a recorded definition', () => {
  it('an explanation has the recorded bytes after the agent was edited or removed', () => {
    const log = logWithTurns();
    const definition = defined(sourcesWithAllParts());
    const then = hashAt(log, sourcesWithAllParts());
    for (const live of [plainSources('pm', 'dev'), plainSources('dev')]) {
      const outcome = explain(
        log.entries,
        { conversation: 'demo', agent: 'pm', at: 2 },
        { live, recorded: definition },
      );
      if (!outcome.ok) throw new Error(outcome.refusal.message);
      const { report } = outcome.explanation;
      expect(report.requestHash).toBe(then);
      expect(report.definition).toMatchObject({ hash: definition.hash, recorded: true });
    }
  });

  it('a definition of before there were dialects is explained in chat completions', () => {
    const log = logWithTurns();
    const definition = defined(sourcesWithAllParts());
    const { form, ...model } = JSON.parse(definition.parts.get('model') ?? '');
    const { dialect: _, ...old } = form;
    const parts = new Map([...definition.parts, ['model', JSON.stringify({ ...model, form: old })]]);
    const live = plainSources('pm', 'dev');
    const outcome = explain(
      log.entries,
      { conversation: 'demo', agent: 'pm', at: 2 },
      { live, recorded: { ...definition, parts } },
    );
    if (!outcome.ok) throw new Error(outcome.refusal.message);
    expect(outcome.explanation.report.requestHash).toBe(hashAt(log, sourcesWithAllParts()));
  });

  it('an explanation contains the texts of the requested parts, and no value of a header (DEFINITION-3)', () => {
    const definition = defined(sourcesWithAllParts());
    const reportedFor = (texts?: string[]) => {
      const outcome = explain(
        logWithTurns().entries,
        { conversation: 'demo', agent: 'pm', at: 2, texts },
        { live: plainSources('dev'), recorded: definition },
      );
      if (!outcome.ok) throw new Error(outcome.refusal.message);
      return outcome.explanation.report.definition;
    };
    expect(reportedFor()).not.toHaveProperty('texts');
    const { texts = {} } = reportedFor(['persona', 'model', 'tool.mcp__web__get', 'tool.none']);
    expect(Object.keys(texts).sort()).toEqual(['model', 'persona', 'tool.mcp__web__get']);
    expect(JSON.parse(texts.persona ?? '')).toBe('Persona of {{name}}, beside {{agents}}.');
    expect(JSON.parse(texts.model ?? '').headers).toEqual(['x-session']);
    expect(JSON.stringify(reportedFor([...definition.parts.keys()]))).not.toContain('s1');
  });

  it('an explanation uses the newest start of the turn of the answer, and the current definition for the next request', () => {
    const log = logWithTurns();
    const started = log.entries[1];
    if (started?.type !== 'turn-started') throw new Error('no start');
    expect(definitionAt(log.entries, 'pm', 2)).toBeNull();
    started.definition = 'd1';
    expect(definitionAt(log.entries, 'pm', 2)).toBe('d1');
    expect(definitionAt(log.entries, 'pm', 1)).toBe('d1');
    expect(definitionAt(log.entries, 'pm', 0)).toBeNull();
    expect(definitionAt(log.entries, 'pm', undefined)).toBeNull();
    expect(definitionAt(log.entries, 'dev', 2)).toBeNull();
    log.start('pm', 3);
    const resumed = { ...started, ...log.entries.at(-1), definition: 'd2' } as typeof started;
    log.entries.splice(-1, 1, resumed, { ...resumed, index: resumed.index + 1, definition: 'd3' });
    expect(definitionAt(log.entries, 'pm', undefined)).toBe('d3');
  });
});
