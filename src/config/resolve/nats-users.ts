import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { NAME_PATTERN, SLUG_PATTERN } from '../../conversation/index.ts';
import { messageOf } from '../../kernel/index.ts';
import { check } from '../files/check.ts';
import { parseMapping } from '../files/yaml-file.ts';
import { Problems } from '../problems.ts';
import { bool, matching, text } from '../schema/parameters.ts';
import { freeze } from './load.ts';

/** The users of a nats-server by tenant, from which `parley nats-config` generates the server's configuration. */

const BCRYPT = /^\$2[abxy]\$\d{2}\$[./A-Za-z0-9]{53}$/;
const name = matching(NAME_PATTERN, 'a name: letters, digits, _ and -, at most 128');

const user = z
  .strictObject({
    role: z.enum(['daemon', 'operator', 'publisher', 'agent']),
    password: matching(
      BCRYPT,
      'a bcrypt hash, not the password itself (docs/guides/security.md says how to make one)',
    ).optional(),
    nkey: matching(/^U[A-Z2-7]{55}$/, 'the public key of a user nkey (it begins with U)').optional(),
    conversations: z.union([z.literal('all'), z.array(name)]).optional(),
    slug: matching(SLUG_PATTERN, 'the slug of an agent').optional(),
  })
  .refine((value) => (value.password === undefined) !== (value.nkey === undefined), {
    error: 'either password or nkey',
  })
  .refine((value) => value.conversations === undefined || value.role === 'publisher', {
    error: 'conversations only for a publisher',
  })
  .refine((value) => value.slug === undefined || value.role === 'agent', { error: 'slug only for an agent' });

const tenant = z.strictObject({
  prefix: matching(/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/, 'a subject prefix').default('parley'),
  disk: matching(/^\d+[KMGT]?B?$/, 'an amount such as 50GB').optional(),
  users: z.record(name, user),
});

export const natsUsersSchema = z.strictObject({
  server: z
    .strictObject({
      listen: text.default('127.0.0.1:4222'),
      store: text.optional(),
      disk: matching(/^\d+[KMGT]?B?$/, 'an amount such as 500GB').optional(),
      sync: matching(/^(always|\d+[sm])$/, 'always, or a time such as 10s').optional(),
      tls: z
        .strictObject({ cert: text, key: text, ca: text.optional(), verify: bool.default(false) })
        .optional(),
    })
    .optional(),
  tenants: z.record(name, tenant).default({}),
});
export type NatsUsers = Readonly<z.infer<typeof natsUsersSchema>>;
export type NatsUser = NatsUsers['tenants'][string]['users'][string];

/** Throws `CONFIG_INVALID` with everything that is wrong. */
export async function loadNatsUsers(file: string): Promise<NatsUsers> {
  const problems = new Problems('docs/guides/security.md');
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    problems.add({ source: file, expected: `a file that can be read: ${messageOf(error)}` });
    return '';
  });
  problems.throwIfAny();
  const { data, locate } = parseMapping(file, text, problems);
  const input = { data, locate, origin: () => undefined, reported: [] };
  const users = check(natsUsersSchema, input, problems);
  if (Object.keys(users.tenants).length === 0)
    problems.add({ source: file, key: 'tenants', expected: 'at least one tenant with its users' });
  checkNames(users, file, problems);
  problems.throwIfAny();
  return freeze(users);
}

/** A server identifies a user by name or key alone, across all accounts. */
function checkNames(users: NatsUsers, file: string, problems: Problems): void {
  const seen = new Set<string>();
  for (const [tenantName, { users: ofTenant }] of Object.entries(users.tenants)) {
    for (const [userName, { nkey, role, slug }] of Object.entries(ofTenant)) {
      const known = nkey ?? userName;
      const key = `tenants.${tenantName}.users.${userName}`;
      if (role === 'agent' && !SLUG_PATTERN.test(slug ?? userName))
        problems.add({ source: file, key, expected: 'slug, since the name is not the slug of an agent' });
      if (seen.has(known))
        problems.add({ source: file, key, expected: 'a name or key that no other user has, in any tenant' });
      seen.add(known);
    }
  }
}
