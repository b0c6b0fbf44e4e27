import { resolve } from 'node:path';
import { type Problems, show } from './problems.ts';
import { type ConfigFlags, type Said, type SettingsInput, said } from './said.ts';
import { Secret } from './secret.ts';

/** Which NATS server, and who to be there: of the URL, flags, variables, files. */

/** How to be somebody on a NATS server; user and password of the URL included. */
export interface NatsCredentials {
  readonly user?: string;
  readonly password?: Secret;
  /** Path of a file that holds it. */
  readonly passwordFile?: string;
  readonly token?: Secret;
  readonly tokenFile?: string;
  /** Path of a `.creds` file. */
  readonly credentials?: string;
  /** Path of a file with an nkey seed. */
  readonly nkey?: string;
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** What answers come to begins with this: what the server's permissions leave to this user. */
  readonly inboxPrefix?: string;
}

/** `url` holds no user or password. */
export interface NatsServer extends NatsCredentials {
  readonly kind: 'url';
  readonly url: string;
}

const NATS_URL = /^(nats|tls|ws|wss):\/\/(?:([^@/]*)@)?([^@/\s]+)\/?$/;
const BARE_SERVER = /^[A-Za-z0-9.-]+(:\d+)?$/;

export function natsServer(
  nats: Said,
  expected: string,
  input: SettingsInput,
  problems: Problems,
): NatsServer {
  const match = NATS_URL.exec(BARE_SERVER.test(nats.text) ? `nats://${nats.text}` : nats.text);
  if (!match) {
    const seen = nats.text.includes('@') ? '[hidden: it may hold a password]' : show(nats.text);
    problems.add({ source: nats.source, key: '', seen, expected });
    return { kind: 'url', url: '' };
  }
  const [user, password] = (match[2] ?? '').split(':').map(decoded);
  const inFile = files(input, { passwordFile: 'natsPasswordFile', tokenFile: 'natsTokenFile' });
  const ownPassword = said(input, 'natsPassword')?.text ?? password;
  const ownUser = said(input, 'natsUser')?.text ?? user;
  const token = said(input, 'natsToken')?.text;
  const inboxPrefix = inboxOf(said(input, 'natsInboxPrefix'), problems);
  return {
    kind: 'url',
    url: `${match[1]}://${match[3]}`,
    ...(ownUser ? { user: ownUser } : {}),
    ...(ownPassword === undefined ? {} : { password: new Secret(ownPassword) }),
    ...(token === undefined ? {} : { token: new Secret(token) }),
    ...inFile,
    ...files(input, { credentials: 'natsCredentials', nkey: 'natsNkey' }),
    ...tls(input),
    ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function tls(input: SettingsInput): Pick<NatsCredentials, 'tls'> {
  const found = files(input, { ca: 'natsTlsCa', cert: 'natsTlsCert', key: 'natsTlsKey' });
  return Object.keys(found).length === 0 ? {} : { tls: found };
}

/** Paths, absolute, of those that were said. */
function files<Key extends string>(
  input: SettingsInput,
  names: Readonly<Record<Key, keyof ConfigFlags>>,
): { readonly [K in Key]?: string } {
  const found: { [K in Key]?: string } = {};
  for (const key of Object.keys(names) as Key[]) {
    const path = said(input, names[key]);
    if (path !== null) found[key] = resolve(input.workingDirectory, path.text);
  }
  return found;
}

const INBOX_PREFIX = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

function inboxOf(setting: Said | null, problems: Problems): string | undefined {
  if (setting === null || INBOX_PREFIX.test(setting.text)) return setting?.text;
  const expected = 'the beginning of a subject, such as _INBOX_alice';
  problems.add({ source: setting.source, key: '', seen: show(setting.text), expected });
  return undefined;
}
