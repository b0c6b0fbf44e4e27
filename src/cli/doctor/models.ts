import type { AgentSummary } from '../../client/index.ts';
import { type Config, type Environment, type ModelConfig, OPENAI_URL } from '../../config/index.ts';
import { messageOf, UNRESOLVED } from '../../kernel/index.ts';
import { type Check, named } from './check.ts';

/** The result of `GET <baseURL>/models`: an HTTP status, or the reason why there was none. */
type Reached = { readonly status: number } | { readonly fault: string };
export type Reach = (baseURL: string, key: string | null) => Promise<Reached>;

const TIMEOUT_MS = 3_000;

/**
 * Checks each configured model: its endpoint, its key, and whether the endpoint answers. Calls no model.
 *
 * OWN-SOURCE-2  A file of the folder may name any endpoint and any variable. So a value of the environment is sent only to
 *                OpenAI and to an endpoint that the environment names; `doctor --probe` trusts the configuration.
 */
export function modelChecks(
  config: Config,
  env: Environment,
  reach: Reach = reachEndpoint,
): Promise<Check[]> {
  const asked = new Map<string, Promise<Reached>>(); // one request per endpoint
  const once: Reach = (baseURL, key) => {
    const endpoint = JSON.stringify([baseURL, key]);
    const answer = asked.get(endpoint) ?? reach(baseURL, key);
    asked.set(endpoint, answer);
    return answer;
  };
  const models = Object.entries(config.models);
  return Promise.all(
    models.map(([name, model]) =>
      modelCheck(name, model, once, {
        kept: withheld(config, env, model),
        address: addressKey(name, model, env),
      }),
    ),
  );
}

const LOCAL = /^https?:\/\/(localhost|127\.|\[::1\])/;

type Withheld = 'key' | 'address' | null;

/** OWN-SOURCE-2: what of a model must not be sent. */
function withheld({ variables }: Config, env: Environment, model: ModelConfig): Withheld {
  if (model.provider === 'scripted') return null;
  const { baseURL, apiKey } = model;
  const ofEnvironment = Object.values(env).filter((value) => value !== undefined && value !== '');
  const isNamed = [OPENAI_URL, ...ofEnvironment].some((url) => url?.replace(/\/+$/, '') === baseURL);
  if (isNamed) return null;
  const values = variables.map((value) => value.reveal()).filter((value) => ofEnvironment.includes(value));
  if (values.some((value) => baseURL.includes(value))) return 'address';
  return values.some((value) => apiKey?.reveal().includes(value)) ? 'key' : null;
}

const PROBE = 'run `parley doctor --probe`, which trusts this configuration and calls the model';

/** Where the address of an endpoint is set: the variable of the environment with this value, else its key. */
export function addressKey(name: string, model: ModelConfig | undefined, env: Environment): string {
  const baseURL = model?.provider === 'openai' ? model.baseURL : undefined;
  const isSource = (value: string | undefined) => value?.replace(/\/+$/, '') === baseURL;
  const variable = Object.keys(env).find((one) => baseURL !== undefined && isSource(env[one]));
  return variable ?? `models.${name}.baseURL`;
}

interface Sources {
  readonly kept: Withheld;
  readonly address: string;
}

async function modelCheck(
  name: string,
  model: ModelConfig,
  reach: Reach,
  { kept, address }: Sources,
): Promise<Check> {
  const { ok, warn, fail } = named(`model ${name}`);
  if (model.provider === 'scripted')
    return warn(
      `offline: answers come from ${model.script ?? 'a script that is part of Parley'}, not from a model`,
      'set OPENAI_API_KEY, or configure a model in parley.yaml',
    );
  const { baseURL, apiKey } = model;
  const has = apiKey === null ? 'without a key' : 'with a key';
  const message = `${model.model} at ${baseURL}, ${has}${profileText(model)}`;
  if (kept === 'address')
    return warn(`${message}: not checked, since its address has a variable of the environment`, PROBE);
  const reached = await reach(baseURL, kept === 'key' ? null : (apiKey?.reveal() ?? null));
  if ('fault' in reached)
    return fail(`${message}: no answer (${reached.fault})`, endpointFix(address, reached.fault));
  if (kept === 'key')
    return ok(`${message}; its key is a variable of the environment, and was not sent there (${PROBE})`);
  if (reached.status === 401 || reached.status === 403) {
    const what = apiKey === null ? 'it requires a key' : 'it refuses the key';
    const fix = `set models.${name}.apiKey to a key of that endpoint`;
    return fail(`${message}: ${what} (HTTP ${reached.status})`, fix);
  }
  if (apiKey !== null || LOCAL.test(baseURL)) return ok(message);
  return warn(message, 'set its apiKey in parley.yaml if the endpoint requires one');
}

/** How to correct an address that gave no answer. */
export function endpointFix(key: string, fault: string): string {
  return fault.includes(UNRESOLVED)
    ? `correct ${key}, which names this host, or check the network and its DNS`
    : `start that endpoint, or correct ${key}`;
}

/** Any answer counts, also 404: not every endpoint lists its models. */
async function reachEndpoint(baseURL: string, key: string | null): Promise<Reached> {
  try {
    const response = await fetch(`${baseURL.replace(/\/+$/, '')}/models`, {
      headers: key === null ? {} : { authorization: `Bearer ${key}` },
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await response.body?.cancel();
    return { status: response.status };
  } catch (error) {
    const { cause } = error as { cause?: { code?: unknown } };
    if ((error as Error).name === 'TimeoutError') return { fault: `none within ${TIMEOUT_MS} ms` };
    const message = messageOf(cause ?? error);
    return { fault: message.includes(UNRESOLVED) ? message : String(cause?.code ?? message) };
  }
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
