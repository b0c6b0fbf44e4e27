import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { nearest } from '../../kernel/index.ts';
import type { Environment } from '../problems/environment.ts';
import { didYouMean, type KeyPath, keyText, type Problems, show } from '../problems/problems.ts';
import type { McpServerConfig, ToolsConfig } from '../schema/config.ts';
import type { ConfigFile } from '../schema/schema.ts';
import { Secret } from '../schema/secret.ts';
import type { McpServerFile } from '../schema/tools-file.ts';

/** The tools of Parley itself; all others are of MCP servers. */
export const BUILT_IN_TOOLS = [
  'recall',
  'fs_read',
  'fs_list',
  'fs_search',
  'fs_write',
  'fs_edit',
  'shell',
  'handoff',
  'delegate',
  'ask',
  'set_phase',
  'complete_node',
] as const;

export async function resolveTools(
  tools: ConfigFile['tools'],
  workingDirectory: string,
  env: Environment,
  locate: (path: KeyPath) => string,
  problems: Problems,
): Promise<ToolsConfig> {
  const project = resolve(workingDirectory, tools.project);
  const found = await stat(project).catch(() => null);
  if (!found?.isDirectory()) {
    problems.add({
      source: locate(['tools', 'project']),
      key: 'tools.project',
      seen: show(project),
      expected: 'a folder that exists (paths are relative to where the daemon is started)',
    });
  }
  const servers = Object.entries(tools.mcpServers).map(([name, server]) => [
    name,
    mcpServer(server, tools.unhidden),
  ]);
  return {
    project,
    environment: passedOn(env),
    mcpServers: Object.fromEntries(servers),
    risk: tools.risk,
    policy: tools.policy,
    unhidden: tools.unhidden,
    protected: tools.protected,
  };
}

/** A rule for an unknown agent is refused: a typo would otherwise disable the rule. */
export function checkRules(
  tools: ToolsConfig,
  slugs: readonly string[],
  locate: (path: KeyPath) => string,
  notices: string[],
  problems: Problems,
): void {
  const noteUnknown = (path: KeyPath, tool: string) => {
    const unknown = unknownTool(tool, tools);
    if (unknown !== null) notices.push(`${locate(path)}: ${unknown}`);
  };
  for (const tool of Object.keys(tools.risk)) noteUnknown(['tools', 'risk', tool], tool);
  for (const [place, { agent, tool }] of tools.policy.entries()) {
    noteUnknown(['tools', 'policy', place, 'tool'], tool);
    if (agent === undefined || slugs.length === 0 || slugs.includes(agent)) continue;
    const path = ['tools', 'policy', place, 'agent'];
    const where = { source: locate(path), key: keyText(path), seen: show(agent) };
    const expected = `an agent: one of ${slugs.join(', ')}`;
    problems.add({ ...where, expected, ...didYouMean(nearest(agent, slugs)) });
  }
}

function mcpServer(server: McpServerFile, allUnhidden: boolean): McpServerConfig {
  const { command, args = [], url = '', trustReadOnlyHint, unhidden = false } = server;
  const trust = trustReadOnlyHint === undefined ? {} : { trustReadOnlyHint };
  if (command === undefined) return { transport: 'http', url, headers: secrets(server.headers), ...trust };
  return {
    transport: 'command',
    command,
    args,
    env: secrets(server.env),
    unhidden: unhidden || allUnhidden,
    ...trust,
  };
}

function secrets(values: Readonly<Record<string, string>> = {}): Record<string, Secret> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, new Secret(value)]));
}

/** The notice for a tool that does not exist; null: it exists. */
export function unknownTool(name: string, tools: ToolsConfig): string | null {
  const builtIn: readonly string[] = BUILT_IN_TOOLS;
  const servers = Object.keys(tools.mcpServers);
  if (builtIn.includes(name) || servers.some((server) => name.startsWith(`mcp__${server}__`))) return null;
  const near = nearest(name, builtIn);
  const hint = near === null ? '' : `; did you mean ${near}?`;
  return name.startsWith('mcp__')
    ? `no server of tools.mcpServers offers the tool ${name}`
    : `there is no tool ${name}${hint}`;
}

/**
 * The variables of the daemon that commands of `shell` and MCP servers get. An allow list, since no list of secret names is
 * complete. Contains no variable that configures Parley; do not use one of these for a secret in `${NAME}`.
 */
const PASSED_ON = [
  'HOME',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'LOGNAME',
  'PATH',
  'SHELL',
  'TERM',
  'TMPDIR',
  'TZ',
  'USER',
] as const;

/** git uses no repository without `.git`: files of a project that look like one could make `git status` run programs. */
const NO_BARE_REPOSITORY = {
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'safe.bareRepository',
  GIT_CONFIG_VALUE_0: 'explicit',
};

export function passedOn(env: Environment): Readonly<Record<string, string>> {
  const passed = PASSED_ON.flatMap((name) => {
    const value = env[name];
    // An exported shell function is code, not a value.
    return value === undefined || value.startsWith('()') ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(passed), ...NO_BARE_REPOSITORY };
}
