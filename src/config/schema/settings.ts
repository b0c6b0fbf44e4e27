import { join, resolve } from 'node:path';
import { isBareServer, PACKAGE, percentDecoded, splitUrls } from '../../kernel/index.ts';
import { withDotenv } from '../files/dotenv.ts';
import { type Problem, Problems, show } from '../problems.ts';
import type { HttpFile } from './http-file.ts';
import { PROVIDERS } from './model-file.ts';
import type { TelemetryFile } from './schema.ts';
import { Secret } from './secret.ts';
import {
  type ConfigFlags,
  type Environment,
  SETTINGS,
  type SettingsInput,
  type SettingValue,
  settingValue,
  settingVariable,
  variable,
  variableOf,
} from './setting-sources.ts';

/**
 * Settings of one machine, which are not in `parley.yaml`: the data directory, the NATS server, the HTTP address. A flag
 * overrides its variable, and that overrides the default.
 */

type NatsSetting = { readonly kind: 'managed' } | NatsServer;

interface HttpSetting
  extends Readonly<
    Pick<
      HttpFile,
      | 'hosts'
      | 'origins'
      | 'fetch'
      | 'stopOnDisconnect'
      | 'requestsPerSecond'
      | 'readers'
      | 'readersPerCaller'
    >
  > {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly token: Secret | null;
  /** All tokens, including `token`. */
  readonly tokens: readonly HttpToken[];
  /** True: requests need a token. If none is configured, the daemon generates one. */
  readonly isGuarded: boolean;
  /** The publisher of the daemon's own token; null: any publisher. */
  readonly operator: string | null;
  /** The address for other machines, without a trailing slash; null: none. */
  readonly publicUrl: string | null;
}

export interface HttpToken {
  readonly role: 'read' | 'post' | 'approve' | 'operate';
  readonly secret: Secret;
  /** Null: any publisher. */
  readonly publisher: string | null;
  /** The person at that publisher who owns the token. */
  readonly name?: string;
  /** A client of `/v1` that disconnects ends the turns of its request. */
  readonly stopOnDisconnect: boolean;
}

export interface DaemonSettings {
  /** Absolute. */
  readonly data: string;
  readonly nats: NatsSetting;
  /** The nats-server for `managed`: an absolute path, or a name on the PATH; null: searched for. */
  readonly natsBinary: string | null;
  readonly store: 'file' | 'jetstream';
  readonly http: HttpSetting | null;
}

/** For clients of a running daemon; overrides PARLEY_NATS there. */
const CLIENT_URL_VARIABLE = 'PARLEY_NATS_URL';
export const CONFIG_VARIABLE = 'PARLEY_CONFIG';
const TELEMETRY_VARIABLE = 'PARLEY_TELEMETRY';
/** Other programs that run a nats-server read it too. */
const NATS_BINARY_VARIABLE = 'NATS_BIN';

/** Every variable of this file. */
export const SETTING_VARIABLES: readonly string[] = [
  ...SETTINGS.map(settingVariable),
  CLIENT_URL_VARIABLE,
  CONFIG_VARIABLE,
  TELEMETRY_VARIABLE,
  NATS_BINARY_VARIABLE,
];

/** For tests. A configuration ignores it; `parley up --allow-crash-points` reads it. */
export const CRASH_POINTS_VARIABLE = 'PARLEY_CRASH_POINTS';

/** Variables that a `.env` file cannot set (DOTENV-3). */
export const IGNORED_IN_FILES: readonly string[] = [
  CONFIG_VARIABLE,
  NATS_BINARY_VARIABLE,
  ...Object.values(PROVIDERS).map(({ urlVariable }) => urlVariable),
  CRASH_POINTS_VARIABLE,
];

/** In the working directory. */
export const DEFAULT_CONFIG = 'config';
export const SHIPPED_CONFIG: string = join(PACKAGE, 'config');
const DEFAULT_DATA = 'data';
const DEFAULT_HTTP = '127.0.0.1:7420';

export function resolveSettings(
  input: SettingsInput,
  httpFile: HttpFile,
  problems: Problems,
): DaemonSettings {
  const nats = settingValue(input, 'nats');
  return {
    data: resolve(input.workingDirectory, settingValue(input, 'data')?.text || DEFAULT_DATA),
    nats:
      nats === null || nats.text === 'managed'
        ? { kind: 'managed' }
        : natsServer(nats, 'managed, or a URL such as nats://127.0.0.1:4222', input, problems),
    natsBinary: natsBinary(input),
    store: oneOf(settingValue(input, 'store'), ['file', 'jetstream'], problems),
    http: http(input, httpFile, problems),
  };
}

/** Not checked here: a daemon that joins a server by URL does not need it. */
function natsBinary({ env, workingDirectory }: SettingsInput): string | null {
  const text = variable(env, NATS_BINARY_VARIABLE);
  if (text === undefined) return null;
  return text.includes('/') ? resolve(workingDirectory, text) : text;
}

