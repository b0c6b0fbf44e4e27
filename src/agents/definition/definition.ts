import { z } from 'zod';
import {
  type AgentCard,
  argumentsSchema,
  CONVERSATION_TOOLS,
  expandTools,
  isConversationTool,
  type ViewPolicy,
  type Workflow,
} from '../../conversation/index.ts';
import { messageOf, ParleyError, sha256Of } from '../../kernel/index.ts';
import { DIALECTS } from '../../models/dialects.ts';
import type { WireForm } from '../dialect-port.ts';
import type { ModelProfile } from '../requests/assemble.ts';
import type { ToolAvailability } from '../requests/prompt.ts';
import type { HistoryLimits } from '../requests/reduce.ts';
import type { AgentSetup, RequestSources } from '../requests/requests.ts';
import type { ToolDefinition } from '../tool-port.ts';

/**
 * The definition of an agent: everything besides the log that its requests depend on, as texts that are stored.
 *
 * DEFINITION-1 A request is a function of log and definition: `sourcesOf(definitionOf(sources, agent))` gives the same
 *              bytes as `sources`.
 * DEFINITION-2 Each part is one JSON text, named by its SHA-256. The manifest names the parts, and its hash names the
 *              definition. Object keys keep their order, since it is part of the bytes of a request.
 * DEFINITION-3 A definition contains no secret: no API key, and only the names of headers.
 */

/** One definition in memory. */
export interface Definition {
  /** SHA-256 (hex) of the manifest. */
  readonly hash: string;
  readonly agent: string;
  readonly manifest: string;
  /** The JSON text of each part, by its name: `persona`, `tool.read_file`. */
  readonly parts: ReadonlyMap<string, string>;
}

const HASH = /^[0-9a-f]{64}$/;

const manifestSchema = z.looseObject({
  format: z.literal(1),
  agent: z.string(),
  /** The hash of each part, by its name. */
  parts: z.record(z.string(), z.string().regex(HASH)),
});

/** Null: the sources have no such agent. */
export function definitionOf(sources: RequestSources, slug: string): Definition | null {
  const setup = sources.agents.get(slug);
  if (!setup) return null;
  const parts = new Map<string, string>();
  for (const [name, value] of partsOf(sources, setup)) parts.set(name, JSON.stringify(value));
  const manifest = JSON.stringify({ format: 1, agent: slug, parts: partHashes({ parts }) });
  return { hash: sha256Of(manifest), agent: slug, manifest, parts };
}

function partsOf(sources: RequestSources, setup: AgentSetup): [name: string, value: unknown][] {
  const { answers, card, persona, profile, viewPolicy, historyLimits } = setup;
  const { prompts, roster, workflows } = sources;
  const fallbacks = setup.fallbacks?.map(({ profile, viewPolicy }) => ({
    model: storedModel(profile),
    view: viewPolicy,
  }));
  const tools = toolsOffered(sources, card);
  const policy = tools
    .filter(({ name }) => !isConversationTool(name))
    .map((tool) => [tool.name, sources.availability(card.slug, tool)]);
  return [
    ['agent', plainCard(card)],
    ['model', storedModel(profile)],
    ...(fallbacks?.length ? [['fallbacks', fallbacks] as [string, unknown]] : []),
    ['persona', persona],
    ...(answers ? [['answers', answers] as [string, unknown]] : []),
    ['policy', Object.fromEntries(policy)],
    ['prompt.base-chat', prompts.baseChat],
    ['prompt.base-run', prompts.baseRun],
    ['prompt.tool-policy', prompts.toolPolicy],
    [
      'roster',
      [...roster.agents.values()].map(({ slug, name, description }) => ({ slug, name, description })),
    ],
    ...tools.map((tool): [string, unknown] => [`tool.${tool.name}`, tool]),
    ['view', { viewPolicy, historyLimits }],
    ...[...workflows.values()].map(({ id, start, nodes, answers }): [string, unknown] => [
      `workflow.${id}`,
      { id, start, nodes, ...(answers && { answers }) },
    ]),
  ];
}

/** DEFINITION-3 */
function storedModel({ headers, ...model }: ModelProfile) {
  return { ...model, headers: Object.keys(headers) };
}

/** The configuration keeps more in a card than requests depend on. */
function plainCard({
  slug,
  name,
  description,
  phases,
  modes,
  runtime,
  tools,
  clientTools,
}: AgentCard): AgentCard {
  const own = clientTools === false ? { clientTools } : {};
  return { slug, name, description, phases, modes, runtime, tools, ...own };
}

