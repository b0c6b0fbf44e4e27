import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  type AgentSetup,
  type Assembled,
  RequestAssembler,
  type RequestSources,
  sealed,
  type WireTool,
} from '../../../src/agents/index.ts';
import { PRESET_NAMES } from '../../../src/config/schema/profiles.ts';
import { AgentView, type Blocks, type Entry, partsOf as partsWith } from '../../../src/conversation/index.ts';
import { requestSources } from '../../../src/daemon/team/team.ts';
import { expectEqual } from '../../support/expect-equal.ts';
import { signatureOf } from '../../support/messages-rules.ts';
import { DIALECT_RULES, refusalsOf } from '../../support/provider-rules.ts';
import { hasLongTests, runs } from '../../support/runs.ts';
import { contentsOf, FILE_TYPES, filesIn, hashOf, sampleFile } from '../../support/sample-files.ts';
import { load } from '../config/folder.ts';
import type { TeamCore } from '../conversation/team-core.ts';
import { applyStep, teamOf, teamSizes, teamSteps } from '../conversation/team-life.ts';
import { partsOf } from './support.ts';

// The number of runs bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

const TOOL: WireTool = {
  type: 'function',
  function: { name: 'look', description: 'looks', parameters: { type: 'object', properties: {} } },
};
const RUN_CONTEXT = [
  { role: 'user', content: 'RUN_DIRECTIVE go' },
  { role: 'user', content: 'NODE_BRIEF build it' },
] as const;

/** The models of the other dialects. */
const OF_DIALECTS = {
  anthropic: 'provider: anthropic, apiKey: k, reasoningEffort: high',
  budget: 'provider: anthropic, apiKey: k, reasoningTokens: 2000',
  responses: 'provider: responses, apiKey: k, reasoningEffort: high',
};

/** An agent for each preset and dialect, configured as the daemon does it. */
async function setups(): Promise<RequestSources['agents']> {
  const keys = [
    ...PRESET_NAMES.map((name) => [name, `profile: ${name}`]),
    ...Object.entries(OF_DIALECTS).map(([name, more]) => [name, more]),
  ];
  const models = keys.map(([name, more], at) => {
    const accepts = at % 3 === 2 ? '' : 'accepts: [image, pdf, audio], ';
    return `  ${name}: { ${more}, ${accepts}baseURL: "http://h/v1", model: ${name} }\n`;
  });
  const agents = keys.map(([name]) => [`agents/of-${name}.md`, `---\nmodel: ${name}\n---\nWork.\n`]);
  const files = {
    'parley.yaml': `models:\n${models.join('')}defaultAgent: of-openai\n`,
    ...Object.fromEntries(agents),
  };
  return requestSources(await load(files), { definitions: () => new Map() }).agents;
}

/** The requests of one agent to one provider while the log grows; the assembler keeps its bytes. */
class IncrementalRequests {
  private readonly setup: AgentSetup;
  private readonly agent: string;
  private readonly entries: readonly Entry[];
  private readonly view: AgentView;
  private readonly assembler = new RequestAssembler();
  private settled = { version: -1, text: '' };

  constructor(setup: AgentSetup, agent: string, entries: readonly Entry[]) {
    this.setup = setup;
    this.agent = agent;
    this.entries = entries;
    this.view = new AgentView(entries, agent, setup.viewPolicy);
  }

  request(more: Partial<Parameters<RequestAssembler['assemble']>[0]>) {
    const { profile, viewPolicy } = this.setup;
    const parts = partsOf([], { agent: this.agent, profile, view: this.view.build(), ...more });
    const kept = sealed(this.assembler.draft(parts), CONTENTS);
    this.checkPrefix(kept, parts.view.historyVersion);
    const view = new AgentView(this.entries, this.agent, viewPolicy).build();
    const fresh = sealed(new RequestAssembler().draft({ ...parts, view }), CONTENTS);
    return { kept, fresh };
  }

  /** DIALECT-2: what was settled begins every later request, until a reduction words the history anew. */
  private checkPrefix({ request: { body }, parts }: Assembled, version: number): void {
    const { settled } = this;
    const open = parts.filter(({ text }) => text !== '').flatMap(({ message }) => message.files ?? []);
    if (settled.version === version) expect(textOf(body).slice(0, settled.text.length)).toBe(settled.text);
    // Each file of the rest is a piece, and divides a text into two.
    this.settled = { version, text: textOf(body.slice(0, -1 - 2 * open.length)) };
  }
}

/** Without the cache points of the Messages API, which move. */
function textOf(body: readonly Uint8Array[]): string {
  return Buffer.concat(body)
    .toString('utf8')
    .replaceAll(/,"cache_control":\{[^}]*\}/g, '');
}