export function resolveTelemetry(env: Environment, problems: Problems): 'console' | 'off' {
  const text = variable(env, TELEMETRY_VARIABLE);
  const setting = text === undefined ? null : { text, source: `environment ${TELEMETRY_VARIABLE}` };
  return oneOf(setting, ['off', 'console'], problems);
}

/** The first value is the default. */
function oneOf<const Value extends string>(
  setting: SettingValue | null,
  values: readonly [Value, ...Value[]],
  problems: Problems,
): Value {
  const found = values.find((value) => value === setting?.text);
  if (setting && !found) {
    const expected = `one of ${values.toSorted().join(', ')}`;
    problems.add({ source: setting.source, seen: show(setting.text), expected });
  }
  return found ?? values[0];
}

/** The path of traces below an endpoint. */
const PATH = '/v1/traces';
const WHOLE = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
const BASE = 'OTEL_EXPORTER_OTLP_ENDPOINT';

export interface TracesConfig {
  /** The address of the collector, with its path. */
  readonly url: string;
  readonly headers: Readonly<Record<string, Secret>>;
  /** The name of this service in traces. */
  readonly service: string;
  /** Spans contain texts of the conversation. */
  readonly content: boolean;
}

/** Where traces are sent: the standard variables of OpenTelemetry, then `telemetry`. Null: nowhere. */
export function resolveTraces(
  { otlp: { endpoint, headers }, content }: TelemetryFile,
  env: Environment,
  problems: Problems,
): TracesConfig | null {
  if (variable(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return null;
  const base = address(env, BASE, problems) ?? endpoint;
  const url = address(env, WHOLE, problems) ?? (base === null ? null : `${base.replace(/\/+$/, '')}${PATH}`);
  if (url === null) return null;
  return {
    url,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, new Secret(value)])),
    service: variable(env, 'OTEL_SERVICE_NAME') ?? 'parleyd',
    content,
  };
}

function address(env: Environment, name: string, problems: Problems): string | null {
  const text = variable(env, name);
  if (text === undefined || (/^https?:\/\//.test(text) && URL.canParse(text))) return text ?? null;
  const expected = 'a URL that begins with http:// or https://';
  problems.add({ source: `environment ${name}`, seen: show(text), expected });
  return null;
}

/**
 * The environment without credentials of NATS, for a server that a folder names (`.env`, `parley.yaml`, `connection.json`).
 *
 * OWN-SOURCE-1  A credential of the environment is sent only to a server, or the daemon of a data directory, that the
 *                environment or the command line names. A command in a folder of another author must not send it elsewhere.
 */
export function withoutCredentials(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !CREDENTIALS.includes(name)));
}

const CREDENTIALS: readonly string[] = SETTINGS.filter((name) =>
  /^nats(User|Password|Token|Credentials|Nkey|TlsCert|TlsKey)/.test(name),
).map(settingVariable);

/** Whether the environment or a flag names the server of the configuration. */
export function namesServer(env: Environment, flags: ConfigFlags): boolean {
  return flags.nats !== undefined || variable(env, settingVariable('nats')) !== undefined;
}

/** Where a command finds a running daemon: at `nats`, else at the address that `up` saved in `data`. */
export function resolveDaemonAddress(options: {
  readonly env: Environment;
  readonly flags?: ConfigFlags;
  readonly workingDirectory?: string;
  /** The server in the `connection.json` of the data directory. */
  readonly found?: string;
}) {
  const problems = new Problems();
  const workingDirectory = options.workingDirectory ?? process.cwd();
  const directory = resolve(workingDirectory, variable(options.env, CONFIG_VARIABLE) ?? DEFAULT_CONFIG);
  const folders = { directory, workingDirectory, ignored: IGNORED_IN_FILES };
  const { env } = withDotenv(options.env, folders, problems); // `up` and `doctor` show the notices
  const { flags = {}, found } = options;
  const clientUrl = variable(env, CLIENT_URL_VARIABLE);
  const isByClientUrl = clientUrl !== undefined && flags.nats === undefined;
  const given = isByClientUrl ? variable(options.env, CLIENT_URL_VARIABLE) : undefined;
  const isOwn =
    found === undefined
      ? given !== undefined || (!isByClientUrl && namesServer(options.env, flags))
      : (flags.data ?? variable(options.env, settingVariable('data'))) !== undefined;
  const credentials = isOwn ? env : withDotenv(withoutCredentials(options.env), folders, problems).env;
  const input = {
    env: credentials,
    flags: found === undefined ? flags : { ...flags, nats: found },
    workingDirectory,
  };
  const own: SettingValue | null =
    isByClientUrl && found === undefined
      ? { text: clientUrl, source: `environment ${CLIENT_URL_VARIABLE}` }
      : settingValue(input, 'nats');
  const address = {
    nats:
      own === null || own.text === 'managed'
        ? null
        : natsServer(own, 'a URL such as nats://127.0.0.1:4222', input, problems),
    data: resolve(workingDirectory, settingValue(input, 'data')?.text || DEFAULT_DATA),
    /** Null: not set in the environment. */
    subjectPrefix: variable(env, variableOf(['subjectPrefix'])) ?? null,
    user: variable(env, settingVariable('natsUser')) ?? null,
  };
  problems.throwIfAny();
  return address;
}

