import type { Config, Environment } from '../../config/index.ts';
import type { Probed } from '../../daemon/index.ts';
import { UNRESOLVED } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import type { Check } from './check.ts';
import { addressKey, endpointFix, modelChecks } from './models.ts';

/** `doctor --probe`: one line for each model and MCP server that was called, and one for the functions that were loaded. */
export async function probeChecks({ dependencies, io }: Context, config: Config): Promise<Check[]> {
  const scripted = Object.entries(config.models).filter(([, { provider }]) => provider === 'scripted');
  const offline = await modelChecks({ ...config, models: Object.fromEntries(scripted) }, {});
  const probed = await (await dependencies.daemon()).probe(config);
  return [...offline, ...probed.map((one) => checkOf(one, config, io.env))];
}

function checkOf({ kind, name, ms, fault, tools }: Probed, config: Config, env: Environment): Check {
  if (kind === 'functions') {
    const title = 'functions as tools';
    if (!fault) return { name: title, status: 'ok', message: `loaded from ${name}: ${tools.join(', ')}` };
    const fix = 'correct that file: until then the daemon does not start, and a reload is refused';
    return { name: title, status: 'fail', message: fault.message, fix };
  }
  const title = kind === 'model' ? `model ${name}` : `MCP server ${name}`;
  const where = placeOf(kind, name, config);
  if (fault) {
    const message = `${where}: ${fault.code} after ${ms} ms: ${fault.message}`;
    return {
      name: title,
      status: 'fail',
      message,
      fix: fixOf(kind, name, fault, addressKey(name, config.models[name], env)),
    };
  }
  if (kind === 'model') return { name: title, status: 'ok', message: `${where} answered in ${ms} ms` };
  const found = `${where} started and listed ${tools.length === 1 ? '1 tool' : `${tools.length} tools`} in ${ms} ms`;
  if (tools.length > 0) return { name: title, status: 'ok', message: found };
  return {
    name: title,
    status: 'warn',
    message: found,
    fix: `check that ${keyOf(kind, name)} is the right server`,
  };
}

type Called = Exclude<Probed['kind'], 'functions'>;

/** Arguments and queries of addresses are not shown, because they may contain tokens. */
function placeOf(kind: Called, name: string, { models, tools }: Config): string {
  if (kind === 'model') {
    const model = models[name];
    return model?.provider === 'scripted' ? name : `${model?.model} at ${model?.baseURL}`;
  }
  const server = tools.mcpServers[name];
  if (server?.transport !== 'http') return server?.command ?? name;
  const { origin, pathname } = new URL(server.url);
  return `${origin}${pathname}`;
}

function keyOf(kind: Called, name: string): string {
  return kind === 'model' ? `models.${name}` : `tools.mcpServers.${name}`;
}

function fixOf(
  kind: Called,
  name: string,
  { code, message }: NonNullable<Probed['fault']>,
  address: string,
): string {
  const key = keyOf(kind, name);
  if (kind === 'server')
    return message.includes(UNRESOLVED)
      ? endpointFix(`${key}.url`, message)
      : `run its program or open its address yourself, or correct ${key}`;
  switch (code) {
    case 'UNAUTHORIZED':
      return `set ${key}.apiKey to a key of that endpoint`;
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