/** In name order. A node offers a part of the agent's own tools, and `complete_node`. */
function toolsOffered({ tools, workflows }: RequestSources, card: AgentCard): ToolDefinition[] {
  const definitions = tools();
  const own = expandTools(card.tools, definitions.keys());
  const names = new Set(workflows.size > 0 ? [...own, 'complete_node'] : own);
  return [...names].sort().flatMap((name) => {
    if (!isConversationTool(name)) return definitions.get(name) ?? [];
    const { description } = CONVERSATION_TOOLS[name];
    return { name, description, parameters: argumentsSchema(name), risk: 'safe' };
  });
}

/**
 * `headersOf`: the values of the headers of a model, which no definition has; needed to send a request, not to explain it.
 * Throws `DEFINITION_DAMAGED` if the parts do not make a definition.
 */
export function sourcesOf(
  { hash, agent, parts }: Definition,
  headersOf?: (model: string) => ModelProfile['headers'] | undefined,
): RequestSources {
  const read = <T>(name: string, schema: z.ZodType<T>): T =>
    readText(hash, `part ${name}`, parts.get(name), schema);
  const all = <T>(prefix: string, schema: z.ZodType<T>): T[] =>
    [...parts.keys()].filter((name) => name.startsWith(prefix)).map((name) => read(name, schema));
  const card: AgentCard = read('agent', agentSchema);
  const profileOf = ({ headers: names, ...model }: StoredModel): ModelProfile => ({
    ...model,
    form: { ...model.form, dialect: model.form.dialect ?? 'chat' },
    headers: headersOf?.(model.name) ?? Object.fromEntries(names.map((name) => [name, ''])),
  });
  const roster = read('roster', partSchemas.roster).map((one) => ({ ...UNKNOWN_CARD, ...one }));
  const tools = new Map(all('tool.', partSchemas.tool).map((tool) => [tool.name, tool]));
  const policy = new Map(Object.entries(read('policy', partSchemas.policy)));
  const own: AgentSetup = {
    card,
    persona: read('persona', z.string()),
    ...(parts.has('answers') ? { answers: read('answers', anyRecord) } : {}),
    profile: profileOf(read('model', modelSchema)),
    ...read('view', viewSchema),
  };
  const fallbacks = parts.has('fallbacks') ? read('fallbacks', fallbacksSchema) : [];
  const setup: AgentSetup = {
    ...own,
    fallbacks: fallbacks.map(({ model, view }) => ({ ...own, profile: profileOf(model), viewPolicy: view })),
  };
  return {
    roster: { agents: new Map(roster.map((one) => [one.slug, one])), defaultAgent: agent },
    prompts: {
      baseChat: read('prompt.base-chat', z.string()),
      baseRun: read('prompt.base-run', z.string()),
      toolPolicy: read('prompt.tool-policy', z.string()),
    },
    workflows: new Map(all('workflow.', partSchemas.workflow).map((one) => [one.id, one])),
    tools: () => tools,
    availability: (_agent, { name }) => policy.get(name) ?? FORBIDDEN,
    agents: new Map([[agent, setup]]),
  };
}

const FORBIDDEN: ToolAvailability = { rules: [], otherwise: 'forbidden' };
/** Requests show the slug, name and description of the other agents. */
const UNKNOWN_CARD = { phases: [], modes: [], runtime: 'local', tools: [] } as const;

