import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type KeyPath, type Located, type Problem, type Problems, show } from '../problems.ts';
import type {
  AgentConfig,
  AgentParameters,
  ModelConfig,
  PriceConfig,
  RequestParameters,
  SessionSetting,
} from '../schema/config.ts';
import known from '../schema/known-models.json' with { type: 'json' };
import {
  DEFAULT_CONTEXT_TOKENS,
  DEFAULT_FIRST_TOKEN_SECONDS,
  DEFAULT_IDLE_SECONDS,
  DEFAULT_MAX_OUTPUT_TOKENS,
  foreignParameters,
  keyHeaders,
  type ModelFile,
  modelFileSchema,
  PROVIDERS,
  type ProviderName,
  providerOf,
} from '../schema/model-file.ts';
import { KEY_HEADER, type ParameterKeys, parameterKeys, sessionClashes } from '../schema/parameters.ts';
import { type ProfileKeys, resolveProfile } from '../schema/profiles.ts';
import type { ConfigFile } from '../schema/schema.ts';
import { Secret, settingDigest } from '../schema/secret.ts';
import { type Environment, variable } from '../schema/setting-sources.ts';

/**
 * Resolves the table of models.
 *
 * MODELS-1 Without models and OPENAI_API_KEY, the offline scripted model is used, with a notice.
 * MODELS-2 OPENAI_API_KEY is sent only to the endpoint of the environment, never to one of the configuration.
 * MODELS-3 A model with a script and without a provider is scripted as long as the key for OpenAI's endpoint is missing.
 * MODELS-4 A model is followed by its fallbacks, each by its own, and each once. All of them fit what fits the first.
 */

const DEFAULT_NAME = 'default';

interface ModelsInput extends Required<Located> {
  /** From `parley.yaml` and the environment. `models` undefined: not configured. */
  readonly file: Pick<ConfigFile, 'models' | 'limits'>;
  readonly env: Environment;
  readonly directory: string;
  /** Names that agents use: only these need a key. */
  readonly used: ReadonlySet<string>;
  readonly problems: Problems;
}

export async function resolveModels(input: ModelsInput): Promise<Record<string, ModelConfig>> {
  const models: [string, ModelConfig][] = [];
  for (const [name, model] of Object.entries(configuredModels(input) ?? modelsFromEnvironment(input))) {
    const isScripted = model.provider === 'scripted' || waitsForKey(name, model, input);
    const config = isScripted ? scripted(name, model, input) : overHttp(name, model, input);
    await checkScript(name, config, input);
    checkPrice(name, config, input);
    checkOutput(name, config, input);
    for (const { key, ...unfit } of unfitParameters(config)) refuse(input, [name, key], unfit);
    models.push([name, config]);
  }
  const resolved = Object.fromEntries(models);
  for (const [name, model] of models) checkFallbacks(name, model, resolved, input);
  return Object.fromEntries(
    models.map(([name, model]) => [name, { ...model, fallback: fallbackOrder(resolved, name) }]),
  );
}

/** `path`: below `models`. */
function refuse(input: ModelsInput, path: KeyPath, problem: Omit<Problem, 'source' | 'key'>): void {
  input.problems.refuse(input, ['models', ...path], problem);
}

function fallbackOrder(
  models: Readonly<Record<string, { readonly fallback?: readonly string[] | undefined }>>,
  first: string,
): string[] {
  const order: string[] = [];
  const follow = (name: string) => {
    const { fallback = [] } = (Object.hasOwn(models, name) && models[name]) || {};
    for (const next of fallback) {
      if (next === first || order.includes(next)) continue;
      order.push(next);
      follow(next);
    }
  };
  follow(first);
  return order;
}

function checkFallbacks(
  name: string,
  model: ModelConfig,
  models: Readonly<Record<string, ModelConfig>>,
  input: ModelsInput,
): void {
  const { problems } = input;
  for (const [place, other] of model.fallback.entries()) {
    const path = ['models', name, 'fallback', place];
    const unfit = (expected: string, hint: string) =>
      problems.refuse(input, path, { seen: show(other), expected, hint });
    const fallback = Object.hasOwn(models, other) ? models[other] : undefined;
    if (!fallback) problems.refuseName(input, path, other, 'a model of parley.yaml', Object.keys(models));
    else if (other === name) unfit('another model', 'it cannot take the place of itself');
    else if (model.fallback.indexOf(other) < place) unfit('each model once', 'it is named before');
    else if (fallbackOrder(models, other).includes(name))
      unfit(`a model that does not fall back to ${name} again`, `${other} leads back to ${name}: a loop`);
    else if (roomIn(fallback) < roomIn(model))
      unfit(
        `a window that is not smaller than that of ${name}: it leaves ${roomIn(fallback)} tokens (contextTokens less maxOutputTokens), ${name} ${roomIn(model)}`,
        `a conversation that fits ${name} must fit its fallback, or an outage would shorten it for good: lower models.${name}.contextTokens, or choose another model`,
      );
  }
}

