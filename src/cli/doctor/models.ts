import type { AgentSummary } from '../../client/index.ts';
import type { Config, Environment, ModelConfig } from '../../config/index.ts';
import type { DeepProbed, Probed } from '../../daemon/index.ts';
import { UNRESOLVED } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import { renderUsed } from '../render/cost.ts';
import { plural } from '../render/text.ts';
import { type Check, named } from './check.ts';
import { codingAgent, placeOf } from './servers.ts';

/** Checks each configured model without calling it: `doctor --probe` does. */
export function modelChecks({ models }: Pick<Config, 'models'>): Check[] {
  return Object.entries(models).map(([name, model]) => {
    const { ok, warn } = named(`model ${name}`);
    if (model.provider === 'scripted')
      return warn(
        `offline: answers come from ${model.script ?? 'a script that is part of Parley'}, not from a model`,
        'set OPENAI_API_KEY, or configure a model in parley.yaml',
      );
    const { length: keys } = model.apiKeys;
    const has = keys === 0 ? 'without a key' : keys === 1 ? 'with a key' : `with ${keys} keys`;
    return ok(
      `${model.model} at ${model.baseURL}, ${has}${fallbackText(model)}${profileText(model)}; \`parley doctor --probe\` calls it`,
    );
  });
}

/** Where the address of an endpoint is set: the variable of the environment with this value, else its key. */
export function addressKey(name: string, model: ModelConfig | undefined, env: Environment): string {
  const baseURL = model && model.provider !== 'scripted' ? model.baseURL : undefined;
  const isSource = (value: string | undefined) => value?.replace(/\/+$/, '') === baseURL;
  const variable = Object.keys(env).find((one) => baseURL !== undefined && isSource(env[one]));
  return variable ?? `models.${name}.baseURL`;
}

/** How to correct an address that gave no answer. */
function endpointFix(key: string, fault: string): string {
  return fault.includes(UNRESOLVED)
    ? `correct ${key}, which names this host, or check the network and its DNS`
    : `start that endpoint, or correct ${key}`;
}

function fallbackText({ fallback }: ModelConfig): string {
  return fallback.length === 0 ? '' : `; if it fails, ${fallback.join(', then ')}`;
}

/** Empty for the default profile. */
function profileText({ profile }: ModelConfig): string {
  if (profile.chosenBy === 'default') return '';
  return `; profile ${profile.preset}${profile.chosenBy === 'host' ? ', by its host' : ''}`;
}

/** Checks whether the agents in other processes are connected. Only a running daemon knows; null: none answers. */
export function agentChecks({ agents }: Config, seen: readonly AgentSummary[] | null): Check[] {
  return agents
    .filter(({ runtime }) => runtime === 'bus')
    .map(({ slug, absentMs }) => {
      const { ok, warn, fail } = named(`agent ${slug} (runtime: bus)`);
      if (seen === null) return ok('not checked: no daemon is running');
      const found = seen.find((one) => one.slug === slug);
      if (!found)
        return warn(
          'the running daemon does not know it',
          'restart the daemon: it runs with another configuration',
        );
      if (found.connected ?? found.status !== 'not connected') return ok('connected');
      const fix = `start the process of ${slug}, or check its server and subject prefix`;
      if (absentMs !== null) return warn('not connected: its turns wait for it', fix);
      return fail('not connected: its turns fail with AGENT_NOT_CONNECTED', fix);
    });
}

/** `doctor --probe`: one line for each model, MCP server and coding agent that was called, and one for the functions that were loaded. */
export async function probeChecks({ dependencies, io }: Context, config: Config): Promise<Check[]> {
  const scripted = Object.entries(config.models).filter(([, { provider }]) => provider === 'scripted');
  const offline = modelChecks({ models: Object.fromEntries(scripted) });
  const probed = await (await dependencies.daemon()).probe(config);
  return [...offline, ...probed.map((one) => checkOf(one, config, io.env))];
}

