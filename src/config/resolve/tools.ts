import { readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CONVERSATION_TOOLS, PERMIT } from '../../conversation/index.ts';
import { nearest } from '../../kernel/index.ts';
import { listFiles } from '../files/read-file.ts';
import { type KeyPath, type Located, type Problems, show } from '../problems.ts';
import type { McpServerConfig, ToolsConfig } from '../schema/config.ts';
import type { ConfigFile } from '../schema/schema.ts';
import { Secret, settingDigest } from '../schema/secret.ts';
import type { Environment } from '../schema/setting-sources.ts';
import type { McpServerFile } from '../schema/tools-file.ts';

/** The tools of Parley itself; all others are of MCP servers, of files in `tools/` or of the program that contains the daemon. */
export const BUILT_IN_TOOLS: readonly string[] = [
  'recall',
  'fs_read',
  'fs_list',
  'fs_search',
  'fs_write',
  'fs_edit',
  'attach',
  'shell',
  ...Object.values(PERMIT),
  ...Object.keys(CONVERSATION_TOOLS),
];

export async function resolveTools(
  { mcpServers, project: own, loginKey, ...rest }: ConfigFile['tools'],
  { directory, workingDirectory }: { readonly directory: string; readonly workingDirectory: string },
  env: Environment,
  file: Located,
  problems: Problems,
): Promise<ToolsConfig> {
  const project = resolve(workingDirectory, own);
  const found = await stat(project).catch(() => null);
  if (!found?.isDirectory()) {
    problems.refuse(file, ['tools', 'project'], {
      seen: show(project),
      expected: 'a folder that exists (paths are relative to where the daemon is started)',
    });
  }
  const servers = Object.entries(mcpServers).map(([name, server]) => [
    name,
    mcpServer(server, rest.unhidden),
  ]);
  return {
    ...rest,
    ...(loginKey && { loginKey: new Secret(loginKey) }),
    project,
    environment: passedOn(env),
    mcpServers: Object.fromEntries(servers),
    files: await toolFiles(directory, problems),
    filesDigest: await digestOf(join(directory, 'tools')),
  };
}

/** The daemon loads them: they are programs. */
async function toolFiles(directory: string, problems: Problems): Promise<Record<string, string>> {
  const builtIn: readonly string[] = BUILT_IN_TOOLS;
  const folder = join(directory, 'tools');
  const names = await listFiles(folder, '.ts', problems, { foldersToo: true });
  return Object.fromEntries(
    names.map((file) => {
      const name = file.replace(/\.ts$/, '');
      const isFit =
        /^[A-Za-z0-9_-]{1,64}$/.test(name) && !name.startsWith('mcp__') && !builtIn.includes(name);
      if (!isFit)
        problems.add({
          source: join(folder, file),
          seen: show(name),
          expected:
            'the name of its tool: 1 to 64 letters, digits, _ or -, and no name of a built-in tool or of mcp__',
        });
      return [name, join(folder, file)];
    }),
  );
}

async function digestOf(folder: string): Promise<string> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const texts = names
    .sort()
    .map(async (name) => [name, await readFile(join(folder, name), 'utf8').catch(() => null)]);
  return settingDigest(await Promise.all(texts));
}

/** A rule for an unknown agent is refused: a typo would otherwise disable the rule. */
export function checkRules(
  tools: ToolsConfig,
  slugs: readonly string[],
  file: Located,
  problems: Problems,
): void {
  const noteUnknown = (path: KeyPath, tool: string) => {
    const unknown = unknownTool(tool, tools);
    if (unknown !== null) problems.notices.push(`${file.locate(path)}: ${unknown}`);
  };
  for (const tool of Object.keys(tools.risk)) noteUnknown(['tools', 'risk', tool], tool);
  for (const [place, { agent, tool }] of tools.policy.entries()) {
    noteUnknown(['tools', 'policy', place, 'tool'], tool);
    if (agent !== undefined && slugs.length > 0 && !slugs.includes(agent))
      problems.refuseName(file, ['tools', 'policy', place, 'agent'], agent, 'an agent', slugs);
  }
}

function mcpServer(server: McpServerFile, allUnhidden: boolean): McpServerConfig {
  const { command, args = [], url = '', trustReadOnlyHint, unhidden = false } = server;
  const trust = trustReadOnlyHint === undefined ? {} : { trustReadOnlyHint };
  if (command === undefined) {
    const { clientSecret, ...rest } = server.oauth ?? {};
    const oauth = { ...rest, ...(clientSecret && { clientSecret: new Secret(clientSecret) }) };
    return { transport: 'http', url, headers: secrets(server.headers), oauth, ...trust };
  }
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
  const servers = Object.keys(tools.mcpServers);
  const own = [...BUILT_IN_TOOLS, ...Object.keys(tools.files)];
  if (own.includes(name) || servers.some((server) => name.startsWith(`mcp__${server}__`))) return null;
  const near = nearest(name, own);
  const hint = near === null ? '' : `; did you mean ${near}?`;
  return name.startsWith('mcp__')
    ? `no server of tools.mcpServers offers the tool ${name}`
    : `there is no tool ${name}${hint}`;
}

/**
 * The variables of the daemon that commands of `shell` and MCP servers get. An allow list, since no list of secret names is
 * complete. Contains no variable that configures Parley; do not use one of these for a secret in `${NAME}`.
 */
export const PASSED_ON: readonly string[] = [
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
];

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