/** An agent in another process asks its own model. */
export function fallbacksOf(
  { model, runtime }: Pick<AgentConfig, 'model' | 'runtime'>,
  models: Parameters<typeof fallbackOrder>[0],
): string[] {
  return runtime !== 'local' ? [] : fallbackOrder(models, model);
}

function roomIn({ contextTokens, maxOutputTokens }: ModelConfig): number {
  return contextTokens - maxOutputTokens;
}

function configuredModels({ file: { models } }: ModelsInput) {
  return models === undefined || Object.keys(models).length === 0 ? undefined : models;
}

function modelsFromEnvironment({ env, problems }: ModelsInput): Record<string, ModelFile> {
  if (variable(env, 'OPENAI_API_KEY') !== undefined) return { [DEFAULT_NAME]: modelFileSchema.parse({}) };
  problems.notices.push(
    'no models are configured and OPENAI_API_KEY is not set: agents answer from the offline scripted model; ' +
      'set OPENAI_API_KEY, or name an endpoint under models in parley.yaml',
  );
  return { [DEFAULT_NAME]: modelFileSchema.parse({ provider: 'scripted' }) };
}

function waitsForKey(name: string, model: ModelFile, { env, problems }: ModelsInput): boolean {
  const hasKey =
    model.apiKey ??
    model.apiKeys ??
    model.baseURL ??
    variable(env, 'OPENAI_API_KEY') ??
    variable(env, 'OPENAI_BASE_URL');
  if (model.provider !== undefined || model.script === undefined || hasKey !== undefined) return false;
  problems.notices.push(
    `OPENAI_API_KEY is not set: the model ${name} answers from the script ${model.script}; set the key in the environment or in .env`,
  );
  return true;
}

function common(model: ModelFile, name: string, baseURL: string | null, settings: ProfileKeys = {}) {
  const catalog = knownModel(model.model ?? name, baseURL);
  const contextTokens = model.contextTokens ?? catalog?.contextTokens ?? DEFAULT_CONTEXT_TOKENS;
  const small = Math.max(1, Math.floor(contextTokens / 4));
  const price = model.price ?? catalog?.price;
  return {
    model: model.model ?? name,
    contextTokens,
    maxOutputTokens: model.maxOutputTokens ?? Math.min(DEFAULT_MAX_OUTPUT_TOKENS, small),
    accepts: model.accepts ?? catalog?.accepts ?? [],
    ...(price === undefined ? {} : { price: resolvedPrice(price) }),
    parameters: resolveParameters(model),
    session: sessionOf(model.session),
    fallback: model.fallback ?? [],
    profile: resolveProfile(model.profile, { ...settings, ...model }, baseURL),
  };
}

/** What the catalog says of a model at its provider's own host: prices of another host are its own. */
function knownModel(model: string, baseURL: string | null): KnownModel | undefined {
  const host = baseURL !== null && URL.canParse(baseURL) ? new URL(baseURL).host : '';
  const hosts = known.hosts as Readonly<Record<string, Readonly<Record<string, KnownModel>>>>;
  return Object.hasOwn(hosts, host) ? hosts[host]?.[model] : undefined;
}

interface KnownModel {
  readonly contextTokens: number;
  readonly accepts?: ModelConfig['accepts'];
  readonly price?: FilePrice & { readonly above?: readonly (FilePrice & { readonly inputTokens: number })[] };
}

type FilePrice = NonNullable<ModelFile['price']>;

function resolvedPrice({ above, ...price }: NonNullable<KnownModel['price']>): PriceConfig {
  const tiers = above?.map(({ inputTokens, ...tier }) => ({ inputTokens, ...priceOf(tier) }));
  return { ...priceOf(price), ...(tiers && { above: tiers }) };
}

function priceOf(price: FilePrice) {
  const { inputPerMillion, cachedInputPerMillion = inputPerMillion } = price;
  return {
    ...price,
    cachedInputPerMillion,
    cacheWritePerMillion: price.cacheWritePerMillion ?? inputPerMillion,
  };
}

function sessionOf({ header, field }: NonNullable<ModelFile['session']> = {}): SessionSetting | null {
  if (header !== undefined) return { kind: 'header', name: header };
  return field === undefined ? null : { kind: 'field', name: field };
}

function scripted(name: string, model: ModelFile, input: ModelsInput): ModelConfig {
  const script = model.script === undefined ? null : resolve(input.directory, model.script);
  return {
    provider: 'scripted',
    dialect: 'chat',
    script,
    ...common({ ...model, model: undefined }, name === DEFAULT_NAME ? 'scripted' : name, null),
  };
}

