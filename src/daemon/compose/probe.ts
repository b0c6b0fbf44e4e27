import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  costOf,
  type Model,
  type ModelAnswer,
  type ModelOutcome,
  type ModelProfile,
  RequestAssembler,
  singleRequest,
  type WireTool,
} from '../../agents/index.ts';
import {
  type AcpConfig,
  type Config,
  type McpServerConfig,
  type ModelConfig,
  secretValuesOf,
} from '../../config/index.ts';
import {
  cutBy,
  estimateTokens,
  finishReasonOf,
  NOTHING_USED,
  type Used,
  usedTogether,
  type ViewPart,
} from '../../conversation/index.ts';
import { cut, type Log, messageOf, ParleyError, readArguments, within } from '../../kernel/index.ts';
import { asIs, type Enclose, hideFolder, loadToolFiles } from '../../tools/index.ts';
import { codingSettings, modelProfile } from '../team/team.ts';
import { environmentOf } from './coding-agents.ts';
import { composeModel } from './compose.ts';
import { loginStore } from './login-store.ts';

/** The result for one key of a model, one MCP server, one coding agent or all files of functions. `code`: of a failed model call. No message contains a key. */
export interface Probed {
  readonly kind: 'model' | 'server' | 'agent' | 'functions';
  readonly name: string;
  /** Which key of a model, from 1; absent: it has at most one. */
  readonly key?: number;
  readonly ms: number;
  readonly fault: { readonly code: string; readonly message: string; readonly hint?: string } | null;
  /** The tools of an MCP server, or the functions. */
  readonly tools: readonly string[];
  /** What a coding agent says about itself, and what it printed beside messages. */
  readonly agent?: { readonly about: string; readonly noise: readonly string[] };
}

/** For one model or server. */
const TIME_LIMIT_MS = 20_000;

/** The shortest answer that every dialect allows; a budget for reasoning would have to be less than it. */
const SHORTEST = { maxOutputTokens: 16, reasoningTokens: undefined, reasoningEffort: undefined };

/**
 * Calls each configured model once with each of its keys, starts each MCP server and coding agent once, and loads the functions, to
 * see whether they work. Scripted models are left out: they call nothing.
 */
export function probe(config: Config): Promise<Probed[]> {
  const models = Object.entries(config.models).filter(([, { provider }]) => provider !== 'scripted');
  return Promise.all([
    ...models.flatMap(([name, model]) => probeKeys(name, model)),
    ...Object.entries(config.tools.mcpServers).map(([name, server]) =>
      timed('server', name, () => probeServer(config, name, server)),
    ),
    ...config.agents.flatMap(({ slug, acp }) =>
      acp ? [timed('agent', slug, () => probeAgent(config, acp))] : [],
    ),
    ...(Object.keys(config.tools.files).length > 0
      ? [timed('functions', join(config.directory, 'tools'), () => probeFunctions(config))]
      : []),
  ]);
}

type Found = Partial<Pick<Probed, 'fault' | 'tools' | 'agent'>>;

async function timed(kind: Probed['kind'], name: string, work: () => Promise<Found>): Promise<Probed> {
  const began = performance.now();
  const found = await work().catch((error: unknown) => failed('INTERNAL', messageOf(error)));
  return { kind, name, ms: Math.round(performance.now() - began), fault: null, tools: [], ...found };
}

function failed(code: string, message: string): Found {
  return { fault: { code, message } };
}

function probeKeys(name: string, config: ModelConfig): Promise<Probed>[] {
  const { length = 0 } = config.provider === 'scripted' ? {} : config.apiKeys;
  if (length < 2) return [timed('model', name, () => probeModel(name, config))];
  return Array.from({ length }, async (_, at) => {
    return { ...(await timed('model', name, () => probeModel(name, config, at))), key: at + 1 };
  });
}

async function probeModel(name: string, config: ModelConfig, key = 0): Promise<Found> {
  const profile = modelProfile(name, config, SHORTEST);
  const call = { conversation: 'probe', agent: 'probe', turnId: 'probe' };
  const { request } = singleRequest('Say yes.', 'You are asked whether you can be reached.', profile, call);
  const model = await composeModel(name, config);
  const signal = AbortSignal.timeout(TIME_LIMIT_MS);
  return faultOf(await (model.keys?.[key] ?? model).call(request, { signal, onDelta: () => undefined }));
}

/** The probe allows few tokens, of which reasoning may leave none. */
function faultOf(outcome: ModelOutcome): Found {
  if (outcome.kind === 'answered' || (outcome.kind === 'failed' && outcome.code === 'EMPTY_ANSWER'))
    return {};
  return outcome.kind === 'failed' ? failed(outcome.code, outcome.message) : failed('TIMEOUT', TOO_LATE);
}

