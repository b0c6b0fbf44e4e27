import { resolve } from 'node:path';
import { isBareServer, percentDecoded, splitUrls } from '../../kernel/index.ts';
import { type Problems, show } from '../problems.ts';
import { Secret } from './secret.ts';
import { type ConfigFlags, type SettingsInput, type SettingValue, settingValue } from './setting-sources.ts';

/** The NATS server and its credentials, from the URL, flags, variables and files. */

/** Includes user and password of the URL. */
interface NatsCredentials {
  readonly user?: string;
  readonly password?: Secret;
  /** Path of a file that contains it. */
  readonly passwordFile?: string;
  readonly token?: Secret;
  readonly tokenFile?: string;
  /** Path of a `.creds` file. */
  readonly credentials?: string;
  /** Path of a file with an nkey seed. */
  readonly nkey?: string;
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** Prefix of reply subjects, as the server's permissions for this user require. */
  readonly inboxPrefix?: string;
}

export interface NatsServer extends NatsCredentials {
  readonly kind: 'url';
  /** Several servers are separated by commas. Contains no user or password. */
  readonly url: string;
  /** `url` with the login of each server; absent: all servers have the same login, or none. */
  readonly urlWithLogins?: Secret;
}

export function secretNatsFiles(nats: { readonly kind: 'managed' } | NatsServer): string[] {
  if (nats.kind === 'managed') return [];
  const { passwordFile, tokenFile, credentials, nkey, tls } = nats;
  return [passwordFile, tokenFile, credentials, nkey, tls?.key].filter((path) => path !== undefined);
}

/** The options of the NATS client. */
export function revealed({ kind: _, url, urlWithLogins, password, token, ...rest }: NatsServer) {
  return {
    ...rest,
    url: urlWithLogins?.reveal() ?? url,
    password: password?.reveal(),
    token: token?.reveal(),
  };
}

const NATS_URL = /^(nats|tls|ws|wss):\/\/(?:([^@/]*)@)?([^@/\s,]+)\/?$/;
/** One server: its URL for display, and its login; null: none. */
interface ParsedUrl {
  readonly url: string;
  readonly login: string | null;
}

export function natsServer(
  nats: SettingValue,
  expected: string,
  input: SettingsInput,
  problems: Problems,
): NatsServer {
  const parsed = splitUrls(nats.text).map(parsedUrl);
  const servers = parsed.filter((one) => one !== null);
  if (servers.length === 0 || servers.length < parsed.length) {
    const seen = nats.text.includes('@') ? '[hidden: it may hold a password]' : show(nats.text);
    problems.add({ source: nats.source, seen, expected: `${expected}, or several with commas` });
    return { kind: 'url', url: '' };
  }
  const logins = new Set(servers.flatMap(({ login }) => login ?? []));
  const [user, password] = ([...logins][0] ?? '').split(':').map(percentDecoded);
  const inFile = files(input, { passwordFile: 'natsPasswordFile', tokenFile: 'natsTokenFile' });
  const common = logins.size < 2;
  const ownPassword = settingValue(input, 'natsPassword')?.text ?? (common ? password : undefined);
  const ownUser = settingValue(input, 'natsUser')?.text ?? (common ? user : undefined);
  const token = settingValue(input, 'natsToken')?.text;
  const inboxPrefix = inboxOf(settingValue(input, 'natsInboxPrefix'), problems);
  return {
    kind: 'url',
    url: servers.map(({ url }) => url).join(','),
    ...(common ? {} : { urlWithLogins: new Secret(withLogins(servers)) }),
    ...(ownUser ? { user: ownUser } : {}),
    ...(ownPassword === undefined ? {} : { password: new Secret(ownPassword) }),
    ...(token === undefined ? {} : { token: new Secret(token) }),
    ...inFile,
    ...files(input, { credentials: 'natsCredentials', nkey: 'natsNkey' }),
    ...tls(input),
    ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
  };
}

/** Null: not a URL. `managed` cannot be one of several servers. */
function parsedUrl(text: string): ParsedUrl | null {
  const url = text.trim();
  const match = NATS_URL.exec(isBareServer(url) ? `nats://${url}` : url);
  if (!match || url === 'managed') return null;
  return { url: `${match[1]}://${match[3]}`, login: match[2] || null };
}

/** A URL without a login gets the login of the first URL that has one. */
function withLogins(servers: readonly ParsedUrl[]): string {
  const shared = servers.find(({ login }) => login !== null)?.login;
  return servers.map(({ url, login }) => url.replace('://', `://${login ?? shared}@`)).join(',');
}

function tls(input: SettingsInput): Pick<NatsCredentials, 'tls'> {
  const found = files(input, { ca: 'natsTlsCa', cert: 'natsTlsCert', key: 'natsTlsKey' });
  return Object.keys(found).length === 0 ? {} : { tls: found };
}

/** Absolute paths of the configured files. */
function files<Key extends string>(
  input: SettingsInput,
  names: Readonly<Record<Key, keyof ConfigFlags>>,
): { readonly [K in Key]?: string } {
  const found: { [K in Key]?: string } = {};
  for (const key of Object.keys(names) as Key[]) {
    const path = settingValue(input, names[key]);
    if (path !== null) found[key] = resolve(input.workingDirectory, path.text);
  }
  return found;
}

/** The daemon answers to no other subjects (REPLY-SUBJECT-1 of src/bus/subjects.ts). */
const INBOX_PREFIX = /^_INBOX[A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$/;

function inboxOf(setting: SettingValue | null, problems: Problems): string | undefined {
  if (setting === null || INBOX_PREFIX.test(setting.text)) return setting?.text;
  const expected = 'the beginning of a subject below _INBOX, such as _INBOX.alice';
  problems.add({ source: setting.source, seen: show(setting.text), expected });
  return undefined;
}
