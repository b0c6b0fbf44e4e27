import { ParleyError, urlWithoutSecrets } from '../kernel/index.ts';
import type { ClientOptions, ParleyClient } from './client.ts';

/**
 * Loads the client library, and the NATS library with it, at the first connection: a command that needs none starts faster.
 *
 * Null is what `readConnectionFile` returns where no daemon left its address: refused with a hint.
 */
export async function connect(options: ClientOptions | null): Promise<ParleyClient> {
  if (options === null) {
    throw new ParleyError(
      'DAEMON_NOT_RUNNING',
      'connect: no daemon has left its address in that data directory',
      {
        hint: 'start one with `parley up`, or name its server: connect({ url: "nats://127.0.0.1:4222" })',
      },
    );
  }
  requireUrl(options);
  return (await import('./client.ts')).openClient(options, urlWithoutSecrets(options.url));
}

/** Programs without type checks call `connect` too. */
function requireUrl(options: Partial<ClientOptions> | undefined): void {
  const url: unknown = options?.url;
  const urls: readonly unknown[] = Array.isArray(url) ? url : [url];
  if (urls.length > 0 && urls.every((one) => typeof one === 'string' && one.trim() !== '')) return;
  throw new ParleyError('CONFIG_INVALID', `connect: url is ${JSON.stringify(url) ?? 'missing'}`, {
    hint: 'name the NATS server, or a list of them: connect({ url: "nats://127.0.0.1:4222" }); what `parley up` wrote down is `await readConnectionFile("data")`',
  });
}