/** The value as it was parsed: a schema's own output would have its keys in another order (DEFINITION-2). */
function readText<T>(hash: string, what: string, text: string | undefined, schema: z.ZodType<T>): T {
  if (text === undefined) throw damaged(hash, `it has no ${what}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw damaged(hash, `its ${what} is not JSON: ${messageOf(cause)}`, cause);
  }
  const { error } = schema.safeParse(value);
  if (!error) return value as T;
  const { format } = Object(value) as { readonly format?: unknown };
  if (typeof format === 'number' && format > 1)
    throw damaged(hash, `its format ${format} is newer than this version of Parley`);
  const [issue] = error.issues;
  throw damaged(hash, `its ${what} is not valid: ${issue?.path.join('.')}: ${issue?.message}`);
}

/** The texts to store, by hash: the parts and the manifest. */
export function textsOf({ manifest, parts }: Definition): ReadonlyMap<string, string> {
  return new Map([...parts.values(), manifest].map((text) => [sha256Of(text), text]));
}

/** The hash of each part, by its name, in name order. */
export function partHashes({ parts }: Pick<Definition, 'parts'>): Readonly<Record<string, string>> {
  const sorted = [...parts].sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(sorted.map(([name, text]) => [name, sha256Of(text)]));
}

/**
 * Reads a stored definition; `get` returns the text of a hash, or null. Throws `DEFINITION_MISSING` if a text is not
 * stored, and `DEFINITION_DAMAGED` if one is not what its hash says.
 */
export async function readDefinition(
  hash: string,
  get: (hash: string) => Promise<string | null>,
): Promise<Definition> {
  const manifest = await storedText(hash, hash, get);
  const { agent, parts: named } = readText(hash, 'manifest', manifest, manifestSchema);
  const names = Object.entries(named);
  const texts = await Promise.all(names.map(([, part]) => storedText(hash, part, get)));
  const parts = new Map(names.map(([name], at) => [name, texts[at] ?? '']));
  return { hash, agent, manifest, parts };
}

async function storedText(
  definition: string,
  hash: string,
  get: (hash: string) => Promise<string | null>,
): Promise<string> {
  const text = HASH.test(hash) ? await get(hash) : null;
  if (text === null) {
    const which = definition === hash ? '' : `: its part ${hash} is missing`;
    throw new ParleyError('DEFINITION_MISSING', `the definition ${definition} is not stored here${which}`, {
      hint: 'copy definitions/ from the data directory or backup that the log came from',
    });
  }
  if (sha256Of(text) !== hash) throw damaged(definition, `the text ${hash} has another hash`);
  return text;
}

function damaged(hash: string, why: string, cause?: unknown): ParleyError {
  return new ParleyError('DEFINITION_DAMAGED', `the definition ${hash} cannot be read: ${why}`, {
    hint: 'restore definitions/ from a backup; the log itself is intact',
    cause,
  });
}

const texts = z.array(z.string());
const anyRecord = z.record(z.string(), z.unknown());
const count = z.number().nonnegative();

const agentSchema = z.looseObject({
  slug: z.string(),
  name: z.string(),
  description: z.string(),
  phases: texts,
  modes: texts,
  runtime: z.enum(['local', 'bus', 'acp']),
  tools: texts,
}) as unknown as z.ZodType<AgentCard>;

/** `headers`: their names only. */
const modelSchema = z.looseObject({
  name: z.string(),
  contextTokens: count,
  maxOutputTokens: count,
  fields: anyRecord,
  headers: texts,
  session: z
    .looseObject({
      kind: z.enum(['header', 'field']),
      name: z.string(),
      by: z.enum(['agent', 'daemon']),
    })
    .nullable(),
  price: anyRecord.nullable(),
  /** `dialect`: absent before there were several. */
  form: z.looseObject({
    dialect: z.enum(Object.keys(DIALECTS)).optional(),
    instructionsAs: z.string(),
    sendReasoning: z.string(),
    callIds: z.string(),
  }),
  toolFields: anyRecord,
  strictTools: z.boolean(),
}) as unknown as z.ZodType<StoredModel>;

type StoredModel = Omit<ModelProfile, 'headers' | 'form'> & {
  readonly headers: readonly string[];
  readonly form: Omit<WireForm, 'dialect'> & Partial<Pick<WireForm, 'dialect'>>;
};

const fallbacksSchema = z.array(
  z.looseObject({ model: modelSchema, view: anyRecord }),
) as unknown as z.ZodType<readonly { readonly model: StoredModel; readonly view: ViewPolicy }[]>;

const viewSchema = z.looseObject({
  viewPolicy: anyRecord,
  historyLimits: z.looseObject({ maxMessages: count.nullable(), maxChars: count.nullable() }),
}) as unknown as z.ZodType<{ readonly viewPolicy: ViewPolicy; readonly historyLimits: HistoryLimits }>;

const ruling = z.enum(['runs', 'asks', 'forbidden']);
const subject = z.looseObject({ kind: z.enum(['path', 'command']), argument: z.string() });
const availability = z.looseObject({
  rules: z.array(z.looseObject({ match: z.record(z.string(), z.string()), ruling })),
  otherwise: ruling,
  subject: subject.optional(),
});

const partSchemas = {
  roster: z.array(z.looseObject({ slug: z.string(), name: z.string(), description: z.string() })),
  tool: z.looseObject({
    name: z.string(),
    description: z.string(),
    parameters: anyRecord,
    risk: z.enum(['safe', 'risky']),
    subject: subject.optional(),
  }) as unknown as z.ZodType<ToolDefinition>,
  policy: z.record(z.string(), availability) as unknown as z.ZodType<
    Readonly<Record<string, ToolAvailability>>
  >,
  workflow: z.looseObject({
    id: z.string(),
    start: z.string(),
    answers: anyRecord.optional(),
    nodes: z.record(
      z.string(),
      z.looseObject({
        agent: z.string(),
        brief: z.string(),
        tools: texts.optional(),
        outcomes: z.record(z.string(), z.union([z.string(), texts])),
      }),
    ),
  }) as unknown as z.ZodType<Workflow>,
};
