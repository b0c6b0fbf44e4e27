import type { Command } from 'commander';
import { type Act, loadConfig } from '../../context.ts';
import { parser } from '../../options/options.ts';

/** Logins at MCP servers that require one. */

const port = parser((text) => {
  const number = Number(text);
  return Number.isInteger(number) && number > 0 && number < 65_536 ? number : null;
}, 'expected a port');

export function addMcp(program: Command, act: Act): void {
  const mcp = program.command('mcp').description('log in at MCP servers that require it');
  const login = mcp
    .command('login')
    .description('log in at a server of tools.mcpServers in a browser; a running daemon uses it at once')
    .argument('<server>', 'its name in parley.yaml')
    .option('--config <dir>', 'the configuration (PARLEY_CONFIG; default: config)')
    .option('--port <port>', 'of 127.0.0.1, where the browser brings the answer; default: any', port);
  act(login, async (context, server: string, options: { config?: string; port?: number }) => {
    const config = await loadConfig(context, options.config);
    const { mcpLogin } = await context.dependencies.daemon();
    const stop = new AbortController();
    const off = context.io.onSignal(() => stop.abort());
    try {
      const onUrl = (url: string) => context.note(`Open this address in a browser on this computer:\n${url}`);
      const { signal } = stop;
      const issuer = await mcpLogin(config, server, { port: options.port ?? 0, onUrl, signal });
      context.result({ server, issuer }, () => `logged in to ${server} at ${issuer}`);
    } finally {
      off();
    }
  });
  const logout = mcp
    .command('logout')
    .description('revoke a login, and remove its tokens')
    .argument('<server>', 'its name in parley.yaml')
    .option('--config <dir>', 'the configuration (PARLEY_CONFIG; default: config)');
  act(logout, async (context, server: string, options: { config?: string }) => {
    const config = await loadConfig(context, options.config);
    const { mcpLogout } = await context.dependencies.daemon();
    const removed = await mcpLogout(config, server);
    context.result({ server, removed }, () =>
      removed ? `logged out of ${server}` : `there was no login at ${server}`,
    );
  });
}
