import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadNatsUsers } from '../../../src/config/resolve/nats-users.ts';
import { folderOf, load } from './folder.ts';

it('an error in the users of a nats-server names the document that explains their keys', async () => {
  const folder = await folderOf({ 'users.yaml': 'tenants: {}\nserve: 1\n' });
  for (const file of ['users.yaml', 'missing.yaml'])
    await expect(loadNatsUsers(join(folder, file))).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      hint: 'correct what is listed and try again; every key is explained in docs/guides/security.md',
    });
});

it('an error in the configuration of the daemon names its own document', async () => {
  await expect(load({ 'parley.yaml': 'limit: 1\n' })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    hint: 'correct what is listed and try again; every key is explained in docs/reference/configuration.md',
  });
});
