import { resolve } from 'node:path';
import { type Environment, variable, variableOf } from './environment.ts';
import { Problems, show } from './problems.ts';
import type { HttpFile } from './schema.ts';
import { Secret } from './secret.ts';

/**
 * What is not in `parley.yaml` because it belongs to one machine: where the daemon keeps its data, which server it
 * joins, where it listens. A flag wins over its variable, and that over the default.
 */

/** As a person typed them; each name is the flag's in camel case. */
export interface ConfigFlags {
  readonly data?: string;
  readonly nats?: string;
  readonly natsUser?: string;
  readonly natsPassword?: string;
  readonly natsToken?: string;
  readonly natsCredentials?: string;
  readonly natsNkey?: string;
  readonly natsTlsCa?: string;
  readonly natsTlsCert?: string;
  readonly natsTlsKey?: string;
  readonly store?: string;
  readonly http?: string;
  readonly httpToken?: string;
}

/** How to be somebody on a NATS server; user and password of the URL included. */
export interface NatsCredentials {
  readonly user?: string;
  readonly password?: Secret;
  readonly token?: Secret;
  /** Path of a `.creds` file. */
  readonly credentials?: string;
  /** Path of a file with an nkey seed. */
  readonly nkey?: string;
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

/** `url` holds no user or password. */
export interface NatsServer extends NatsCredentials {
  readonly kind: 'url';
  readonly url: string;
}

export type NatsSetting = { readonly kind: 'managed' } | NatsServer;

export interface HttpSetting {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly token: Secret | null;
  /** By what they allow, the one above included. */
  readonly tokens: readonly HttpToken[];
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  readonly requestsPerSecond: number;
}

export interface HttpToken {
  readonly role: 'read' | 'post' | 'approve' | 'operate';
  readonly secret: Secret;
  /** Null: may act as anybody. */
  readonly publisher: string | null;
}

export interface DaemonSettings {
  /** Absolute. */
  readonly data: string;
  readonly nats: NatsSetting;
  /** The nats-server that `managed` runs: an absolute path, or a name to be found on the PATH; null: one is found. */
  readonly natsBinary: string | null;
  readonly store: 'file' | 'jetstream';
  readonly http: HttpSetting | null;
}

interface Setting {
  readonly flag: string;
  readonly variable: string;
}

const SETTINGS: Readonly<Record<keyof ConfigFlags, Setting>> = {
  data: { flag: '--data', variable: 'PARLEY_DATA' },
  nats: { flag: '--nats', variable: 'PARLEY_NATS' },
  natsUser: { flag: '--nats-user', variable: 'PARLEY_NATS_USER' },
  natsPassword: { flag: '--nats-password', variable: 'PARLEY_NATS_PASSWORD' },
  natsToken: { flag: '--nats-token', variable: 'PARLEY_NATS_TOKEN' },
  natsCredentials: { flag: '--nats-credentials', variable: 'PARLEY_NATS_CREDENTIALS' },
  natsNkey: { flag: '--nats-nkey', variable: 'PARLEY_NATS_NKEY' },
  natsTlsCa: { flag: '--nats-tls-ca', variable: 'PARLEY_NATS_TLS_CA' },
  natsTlsCert: { flag: '--nats-tls-cert', variable: 'PARLEY_NATS_TLS_CERT' },
  natsTlsKey: { flag: '--nats-tls-key', variable: 'PARLEY_NATS_TLS_KEY' },
  store: { flag: '--store', variable: 'PARLEY_STORE' },
  http: { flag: '--http', variable: 'PARLEY_HTTP' },
  httpToken: { flag: '--http-token', variable: 'PARLEY_HTTP_TOKEN' },
};

/** For whoever connects to a daemon that runs; wins over PARLEY_NATS there. */
const CLIENT_URL_VARIABLE = 'PARLEY_NATS_URL';
export const CONFIG_VARIABLE = 'PARLEY_CONFIG';
export const TELEMETRY_VARIABLE = 'PARLEY_TELEMETRY';
/** Not ours alone: other programs that run a nats-server read it too. */
const NATS_BINARY_VARIABLE = 'NATS_BIN';

/** Every variable of this file. */
export const SETTING_VARIABLES: readonly string[] = [
  ...Object.values(SETTINGS).map((setting) => setting.variable),
  CLIENT_URL_VARIABLE,
  CONFIG_VARIABLE,
  TELEMETRY_VARIABLE,
  NATS_BINARY_VARIABLE,
];

const DEFAULT_DATA = 'data';
const DEFAULT_HTTP = '127.0.0.1:7420';

interface Said {
  readonly text: string;
  /** `flag --store` or `environment PARLEY_STORE`. */
  readonly source: string;
}

/** What the settings are read from. */
interface SettingsInput {
  readonly env: Environment;
  readonly flags: ConfigFlags;
  readonly workingDirectory: string;
}

function said(input: SettingsInput, name: keyof ConfigFlags): Said | null {
  const flag = input.flags[name];
  if (flag !== undefined) return { text: flag, source: `flag ${SETTINGS[name].flag}` };
  const text = variable(input.env, SETTINGS[name].variable);
  return text === undefined ? null : { text, source: `environment ${SETTINGS[name].variable}` };
}

export function resolveSettings(
  input: SettingsInput,
  httpFile: HttpFile,
  problems: Problems,
): DaemonSettings {
  const nats = said(input, 'nats');
  return {
    data: resolve(input.workingDirectory, said(input, 'data')?.text || DEFAULT_DATA),
    nats:
      nats === null || nats.text === 'managed'
        ? { kind: 'managed' }
        : natsServer(nats, 'managed, or a URL such as nats://127.0.0.1:4222', input, problems),
    natsBinary: natsBinary(input),
    store: store(said(input, 'store'), problems),
    http: http(input, httpFile, problems),
  };
}

/** Whether it can be run is found out when it is: a daemon that joins a server by URL does not need it. */
function natsBinary({ env, workingDirectory }: SettingsInput): string | null {
  const text = variable(env, NATS_BINARY_VARIABLE);
  if (text === undefined) return null;
  return text.includes('/') ? resolve(workingDirectory, text) : text;
}

export function resolveTelemetry(env: Environment, problems: Problems): 'console' | 'off' {
  const text = variable(env, TELEMETRY_VARIABLE) ?? 'off';
  if (text === 'console' || text === 'off') return text;
  problems.add({
    source: `environment ${TELEMETRY_VARIABLE}`,
    key: '',
    seen: show(text),
    expected: 'one of console, off',
  });
  return 'off';
}

/** Where a command looks for a running daemon: at `nats`, or else at the address that `up` left in `data`. */
export interface DaemonAddress {
  readonly nats: NatsServer | null;
  readonly data: string;
  /** null: the environment names none. */
  readonly subjectPrefix: string | null;
}

export function resolveDaemonAddress(options: {
  readonly env: Environment;
  readonly flags?: ConfigFlags;
  readonly workingDirectory?: string;
}): DaemonAddress {
  const problems = new Problems();
  const workingDirectory = options.workingDirectory ?? process.cwd();
  const input = { env: options.env, flags: options.flags ?? {}, workingDirectory };
  const clientUrl = variable(options.env, CLIENT_URL_VARIABLE);
  const own: Said | null =
    clientUrl !== undefined && input.flags.nats === undefined
      ? { text: clientUrl, source: `environment ${CLIENT_URL_VARIABLE}` }
      : said(input, 'nats');
  const address: DaemonAddress = {
    nats:
      own === null || own.text === 'managed'
        ? null
        : natsServer(own, 'a URL such as nats://127.0.0.1:4222', input, problems),
    data: resolve(workingDirectory, said(input, 'data')?.text || DEFAULT_DATA),
    subjectPrefix: variable(options.env, variableOf(['subjectPrefix'])) ?? null,
  };
  problems.throwIfAny();
  return address;
}

const NATS_URL = /^(nats|tls|ws|wss):\/\/(?:([^@/]*)@)?([^@/\s]+)\/?$/;
const BARE_SERVER = /^[A-Za-z0-9.-]+(:\d+)?$/;

function natsServer(nats: Said, expected: string, input: SettingsInput, problems: Problems): NatsServer {
  const match = NATS_URL.exec(BARE_SERVER.test(nats.text) ? `nats://${nats.text}` : nats.text);
  if (!match) {
    const seen = nats.text.includes('@') ? '[hidden: it may hold a password]' : show(nats.text);
    problems.add({ source: nats.source, key: '', seen, expected });
    return { kind: 'url', url: '' };
  }
  const [user, password] = (match[2] ?? '').split(':').map(decoded);
  const ownPassword = said(input, 'natsPassword')?.text ?? password;
  const ownUser = said(input, 'natsUser')?.text ?? user;
  const token = said(input, 'natsToken')?.text;
  return {
    kind: 'url',
    url: `${match[1]}://${match[3]}`,
    ...(ownUser ? { user: ownUser } : {}),
    ...(ownPassword === undefined ? {} : { password: new Secret(ownPassword) }),
    ...(token === undefined ? {} : { token: new Secret(token) }),
    ...files(input, { credentials: 'natsCredentials', nkey: 'natsNkey' }),
    ...tls(input),
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

function store(setting: Said | null, problems: Problems): 'file' | 'jetstream' {
  if (setting === null || setting.text === 'file') return 'file';
  if (setting.text === 'jetstream') return 'jetstream';
  problems.add({
    source: setting.source,
    key: '',
    seen: show(setting.text),
    expected: 'one of file, jetstream',
  });
  return 'file';
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

function http(input: SettingsInput, file: HttpFile, problems: Problems): HttpSetting | null {
  const setting = said(input, 'http') ?? { text: DEFAULT_HTTP, source: 'default' };
  if (setting.text === 'off') return null;
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(setting.text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) {
    const expected = 'HOST:PORT such as 127.0.0.1:7420 (port 0: any free one), or off';
    problems.add({ source: setting.source, key: '', seen: show(setting.text), expected });
    return null;
  }
  const token = said(input, 'httpToken')?.text;
  const tokens = httpTokens(token, file);
  if (tokens.length === 0 && !LOOPBACK.test(host)) {
    problems.add({
      source: setting.source,
      key: '',
      seen: show(setting.text),
      expected: 'a loopback address, since there is no token',
      hint: `set ${SETTINGS.httpToken.variable} to serve other machines`,
    });
  }
  const { hosts, origins, requestsPerSecond } = file;
  const own = token === undefined ? null : new Secret(token);
  return { host, port, token: own, tokens, hosts, origins, requestsPerSecond };
}

/** Who acts where the token of a role names nobody. */
const HTTP_PUBLISHER = 'http';

function httpTokens(own: string | undefined, { tokens, publishers }: HttpFile): HttpToken[] {
  const known: HttpToken[] = [];
  const add = (role: HttpToken['role'], text: string | undefined, publisher: string | null) => {
    if (text !== undefined) known.push({ role, secret: new Secret(text), publisher });
  };
  add('operate', own, publishers.operate ?? null);
  add('operate', tokens.operate, publishers.operate ?? null);
  add('approve', tokens.approve, publishers.approve ?? HTTP_PUBLISHER);
  add('post', tokens.post, publishers.post ?? HTTP_PUBLISHER);
  add('read', tokens.read, HTTP_PUBLISHER);
  return known;
}