function overHttp(name: string, model: ModelFile, input: ModelsInput): ModelConfig {
  const named = providerOf(model);
  const provider = named === 'scripted' ? 'openai' : named;
  const {
    keyVariable,
    baseURL: usual,
    dialect,
    model: usualModel,
    settings: ofProvider,
  } = PROVIDERS[provider];
  const given = model.baseURL ?? endpointFromEnvironment(input, provider) ?? usual;
  const baseURL = provider === 'anthropic' ? withVersion(given) : given.replace(/\/+$/, '');
  const inherited = model.baseURL === undefined ? variable(input.env, keyVariable) : undefined; // MODELS-2
  const own = model.apiKeys ?? (model.apiKey === undefined ? [] : [model.apiKey]);
  const apiKeys = own.length === 0 && inherited !== undefined ? [inherited] : own;
  const needsKey = apiKeys.length === 0 && baseURL === usual && input.used.has(name);
  if (needsKey && !input.isReported(['models', name])) {
    refuse(input, [name, 'apiKey'], {
      expected: `a key for ${usual}`,
      hint: `${model.baseURL === undefined ? `set ${keyVariable}` : `write apiKey: \${${keyVariable}}`}, name another endpoint (baseURL), or use provider: scripted to work offline`,
    });
  }
  const settings = common(model, usualModel, baseURL, ofProvider);
  const { idleSeconds = DEFAULT_IDLE_SECONDS, cache = '5m' } = model;
  const { firstTokenSeconds = settings.profile.stream ? DEFAULT_FIRST_TOKEN_SECONDS : null } = model;
  return {
    provider,
    dialect,
    baseURL,
    apiKeys: apiKeys.map((key) => new Secret(key)),
    firstTokenMs: firstTokenSeconds === null ? null : firstTokenSeconds * 1_000,
    idleMs: idleSeconds * 1_000,
    ...(provider === 'anthropic' && cache !== 'off' ? { cacheTtl: cache } : {}),
    ...settings,
    ...(cache === '1h' && model.price === undefined && settings.price
      ? { price: keptForAnHour(settings.price) }
      : {}),
  };
}

/** Anthropic's own packages add the version, so its users and the documents of others name a URL without it. */
function withVersion(url: string): string {
  const plain = url.replace(/\/+$/, '');
  return /\/v\d+$/.test(plain) || plain.includes('?') ? plain : `${plain}/v1`;
}

/** Prices of known models are those of a cache of five minutes; Anthropic takes twice the price of input for an hour. */
function keptForAnHour({ above, ...price }: PriceConfig): PriceConfig {
  const longer = <P extends { readonly inputPerMillion: number }>(one: P) => ({
    ...one,
    cacheWritePerMillion: 2 * one.inputPerMillion,
  });
  return { ...longer(price), ...(above && { above: above.map(longer) }) };
}

/** Checked as a `baseURL` is. */
function endpointFromEnvironment({ env, problems }: ModelsInput, provider: ProviderName): string | undefined {
  const source = PROVIDERS[provider].urlVariable;
  const parsed = modelFileSchema.shape.baseURL.safeParse(variable(env, source));
  if (parsed.success) return parsed.data;
  const expected = parsed.error.issues[0]?.message ?? 'a URL';
  problems.add({ source, seen: show(variable(env, source)), expected });
  return undefined;
}

async function checkScript(name: string, config: ModelConfig, input: ModelsInput) {
  if (config.provider !== 'scripted' || config.script === null) return;
  const found = await stat(config.script).catch(() => null);
  if (found?.isFile()) return;
  refuse(input, [name, 'script'], {
    seen: show(config.script),
    expected: 'a file that exists (paths are relative to the configuration folder)',
  });
}

/** The digest of each script, by its path. A file that cannot be read is reported elsewhere. */
export async function digestScripts(
  models: Readonly<Record<string, ModelConfig>>,
): Promise<Readonly<Record<string, string>>> {
  const paths = Object.values(models).flatMap((model) =>
    model.provider === 'scripted' && model.script !== null ? [model.script] : [],
  );
  const digests = paths.map(async (path) => {
    return [path, settingDigest(await readFile(path, 'utf8').catch(() => null))] as const;
  });
  return Object.fromEntries(await Promise.all(digests));
}

function checkOutput(name: string, { contextTokens, maxOutputTokens }: ModelConfig, input: ModelsInput) {
  if (maxOutputTokens < contextTokens) return;
  const expected = `less than contextTokens (${contextTokens})`;
  refuse(input, [name, 'maxOutputTokens'], { seen: show(maxOutputTokens), expected });
}