/** In place of a token: requests need none, unless one is configured elsewhere. */
const NO_TOKEN = 'none';
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

function http(input: SettingsInput, file: HttpFile, problems: Problems): HttpSetting | null {
  const setting = settingValue(input, 'http') ?? { text: DEFAULT_HTTP, source: 'default' };
  if (setting.text === 'off') return null;
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(setting.text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) {
    const expected = 'HOST:PORT such as 127.0.0.1:7420 (port 0: any free one), or off';
    problems.add({ source: setting.source, seen: show(setting.text), expected });
    return null;
  }
  const { text, source } = settingValue(input, 'httpToken') ?? {};
  const token = text === NO_TOKEN ? undefined : text;
  const tokens = httpTokens({ text: token, source }, file, problems);
  if (tokens.length === 0 && !LOOPBACK.test(host)) {
    problems.add({
      source: setting.source,
      seen: show(setting.text),
      expected: 'a loopback address, since no token is configured',
      hint: `set ${settingVariable('httpToken')} to serve other machines`,
    });
  }
  const { hosts, origins, fetch, stopOnDisconnect, requestsPerSecond, readers, readersPerCaller } = file;
  const publicUrl = file.publicUrl?.replace(/\/+$/, '') ?? null;
  const own = token === undefined ? null : new Secret(token);
  const isGuarded = tokens.length > 0 || text !== NO_TOKEN;
  const operator = file.publishers.operate ?? null;
  const limits = { stopOnDisconnect, requestsPerSecond, readers, readersPerCaller, isGuarded, operator };
  return { host, port, token: own, tokens, hosts, origins, fetch, publicUrl, ...limits };
}

/** The publisher for tokens of a role without a configured publisher. */
const HTTP_PUBLISHER = 'http';

/** Characters. A shorter token can be guessed. */
const SHORTEST_TOKEN = 16;

function httpTokens(
  own: { readonly text: string | undefined; readonly source: string | undefined },
  { tokens, publishers, people, stopOnDisconnect: stops }: HttpFile,
  problems: Problems,
): HttpToken[] {
  const { operate = null, approve = HTTP_PUBLISHER, post = HTTP_PUBLISHER } = publishers;
  const rows: readonly (Omit<HttpToken, 'secret' | 'stopOnDisconnect'> & {
    key: string;
    text: string | undefined;
    stopOnDisconnect?: boolean | undefined;
  })[] = [
    { key: own.source ?? '', role: 'operate', text: own.text, publisher: operate },
    { key: 'http.tokens.operate', role: 'operate', text: tokens.operate, publisher: operate },
    { key: 'http.tokens.approve', role: 'approve', text: tokens.approve, publisher: approve },
    { key: 'http.tokens.post', role: 'post', text: tokens.post, publisher: post },
    { key: 'http.tokens.read', role: 'read', text: tokens.read, publisher: HTTP_PUBLISHER },
    ...people.map(({ token: text, ...person }, place) => ({
      ...person,
      key: `http.people.${place}.token`,
      text,
    })),
  ];
  const keys = new Map<string, string>();
  const known: HttpToken[] = [];
  for (const { key, text, ...token } of rows) {
    if (text === undefined) continue;
    const fault = faultOf(text, keys.get(text));
    if (fault) problems.add({ source: key, ...fault, hint: 'such as `openssl rand -hex 32` prints' });
    keys.set(text, key);
    const { stopOnDisconnect = stops } = token;
    known.push({ ...token, stopOnDisconnect, secret: new Secret(text) });
  }
  return known;
}

function faultOf(token: string, same: string | undefined): Pick<Problem, 'seen' | 'expected'> | null {
  if (same !== undefined) return { seen: `the same as ${same}`, expected: 'a token of its own' };
  if (token.length >= SHORTEST_TOKEN) return null;
  return { seen: `${token.length} characters`, expected: `at least ${SHORTEST_TOKEN} characters` };
}

/**
 * The NATS server and its credentials, from the URL, flags, variables and files.
 * Includes user and password of the URL.
 */
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

function natsServer(
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
  return servers.map(({ url, login }) => url.replace('://', () => `://${login ?? shared}@`)).join(',');
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