const TOO_LATE = `no answer within ${TIME_LIMIT_MS / 1_000} s`;
const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function probeFunctions({ directory, tools: { files } }: Config): Promise<Found> {
  return { tools: (await loadToolFiles(files, directory)).map(({ definition }) => definition.name) };
}

async function probeServer(config: Config, name: string, server: McpServerConfig): Promise<Found> {
  const { createMcpTools } = await import('../../tools/mcp/index.ts');
  const { project, environment } = config.tools;
  const enclose = await hidingFrom(config, server.transport === 'command' && server.unhidden);
  const servers = { [name]: server };
  const toolbox = createMcpTools({
    servers,
    project,
    environment,
    enclose,
    secrets: secretValuesOf(config),
    logins: await loginStore(config),
    log: SILENT,
  });
  try {
    await within(TIME_LIMIT_MS, toolbox.settled());
    const found = toolbox.servers?.()[0];
    if (found?.state === 'ready') return { tools: found.tools };
    return failed('FAILED', found?.error ?? TOO_LATE);
  } finally {
    await toolbox.close();
  }
}

async function probeAgent(config: Config, acp: AcpConfig): Promise<Found> {
  const settings = codingSettings(config, acp);
  const enclose = await hidingFrom(config, config.tools.unhidden);
  try {
    const { diagnose } = await import('../../acp/index.ts');
    const { fault, ...agent } = await diagnose(
      { ...settings, env: environmentOf(settings), enclose },
      TIME_LIMIT_MS,
    );
    return { agent, fault };
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error;
    return { fault: error };
  }
}

async function hidingFrom({ daemon: { data } }: Config, unhidden: boolean): Promise<Enclose> {
  return existsSync(data) ? (await hideFolder(data, unhidden)).enclose : asIs; // nothing to hide yet
}

export interface Habit {
  readonly name: string;
  /** Agents with tools cannot work without it. */
  readonly isNeeded: boolean;
  readonly state: 'holds' | 'does not hold' | 'not known';
  readonly seen: string;
  /** What to set. */
  readonly fix?: string;
}

/** `fault`: of the first call. */
export interface DeepProbed {
  readonly name: string;
  readonly habits: readonly Habit[];
  readonly used: Used;
  readonly fault: { readonly code: string; readonly message: string } | null;
}

const DEEP_LIMIT_MS = 120_000;
/** Above the shortest prefix that providers cache: 1,024 tokens, with some models 4,096. */
const PREFIX_TOKENS = 5_000;
/** Besides a budget for reasoning. */
const ANSWER_TOKENS = 4_096;

const CODE = 'QX7-K4';
const ASKED = { meter: 'north', days: 3 };
const TOOL: WireTool = {
  type: 'function',
  function: {
    name: 'read_meter',
    description: 'Reads a meter.',
    parameters: {
      type: 'object',
      properties: { meter: { type: 'string' }, days: { type: 'integer' } },
      required: ['meter', 'days'],
      additionalProperties: false,
    },
  },
};
const TASK =
  'Call read_meter once, for the meter "north" and 3 days. Then write the code that it returns, and after it the numbers from one to ten as words.';

/**
 * Holds one short tool conversation with each model behind HTTP, to see on which habits of its provider agents can rely.
 *
 * DEEP-PROBE-1 At most four calls a model, in sequence, within one time limit. No call is repeated.
 * DEEP-PROBE-2 Requests are encoded as those of agents are, with the parameters of the model and its first key, never a wrong one.
 * DEEP-PROBE-3 What no answer shows is not known. A first call that fails for another reason than its tool is the last one.
 *
 * Scripted models are left out.
 */
export function deepProbe(config: Config, limitMs = DEEP_LIMIT_MS): Promise<DeepProbed[]> {
  const models = Object.entries(config.models).filter(([, { provider }]) => provider !== 'scripted');
  return Promise.all(
    models.map(([name, model]) =>
      composeModel(name, model, secretValuesOf(config))
        .then((found) => converse(name, model, found, AbortSignal.timeout(limitMs)))
        .catch((error: unknown) => {
          const fault = { code: 'INTERNAL', message: messageOf(error) };
          return { name, habits: [], used: NOTHING_USED, fault };
        }),
    ),
  );
}

/** One call. `texts`: how many parts of text arrived. */
interface Heard {
  readonly outcome: ModelOutcome;
  readonly texts: number;
}

