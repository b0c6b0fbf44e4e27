import { join } from 'node:path';
import type { Config } from '../../config/index.ts';
import type { LoginStore } from '../../tools/mcp/index.ts';

/** In a file of its own: the public types of the daemon name no package of a protocol. */
export async function loginStore({ daemon: { data }, tools: { loginKey } }: Config): Promise<LoginStore> {
  const { LoginStore } = await import('../../tools/mcp/index.ts');
  return new LoginStore(join(data, 'mcp-logins'), loginKey?.reveal());
}