/** A limit in dollars would count the calls of a model without a price as free. */
function checkPrice(name: string, { provider, price }: ModelConfig, input: ModelsInput) {
  const { usdPerConversation: limit } = input.file.limits;
  const isNeeded = limit !== null && provider !== 'scripted' && input.used.has(name);
  if (!isNeeded || price !== undefined) return;
  refuse(input, [name, 'price'], {
    expected: `a price, because limits.usdPerConversation is ${limit} and agents use this model`,
    hint: 'set inputPerMillion and outputPerMillion (0 for a free model), or limit tokensPerConversation instead',
  });
}

/** Values that the provider refuses; `own`: parameters of an agent that override the model's. */
function unfitParameters(
  { provider, parameters, maxOutputTokens: longest }: ModelConfig,
  own: AgentParameters = {},
): readonly { readonly key: string; readonly seen: string; readonly expected: string }[] {
  if (provider !== 'anthropic') return [];
  const { temperature, reasoningEffort, reasoningTokens, topP } = { ...parameters, ...own };
  const maxOutputTokens = own.maxOutputTokens ?? longest;
  const thinks = reasoningTokens !== undefined || (reasoningEffort ?? 'none') !== 'none';
  const faults: [key: string, seen: unknown, isUnfit: boolean, expected: string][] = [
    ['temperature', temperature, (temperature ?? 0) > 1, `0 to 1 for provider ${provider}`],
    ['temperature', temperature, thinks && (temperature ?? 1) !== 1, '1, or none, for a model that reasons'],
    ['topP', topP, thinks && (topP ?? 1) < 0.95, 'at least 0.95 for a model that reasons'],
    [
      'reasoningEffort',
      reasoningEffort,
      reasoningEffort === 'minimal',
      `none, or low to max, for provider ${provider}`,
    ],
    [
      'reasoningTokens',
      reasoningTokens,
      (reasoningTokens ?? 0) >= maxOutputTokens,
      `less than maxOutputTokens (${maxOutputTokens})`,
    ],
  ];
  return faults.flatMap(([key, value, isUnfit, expected]) =>
    isUnfit ? [{ key, seen: String(value), expected }] : [],
  );
}

/** The given parameters, names of headers in lower case, values of headers hidden (PARAMETERS-2). */
export function resolveParameters(given: ParameterKeys): RequestParameters {
  const names = Object.keys(parameterKeys) as (keyof ParameterKeys)[];
  const own = names.filter((name) => given[name] !== undefined).map((name) => [name, given[name]]);
  const { headers, ...others }: ParameterKeys = Object.fromEntries(own);
  if (headers === undefined) return others;
  const hidden = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), new Secret(value)]);
  return { ...others, headers: Object.fromEntries(hidden) };
}

/** What an agent's parameters must not be, given its model. */
export function checkAgentParameters(
  agent: Located & { readonly config: AgentConfig },
  models: Readonly<Record<string, ModelConfig>>,
  problems: Problems,
): void {
  const { config } = agent;
  const { parameters } = config;
  const refuse = (below: KeyPath, seen: string, expected: string, hint?: string) =>
    problems.refuse(agent, ['parameters', ...below], { seen, expected, ...(hint ? { hint } : {}) });
  if (config.runtime !== 'local') {
    for (const key of Object.keys(parameters).filter((one) => one !== 'maxOutputTokens')) {
      const hint = 'remove it: the program of the agent makes its own requests';
      refuse([key], 'a value', `none for an agent with runtime: ${config.runtime}`, hint);
    }
  }
  for (const name of [config.model, ...fallbacksOf(config, models)]) {
    const model = Object.hasOwn(models, name) ? models[name] : undefined;
    if (model) checkParametersFor(config, name, model, refuse);
  }
}

type Refuse = (below: KeyPath, seen: string, expected: string) => void;

function checkParametersFor(
  { parameters, runtime }: AgentConfig,
  name: string,
  model: ModelConfig,
  refuse: Refuse,
): void {
  if (runtime === 'local') {
    for (const key of foreignParameters(model.provider).filter((one) => one in parameters))
      refuse([key], 'a value', `none for the model ${name}: provider ${model.provider} has no ${key}`);
    for (const path of model.provider === 'scripted' ? [] : keyHeaders(model.provider, parameters))
      refuse(path, 'a value', KEY_HEADER);
    const own = Object.keys(parameters);
    for (const { key, seen, expected } of unfitParameters(model).length > 0
      ? []
      : unfitParameters(model, parameters))
      refuse([own.includes(key) ? key : (own[0] ?? key)], `${key}: ${seen}`, `${key}: ${expected}`);
  }
  const { maxOutputTokens: longest } = parameters;
  if (longest !== undefined && longest >= model.contextTokens) {
    const expected = `less than contextTokens of the model ${name} (${model.contextTokens})`;
    refuse(['maxOutputTokens'], String(longest), expected);
  }
  const session = model.session ? { [model.session.kind]: model.session.name } : {};
  for (const path of sessionClashes(parameters, session)) {
    refuse(path, 'the name that the model uses for its session', 'another name');
  }
}