interface Talk {
  readonly name: string;
  readonly config: ModelConfig;
  readonly asked: Heard;
  /** Null: no tool was called. */
  readonly answered: Heard | null;
  /** The answer that may have few tokens. */
  readonly short: Heard;
  /** To a model that does not exist. */
  readonly misnamed: Heard;
}

async function converse(
  name: string,
  config: ModelConfig,
  model: Model,
  signal: AbortSignal,
): Promise<DeepProbed> {
  const { maxOutputTokens: longest, parameters } = config;
  const maxOutputTokens = Math.min(longest, ANSWER_TOKENS + (parameters.reasoningTokens ?? 0));
  const profile = modelProfile(name, config, { maxOutputTokens });
  const nobody = modelProfile(name, { ...config, model: `${config.model}-that-does-not-exist` }, SHORTEST);
  const prefix = longPrefix(Math.min(PREFIX_TOKENS, config.contextTokens / 8));
  const ask = (tail: readonly ViewPart[], to = profile, tools: readonly WireTool[] = []) =>
    call(model, { tail, prefix: tools.length > 0 ? prefix : 'You count.', tools, profile: to }, signal);

  const task = [user(TASK)];
  const asked = await ask(task, profile, [TOOL]);
  const { outcome } = asked;
  const steps = outcome.kind === 'answered' ? stepsOf(outcome.answer, profile) : [];
  const answered = steps.length > 1 ? await ask([...task, ...steps], profile, [TOOL]) : null;
  const count = [user('Write the numbers from one to one hundred as words.')];
  const goesOn = outcome.kind === 'answered' || codeOf(outcome) === 'BAD_REQUEST';
  const short = goesOn ? await ask(count, modelProfile(name, config, SHORTEST)) : null;
  if (!short || (outcome.kind !== 'answered' && short.outcome.kind !== 'answered')) {
    const message = outcome.kind === 'failed' ? outcome.message : textOf(outcome);
    return { name, habits: [], used: usedBy(outcome, profile), fault: { code: codeOf(outcome), message } };
  }
  const misnamed = await ask(count, nobody);
  const heard = [asked, answered, short, misnamed].flatMap((one) => one ?? []);
  const habits = habitsOf({ name, config, asked, answered, short, misnamed }, heard);
  return { name, habits, used: usedTogether(heard.map((one) => usedBy(one.outcome, profile))), fault: null };
}

interface Asked {
  readonly tail: readonly ViewPart[];
  readonly prefix: string;
  readonly tools: readonly WireTool[];
  readonly profile: ModelProfile;
}

async function call(model: Model, { tail, ...parts }: Asked, signal: AbortSignal): Promise<Heard> {
  const view = { history: [], historyLength: 0, historyVersion: 0, tail };
  const common = { conversation: 'probe', agent: 'probe', turnId: 'probe', sessionId: 'parley-probe' };
  const made = { ...common, ...parts, view, runContext: [], tokenRatio: 1 };
  const { request, fault } = new RequestAssembler().assemble(made);
  if (fault) {
    const partial = { content: '', reasoning: '' };
    return { outcome: { kind: 'failed', ...fault, partial, retryable: false }, texts: 0 };
  }
  let texts = 0;
  const onDelta = ({ type }: { readonly type: string }) => {
    if (type === 'text') texts += 1;
  };
  const outcome = await model.call(request, { signal, onDelta });
  return { outcome, texts };
}

function usedBy(outcome: ModelOutcome, { price }: ModelProfile): Used {
  if (outcome.kind !== 'answered') {
    const isFree = outcome.kind === 'failed' && !outcome.partial.content && !outcome.partial.reasoning;
    return { ...NOTHING_USED, calls: 1, unpricedCalls: isFree ? 0 : 1 };
  }
  const { usage } = outcome.answer;
  const priced = usage && price ? { usd: costOf(usage, price) } : { unpricedCalls: 1 };
  return { ...NOTHING_USED, ...usage, ...priced, calls: 1 };
}

function longPrefix(tokens: number): string {
  let prefix = 'You read meters. Do exactly what you are asked, and nothing else. Your manual follows.\n';
  for (let line = 1; estimateTokens(prefix) < tokens; line++)
    prefix += `Rule ${line}: a meter is read once, and what it shows is written down without a change.\n`;
  return prefix;
}

const user = (content: string): ViewPart => ({
  kind: 'trigger',
  entries: [],
  message: { role: 'user', content },
});

