import type { Command } from 'commander';
import { ParleyError, readConnectionFile } from '../../../client/index.ts';
import { oneTimeCode } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { dataDirectoryOf } from '../../find-daemon.ts';

export function addToken(program: Command, act: Act): void {
  program
    .command('token')
    .description('print the HTTP token of the running daemon')
    .option('--url', 'print an address that opens the console once')
    .action((options: { url?: boolean }, command: Command) =>
      act(command, async (context) => {
        const { url, token } = await tokenOf(context);
        if (context.json) context.value({ token, url });
        else context.line(options.url ? url : token);
        return 0;
      }),
    );
}

/** Browsers save addresses, so the code after `#` is valid only once. It is not sent to any server. */
export function consoleUrl(http: string, codeKey: string): string {
  return `${http}/#code=${oneTimeCode(codeKey)}`;
}

async function tokenOf(context: Context): Promise<{ readonly token: string; readonly url: string }> {
  const data = dataDirectoryOf(context);
  const left = await readConnectionFile(data);
  if (!left) {
    throw new ParleyError('DAEMON_NOT_RUNNING', `no running daemon found: ${data} has no address file`, {
      hint: 'start a daemon with `parley up`',
    });
  }
  const { http, httpToken: token, codeKey } = left;
  if (http && token && codeKey) return { token, url: consoleUrl(http, codeKey) };
  throw new ParleyError('HTTP_TOKEN_MISSING', 'this daemon has no HTTP token of its own', {
    hint: http
      ? `open ${http} in a browser and enter a token of its configuration (PARLEY_HTTP_TOKEN, http.tokens, http.people), if it requires one`
      : 'HTTP is off: start the daemon with --http HOST:PORT',
  });
}