function checkOf(probed: Probed, { models, tools: configured }: Config, env: Environment): Check {
  const { kind, name, key: ordinal, ms, fault, tools } = probed;
  if (kind === 'agent') return codingCheck(probed);
  const model = models[name];
  const server = configured.mcpServers[name];
  if (kind === 'functions') {
    const { ok, fail } = named('functions as tools');
    if (!fault) return ok(`loaded from ${name}: ${tools.join(', ')}`);
    return fail(
      fault.message,
      'correct that file: until then the daemon does not start, and a reload is refused',
    );
  }
  if (kind === 'model') {
    const { ok, fail } = named(`model ${name}${ordinal === undefined ? '' : `, key ${ordinal}`}`);
    const where = model && model.provider !== 'scripted' ? `${model.model} at ${model.baseURL}` : name;
    if (!fault) return ok(`${where} answered in ${ms} ms`);
    return fail(faultText(where, ms, fault), modelFix(name, ordinal, fault, addressKey(name, model, env)));
  }
  const { ok, warn, fail } = named(`MCP server ${name}`);
  const where = server ? placeOf(server) : name;
  const key = `tools.mcpServers.${name}`;
  if (fault)
    return fail(
      faultText(where, ms, fault),
      fault.message.includes(UNRESOLVED)
        ? endpointFix(`${key}.url`, fault.message)
        : `run its program or open its address yourself, or correct ${key}`,
    );
  const found = `${where} started and listed ${plural(tools.length, 'tool')} in ${ms} ms`;
  return tools.length > 0 ? ok(found) : warn(found, `check that ${key} is the right server`);
}

/** Its state, and what to do about a fault. */
function codingCheck({ name, ms, fault, agent }: Probed): Check {
  const { ok, warn, fail } = codingAgent(name);
  const about = agent && `started in ${ms} ms: ${agent.about}`;
  if (fault) {
    const state = about ? `${about}; ${fault.message}` : faultText('its program', ms, fault);
    return fail(state, fault.hint ?? `correct agents/${name}.md`);
  }
  if (!agent?.noise.length) return ok(`${about}, signed in or without a sign-in`);
  return warn(
    `${about}; it prints other lines than messages on standard output, which are skipped: ${agent.noise.join('; ')}`,
    'switch its greeting and logs off, or move them to standard error',
  );
}

type Fault = NonNullable<Probed['fault']>;

const faultText = (where: string, ms: number, { code, message }: Fault) =>
  `${where}: ${code} after ${ms} ms: ${message}`;

function modelFix(
  name: string,
  ordinal: number | undefined,
  { code, message }: Fault,
  address: string,
): string {
  const key = `models.${name}`;
  switch (code) {
    case 'UNAUTHORIZED':
      return `set ${key}.${ordinal === undefined ? 'apiKey' : `apiKeys[${ordinal - 1}]`} to a key of that endpoint`;
    case 'NOT_FOUND':
      return `correct ${key}.model: the endpoint has no such model, or ${address}`;
    case 'NETWORK_ERROR':
    case 'TIMEOUT':
      return endpointFix(address, message);
    case 'RATE_LIMITED':
      return 'wait, or raise the limit or the credit at the provider';
    default:
      return `correct ${key}: docs/guides/model-providers.md`;
  }
}

/** `doctor --probe --deep`: one line for each habit of each provider, and one for what the calls cost. */
export async function deepChecks({ dependencies, io, note }: Context, config: Config): Promise<Check[]> {
  const called = Object.values(config.models).filter(({ provider }) => provider !== 'scripted');
  note(
    `--deep calls ${plural(called.length, 'model')}, each at most four times and with about 12,000 tokens, which its provider may charge.`,
  );
  const probed = await (await dependencies.daemon()).deepProbe(config);
  return probed.flatMap((one) => habitChecks(one, config, io.env));
}

function habitChecks(
  { name, habits, used, fault }: DeepProbed,
  { models }: Config,
  env: Environment,
): Check[] {
  const cost = named(`model ${name}, cost`).ok(renderUsed(used));
  if (fault) {
    const message = `not known: ${fault.code}: ${fault.message}`;
    const address = addressKey(name, models[name], env);
    return [named(`model ${name}, habits`).fail(message, modelFix(name, undefined, fault, address)), cost];
  }
  const checks = habits.map(({ name: habit, isNeeded, state, seen, fix }): Check => {
    const { ok, warn, fail } = named(`model ${name}, ${habit}`);
    const lacks = isNeeded ? fail : warn;
    return (state === 'does not hold' ? lacks : ok)(`${state}: ${seen}`, fix);
  });
  return [...checks, cost];
}