/** An answer as the view of its agent shows it, with a result of each call. */
function stepsOf(answer: ModelAnswer, { form: { boundTo, sendReasoning } }: ModelProfile): ViewPart[] {
  const { content, reasoning, blocks, toolCalls } = answer;
  const calls = toolCalls.map(({ name, arguments: given }, at) => ({
    id: `c1_${at}`,
    type: 'function' as const,
    function: { name, arguments: given },
  }));
  const own = {
    ...(reasoning && sendReasoning !== 'never' ? { reasoning } : {}),
    ...(blocks && boundTo !== undefined ? { blocks: { boundTo, list: [...blocks] } } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  const result = { role: 'tool', content: JSON.stringify({ code: CODE }) } as const;
  return [
    { kind: 'turn', entries: [], message: { role: 'assistant', content, ...own } },
    ...calls.map(({ id }): ViewPart => {
      return { kind: 'turn', entries: [], message: { ...result, tool_call_id: id } };
    }),
  ];
}

type Judged = Pick<Habit, 'state' | 'seen' | 'fix'>;

const holds = (seen: string): Judged => ({ state: 'holds', seen });
const lacks = (seen: string, fix: string): Judged => ({ state: 'does not hold', seen, fix });
const unknown = (seen: string): Judged => ({ state: 'not known', seen });
/** A refusal of the request says something about the habit; another failure does not. */
const refused = (outcome: ModelOutcome, fix: string): Judged =>
  codeOf(outcome) === 'BAD_REQUEST' ? lacks(textOf(outcome), fix) : unknown(textOf(outcome));

const answerOf = (heard: Heard | null) =>
  heard?.outcome.kind === 'answered' ? heard.outcome.answer : undefined;
const quoted = (text: string) => JSON.stringify(text.length > 80 ? `${cut(text, 80)}…` : text);

function codeOf(outcome: ModelOutcome): string {
  if (outcome.kind === 'aborted') return 'TIMEOUT';
  return outcome.kind === 'failed' ? outcome.code : '';
}

function textOf(outcome: ModelOutcome): string {
  if (outcome.kind === 'answered') return `it answered ${quoted(outcome.answer.content ?? '')}`;
  if (outcome.kind === 'aborted') return 'the time for all calls was over before an answer';
  return `${outcome.code}: ${outcome.message}`;
}

function habitsOf(talk: Talk, heard: readonly Heard[]): Habit[] {
  const judged: readonly (readonly [name: string, judged: Judged, isNeeded?: boolean])[] = [
    ['text is streamed', streaming(talk, heard)],
    ['a tool is called as asked', toolCall(talk), true],
    ['the result of a tool is used', toolResult(talk), true],
    ['reasoning is returned and accepted back', reasoning(talk)],
    ['usage is reported', usage(talk, heard)],
    ['a repeated prefix is read from the cache', caching(talk)],
    ['the output limit ends an answer', outputLimit(talk)],
    ['a wrong model name is refused', wrongModel(talk)],
  ];
  return judged.map(([name, one, isNeeded = false]) => ({ name, isNeeded, ...one }));
}

function streaming({ name, config }: Talk, heard: readonly Heard[]): Judged {
  if (!config.profile.stream) return unknown('stream: false is set');
  const most = Math.max(...heard.map(({ texts }) => texts));
  if (most === 0) return unknown('no answer had text');
  if (most > 1) return holds(`an answer came in ${most} parts`);
  return lacks('each answer came in one part', `set models.${name}.stream: false`);
}

function toolCall({ name, config, asked }: Talk): Judged {
  const answer = answerOf(asked);
  if (!answer) return refused(asked.outcome, 'choose a model that calls tools, or give its agents no tools');
  const [call] = answer.toolCalls;
  if (!call) {
    if (cutBy(finishReasonOf(answer.finishReason)) === 'length')
      return lacks('the answer was cut before a call', `raise models.${name}.maxOutputTokens`);
    const parser = 'or switch on the tool parser of the server (vLLM, llama.cpp)';
    return lacks(textOf(asked.outcome), `choose a model that calls tools, ${parser}`);
  }
  const read = readArguments(call.arguments);
  const given = read.ok ? Object.entries(read.value) : [];
  const isAsked = Object.entries(ASKED).every(([key, one]) => given.some(([k, v]) => k === key && v === one));
  if (call.name === TOOL.function.name && isAsked && given.length === 2) return holds(call.arguments);
  const strict = config.profile.strictTools ? 'choose another model' : `set models.${name}.strictTools: true`;
  return lacks(`it called ${quoted(call.name)} with ${quoted(call.arguments)}`, strict);
}

function toolResult({ name, config, asked, answered }: Talk): Judged {
  if (!answered) return unknown('no tool was called');
  const answer = answerOf(answered);
  if (answer?.content?.includes(CODE)) return holds('the answer contains what the tool returned');
  if (answer) return lacks(textOf(answered.outcome), 'choose another model');
  const { sendReasoning, preset } = config.profile;
  if (config.dialect !== 'chat') return refused(answered.outcome, `check models.${name}.baseURL`);
  const lacksReasoning = sendReasoning === 'never' && answerOf(asked)?.reasoning;
  return refused(
    answered.outcome,
    lacksReasoning
      ? `set models.${name}.sendReasoning: with-calls`
      : `set models.${name}.profile to its provider's (now ${preset}): docs/guides/model-providers.md`,
  );
}

function reasoning({ name, config, asked, answered }: Talk): Judged {
  const { dialect, parameters, profile } = config;
  const answer = answerOf(asked);
  if (!answer) return unknown(textOf(asked.outcome));
  const kept = answer.blocks?.filter(({ type }) => !['text', 'call'].includes(type)) ?? [];
  const isChat = dialect === 'chat';
  if (!answer.reasoning && (isChat || kept.length === 0)) {
    const { reasoningTokens: counted = 0 } = answer.usage ?? {};
    if (counted > 0)
      return lacks(
        `${counted} tokens of reasoning are counted, and none is returned`,
        isChat
          ? `set models.${name}.provider: responses, if the endpoint has that API`
          : `check extraBody of models.${name}`,
      );
    const isSet = parameters.reasoningTokens ?? parameters.reasoningEffort;
    return unknown(
      isSet
        ? 'it did not reason about so short a task'
        : `none was returned; models.${name} has no reasoningEffort`,
    );
  }
  if (profile.sendReasoning === 'never')
    return holds('it is returned, and not sent back (sendReasoning: never)');
  if (!isChat && !kept.some(({ opaque }) => opaque !== undefined))
    return lacks(
      'it is returned without what its provider accepts back',
      `check models.${name}.baseURL and extraBody`,
    );
  if (!answered) return unknown('it is returned; no tool was called, so it was not sent back');
  if (answerOf(answered)) return holds('it is returned, and accepted when it was sent back');
  return refused(
    answered.outcome,
    dialect === 'anthropic' ? `check models.${name}.baseURL` : `set models.${name}.sendReasoning: never`,
  );
}

function usage({ name, config }: Talk, heard: readonly Heard[]): Judged {
  const answers = heard.flatMap((one) => answerOf(one) ?? []);
  const without = answers.filter((answer) => !answer.usage).length;
  if (answers.length === 0) return unknown('no call was answered');
  if (without === 0) return holds(`of each of ${answers.length} answers`);
  const { stream, streamUsage } = config.profile;
  const key = stream && !streamUsage ? 'streamUsage: true' : 'stream: false';
  return lacks(`missing in ${without} of ${answers.length} answers`, `set models.${name}.${key}`);
}

function caching({ name, config, answered }: Talk): Judged {
  if (!answered) return unknown('no second request with the prefix was sent');
  const { inputTokens = 0, cachedInputTokens: cached } = answerOf(answered)?.usage ?? {};
  if (cached === undefined) return unknown('the provider does not report it');
  const seen = `${cached} of ${inputTokens} input tokens of the second request`;
  if (cached > 0) return holds(seen);
  if (config.dialect === 'anthropic')
    return lacks(seen, `set models.${name}.cache: 5m, and check the shortest prefix that this model caches`);
  return lacks(
    seen,
    `set models.${name}.session: { field: prompt_cache_key }, if the provider has that field`,
  );
}

function outputLimit({ name, config, short: { outcome } }: Talk): Judged {
  const limit = config.profile.outputLimit;
  const other = limit === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  const fix =
    config.dialect === 'chat'
      ? `set models.${name}.outputLimit: ${other}`
      : `check baseURL of models.${name}`;
  if (outcome.kind !== 'answered')
    return refused(outcome, `nothing: keep models.${name}.maxOutputTokens far above it`);
  const reason = finishReasonOf(outcome.answer.finishReason);
  if (cutBy(reason) === 'length') return holds(`${SHORTEST.maxOutputTokens} tokens ended with ${reason}`);
  return lacks(`a limit of ${SHORTEST.maxOutputTokens} tokens ended with ${reason ?? 'no reason'}`, fix);
}

function wrongModel({ name, misnamed: { outcome } }: Talk): Judged {
  if (codeOf(outcome) === 'NOT_FOUND') return holds('NOT_FOUND');
  const fix = `nothing: check the spelling of models.${name}.model yourself`;
  if (outcome.kind === 'answered') return lacks('it was answered: the endpoint ignores the name', fix);
  return refused(outcome, fix);
}
