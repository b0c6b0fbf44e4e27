import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Config, loadConfig } from '../config/index.ts';

/** The configuration of a team under test. */

export interface ConfigurationOptions {
  /** The folder of the configuration, or a loaded one; default: `config`, else the shipped team. */
  readonly config?: string | Config | undefined;
  /** The base of relative paths; default: the working directory of the process. */
  readonly workingDirectory?: string | undefined;
  /** The folder of the file tools; default: `tools.project`. */
  readonly project?: string | undefined;
  /**
   * Variables of `${NAME}`; one that is missing gets a placeholder. The environment of the process is not read: an MCP server
   * that is started by name needs `PATH`.
   */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Starts the configured MCP servers, all or these; default: none. */
  readonly mcp?: boolean | readonly string[] | undefined;
}

/** With what no test needs replaced: HTTP, traces, retention, MCP servers, the data directory. */
export async function testConfiguration(options: ConfigurationOptions): Promise<Config> {
  const config = typeof options.config === 'object' ? options.config : await load(options);
  const { mcp = false, project = config.tools.project } = options;
  const isStarted = (name: string) => (typeof mcp === 'boolean' ? mcp : mcp.includes(name));
  const servers = Object.entries(config.tools.mcpServers).filter(([name]) => isStarted(name));
  return {
    ...config,
    tools: { ...config.tools, project: resolve(project), mcpServers: Object.fromEntries(servers) },
    shutdown: { graceMs: 0 },
    traces: null,
    retention: { conversations: null, deadLetters: null },
    daemon: {
      ...config.daemon,
      http: null,
      data: join(tmpdir(), `parley-test-${process.pid}`), // only named: nothing creates it
    },
  };
}

async function load({ config, workingDirectory, env }: ConfigurationOptions): Promise<Config> {
  const base = workingDirectory ?? process.cwd();
  const directory = typeof config === 'string' ? resolve(base, config) : undefined;
  return loadConfig({
    configDirectory: directory,
    workingDirectory: base,
    env: { ...(await placeholders(directory ?? join(base, 'config'))), ...env },
  });
}

/** Long enough for a token. Not a secret: no provider and no server is called. */
const PLACEHOLDER = 'placeholder-of-parleyd-testing-for-';

/** A value for each variable that the files name, and for the key of the default model. */
async function placeholders(directory: string): Promise<Record<string, string>> {
  const names = new Set(['OPENAI_API_KEY']);
  for (const folder of [directory, join(directory, 'agents')]) {
    for (const file of await readdir(folder).catch(() => [])) {
      if (!/\.(ya?ml|md)$/.test(file)) continue;
      const text = await readFile(join(folder, file), 'utf8').catch(() => '');
      for (const [, name] of text.matchAll(/\$\{([A-Za-z_]\w*)\}/g)) if (name) names.add(name);
    }
  }
  return Object.fromEntries([...names].map((name) => [name, `${PLACEHOLDER}${name}`]));
}