/** The team's log as it grows, with reasoning in most answers; it restarts when a crash loses entries. */
class ObservedLog {
  entries: Entry[] = [];
  private kept = new Map<string, IncrementalRequests>();

  follow(log: readonly Entry[]): void {
    const last = this.entries.at(-1);
    if (last && log[last.index]?.id !== last.id) {
      this.entries = [];
      this.kept = new Map();
    }
    for (const entry of log.slice(this.entries.length)) this.entries.push(withFiles(asModelsWrite(entry)));
  }

  of(preset: string, setup: AgentSetup, agent: string): IncrementalRequests {
    const key = `${preset} ${agent}`;
    const found = this.kept.get(key) ?? new IncrementalRequests(setup, agent, this.entries);
    this.kept.set(key, found);
    return found;
  }
}

const ODD_ARGUMENTS = ['', '[]', '"x"', '7', 'null', '{', '{"a":1e999}', '{"a":"\\ud83d"}', '{"\ud83d":0}'];
ODD_ARGUMENTS.push(`{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`);
const ODD_NAMES = ['', '2fa', 'a b', '-', 'é'.repeat(70), 'x'.repeat(200), '\ud83d'];

/** The model changes with each answer. */
const WRITERS = ['chat h gemini', 'chat h another', 'anthropic h anthropic', 'anthropic h budget'];
WRITERS.push('responses h responses', 'responses h another');
const writerOf = (index: number) => WRITERS[index % WRITERS.length] ?? '';

/** What only the writer of an entry understands. */
function blocksBy(index: number, calls: number, reasoning: string): Blocks {
  const boundTo = writerOf(index);
  const signature = (at: number) => ({
    extra_content: { google: { thought_signature: `sig-${index}-${at}` } },
  });
  const isChat = boundTo.startsWith('chat');
  const opaque = isChat ? signature(-1) : { type: 'redacted_thinking', data: `opaque-${index}-` };
  const thought = { length: reasoning.length, opaque: { signature: signatureOf(reasoning) } };
  return {
    boundTo,
    list: [
      { type: 'opaque', opaque },
      ...(isChat ? [] : [{ type: 'reasoning' as const, ...thought }]),
      ...Array.from({ length: calls }, (_, at) => ({
        type: 'call' as const,
        ...(at === 0 && isChat && { opaque: signature(at) }),
      })),
    ],
  };
}

/** Items of the Responses API: each names the reasoning that led to it, which names its model. */
function itemsBy({ index, content }: Message, calls: number, reasoning: string): Blocks {
  const boundTo = writerOf(index);
  const led = (prefix: string, at = 0) => ({ opaque: { id: `${prefix}_${index}_${at}__rs_${index}` } });
  const encrypted_content = `enc:${boundTo.split(' ').at(-1)}:rs_${index}`;
  const cut = { id: `rs_${index}_cut`, encrypted_content: `${encrypted_content}_cut` };
  const pieces = reasoning === '' ? {} : { pieces: [['summary_text', reasoning.length]] };
  const opaque = { type: 'compaction', id: `cmp_${index}`, encrypted_content: `opaque-${index}-` };
  return {
    boundTo,
    list: [
      { type: 'opaque', opaque },
      {
        ...{ type: 'reasoning', length: reasoning.length },
        opaque: { id: `rs_${index}`, encrypted_content, ...pieces },
      },
      ...(content ? [{ type: 'text' as const, length: content.length, ...led('msg') }] : []),
      ...Array.from({ length: calls }, (_, at) => ({ type: 'call' as const, ...led('fc', at) })),
      // It was cut here: the provider refuses reasoning at the end.
      ...(index % 12 === 4 ? [{ type: 'reasoning' as const, length: 0, opaque: cut }] : []),
    ],
  };
}

type Message = Extract<Entry, { type: 'message' }>;

const SAMPLES = FILE_TYPES.map((type, n) => sampleFile(type, n));
const CONTENTS = contentsOf(...SAMPLES);

/** The same entry with files in some messages of people and some results. */
function withFiles(entry: Entry): Entry {
  if (entry.type !== 'message' || entry.role === 'assistant' || entry.index % 3 > 0) return entry;
  const files = SAMPLES.slice(entry.index % 7, (entry.index % 7) + 1 + (entry.index % 4));
  return {
    ...entry,
    parts: partsWith(
      entry.content ?? '',
      files.map(({ part }) => part),
    ),
  };
}

