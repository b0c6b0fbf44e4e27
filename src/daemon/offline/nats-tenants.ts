import { type Account, accountsOf, createSubjects, type Subjects, type User } from '../../bus/index.ts';
import type { NatsUser, NatsUsers } from '../../config/index.ts';

/** The tenants of a described server with their accounts, however these are written down. */

export interface NatsTenant {
  readonly name: string;
  readonly disk: string | undefined;
  readonly subjects: Subjects;
  readonly accounts: readonly Account[];
  /** By the names of the users. */
  readonly described: Readonly<Record<string, NatsUser>>;
}

export function tenantsOf({ tenants }: NatsUsers): NatsTenant[] {
  return Object.entries(tenants).map(([name, { prefix, disk, users: described }]) => {
    const subjects = createSubjects(prefix);
    const users = Object.entries(described).map(([userName, user]) => userOf(userName, user));
    return { name, disk, subjects, accounts: accountsOf(name, subjects, users), described };
  });
}

/** The user of the bus that a described one is, whatever the server knows it by. */
function userOf(name: string, { role, conversations = [], slug = name }: NatsUser): User {
  if (role === 'publisher') return { role, name, conversations };
  if (role === 'agent') return { role, name, slug };
  return { role, name };
}
