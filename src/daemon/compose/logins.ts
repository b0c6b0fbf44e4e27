import type { Config, McpServerConfig } from '../../config/index.ts';
import { nearest, ParleyError } from '../../kernel/index.ts';
import { loginStore } from './login-store.ts';

/** Logins at MCP servers. They are in the data directory, which programs of tools cannot read. */

interface McpLogin {
  /** Where the redirect is received; 0: any. */
  readonly port: number;
  readonly onUrl: (url: string) => void;
  readonly signal: AbortSignal;
}

/** Resolves with the URL of the authorization server. A running daemon uses the login at once. */
export async function mcpLogin(config: Config, name: string, options: McpLogin): Promise<string> {
  const settings = httpServer(config, name);
  if (Object.keys(settings.headers).some((header) => header.toLowerCase() === 'authorization'))
    throw new ParleyError(
      'MCP_LOGIN_REFUSED',
      `${name} has its own Authorization header, which would be sent`,
      {
        hint: `remove it from tools.mcpServers.${name}.headers to log in`,
      },
    );
  const { logIn } = await import('../../tools/mcp/index.ts');
  return logIn({ ...options, name, settings, store: await loginStore(config) });
}

/** False: there was no login. */
export async function mcpLogout(config: Config, name: string): Promise<boolean> {
  const settings = httpServer(config, name);
  const { logOut } = await import('../../tools/mcp/index.ts');
  return logOut(name, settings, await loginStore(config));
}

function httpServer({ tools: { mcpServers } }: Config, name: string) {
  const settings: McpServerConfig | undefined = Object.hasOwn(mcpServers, name)
    ? mcpServers[name]
    : undefined;
  if (settings?.transport === 'http') return settings;
  const names = Object.keys(mcpServers).filter((one) => mcpServers[one]?.transport === 'http');
  const near = nearest(name, names);
  const hint = near === null ? `servers with a url: ${names.join(', ') || 'none'}` : `did you mean ${near}?`;
  const message = settings
    ? `the MCP server ${name} is a program: it needs no login here`
    : `tools.mcpServers has no server ${name}`;
  throw new ParleyError('MCP_SERVER_UNKNOWN', message, { hint });
}