/** The same entry with reasoning, with calls that strict readers refuse, and with what only Gemini understands. */
function asModelsWrite(entry: Entry): Entry {
  if (entry.type !== 'message' || entry.role !== 'assistant') return entry;
  const calls = entry.tool_calls ?? [];
  const writer = writerOf(entry.index);
  const isSigned = writer.startsWith('anthropic');
  const reasoning = `because of ${entry.index} \ud83d`.slice(0, isSigned ? -1 : undefined);
  const given = entry.index % 4 === 0 ? '' : reasoning;
  const blocks = writer.startsWith('responses')
    ? itemsBy(entry, calls.length, given)
    : blocksBy(entry.index, calls.length, given);
  if (given === '') return { ...entry, blocks };
  const odd = <T>(list: readonly T[], at: number) => list[(entry.index + at) % list.length];
  const oddCalls = calls.map((call, at) => ({
    ...call,
    function: {
      name: odd([call.function.name, ...ODD_NAMES], at) ?? '',
      arguments: odd([call.function.arguments, ...ODD_ARGUMENTS], at) ?? '',
    },
  }));
  return { ...entry, blocks, reasoning, ...(calls.length > 0 && { tool_calls: oddCalls }) };
}

type Content = string | null | readonly { readonly type: string; readonly text?: string }[];

/** A message of a body as people read it. */
function withText({
  content,
  files: _,
  ...message
}: {
  readonly content: Content;
  readonly files?: unknown;
}) {
  const text = (list: Exclude<Content, string | null>) => list.map((one) => one.text ?? '').join('');
  return { ...message, content: typeof content === 'string' || content === null ? content : text(content) };
}

function checkRequests(
  core: TeamCore,
  watched: ObservedLog,
  agents: RequestSources['agents'],
  reached: Set<string>,
): void {
  watched.follow(core.entries);
  for (const { agent } of core.calls) {
    for (const [slug, setup] of agents) {
      const preset = slug.slice('of-'.length);
      const more = agent === 'pm' ? { tools: [TOOL] } : { runContext: RUN_CONTEXT };
      const { kept, fresh } = watched.of(preset, setup, agent).request(more);
      const text = Buffer.concat(kept.request.body).toString('utf8');
      const body = JSON.parse(text);
      const known = PRESET_NAMES.find((name) => name === preset);
      expectEqual([preset, kept.fault], [preset, null]);
      if (known) {
        expectEqual([preset, refusalsOf(known, body)], [preset, []]);
        expectEqual(body.messages.map(withText), kept.request.messages.map(withText));
        expectEqual(kept.parts.length, body.messages.length);
      } else expectEqual([preset, DIALECT_RULES[setup.profile.form.dialect]?.(body)], [preset, []]);
      for (const [found, index] of text.matchAll(/(?:opaque-|sig-|enc:\w+:rs_)(\d+)/g)) {
        expectEqual([found, writerOf(Number(index))], [found, setup.profile.form.boundTo]);
        reached.add(found.replace(/\W.*/, ''));
      }
      const shown = kept.request.messages.flatMap(({ files = [] }) => files.map(({ sha256 }) => sha256));
      const { files } = filesIn(body);
      expectEqual(
        files.map(({ data }) => hashOf(data)),
        shown,
      );
      for (const { mediaType } of files) reached.add(mediaType);
      if (text.includes('; not shown: ')) reached.add('not shown');
      expectEqual(text, Buffer.concat(fresh.request.body).toString('utf8'));
      expectEqual([kept.request.hash, kept.tokens], [fresh.request.hash, fresh.tokens]);
      for (const part of kept.parts) for (const kind of part.kind.split('+')) reached.add(kind);
      for (const message of kept.request.messages) if (message.tool_calls) reached.add('calls');
    }
  }
}

/** Its first eight conversations already have every kind. */
const SEED_OF_EVERY_KIND = 8;

describe('requests of any conversation', () => {
  it('requests of any conversation match the rules of each provider preset and dialect, built incrementally or at once (ASSEMBLE-2, ASSEMBLE-3, DIALECT-1 to DIALECT-3)', async () => {
    const agents = await setups();
    const reached = new Set<string>();
    const property = fc.property(teamSizes, teamSteps, (sizes, steps) => {
      const core = teamOf(sizes, false);
      if (steps.length % 2 === 0) core.window = 200 + 10 * (steps.length % 20);
      const watched = new ObservedLog();
      for (const step of steps) {
        applyStep(core, step);
        checkRequests(core, watched, agents, reached);
      }
    });
    fc.assert(property, { numRuns: runs(5) });
    fc.assert(property, { numRuns: hasLongTests ? 20 : 8, seed: SEED_OF_EVERY_KIND }); // a random sample may miss one
    const wanted = [
      'prefix',
      'run-context',
      'history',
      'away-block',
      'marker',
      'trigger',
      'turn',
      'bridge',
      'calls',
      'summary',
      'opaque',
      'sig',
      'enc',
      'not shown',
      ...['image/png', 'application/pdf', 'audio/wav'],
    ];
    expect(wanted.filter((kind) => !reached.has(kind))).toEqual([]);
  });
});
