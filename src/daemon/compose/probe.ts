import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type ModelOutcome, singleRequest } from '../../agents/index.ts';
import {
  type AcpConfig,
  type Config,
  type McpServerConfig,
  type ModelConfig,
  secretValuesOf,
} from '../../config/index.ts';
import { type Log, messageOf, ParleyError, within } from '../../kernel/index.ts';
import { asIs, type Enclose, hideFolder, loadToolFiles } from '../../tools/index.ts';
import { codingSettings, modelProfile } from '../team/team.ts';
import { environmentOf } from './coding-agents.ts';
import { composeModel } from './compose.ts';
import { loginStore } from './login-store.ts';
/** Calls each configured model once with each of its keys, starts each MCP server and coding agent once, and loads the functions, to see whether they work. */

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
export const SHORTEST = { maxOutputTokens: 16, reasoningTokens: undefined, reasoningEffort: undefined };

/** Scripted models are left out: they call nothing. */
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
    ...{ servers, project, environment, enclose },
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
