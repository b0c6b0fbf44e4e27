import type { AgentSummary } from '../../client/index.ts';
import type { Config, Environment, ModelConfig } from '../../config/index.ts';
import { UNRESOLVED } from '../../kernel/index.ts';
import { type Check, named } from './check.ts';

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
export function endpointFix(key: string, fault: string): string {
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
