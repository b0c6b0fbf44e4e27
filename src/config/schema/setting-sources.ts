import type { NatsFile } from './http-file.ts';

/** The value of a setting: from its flag, its variable, or `nats` of `parley.yaml`, in this order. Callers pass the environment. */

export type Environment = Readonly<Record<string, string | undefined>>;

/** An empty variable counts as unset. */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === '' ? undefined : value;
}

/** `PARLEY_` and the path of a key in capitals, without repeated words: `context.contextMaxChars` → `PARLEY_CONTEXT_MAX_CHARS`. */
export function variableOf(path: readonly string[]): string {
  const words = path.flatMap((part) => part.replaceAll(/([a-z])([A-Z])/g, '$1_$2').split(/[_-]/));
  const upper = words.map((word) => word.toUpperCase());
  return ['PARLEY', ...upper.filter((word, place) => word !== upper[place - 1])].join('_');
}

/** The flag `--nats-user` is `natsUser`, its variable `PARLEY_NATS_USER`. */
export const SETTINGS = [
  ...([
    'data',
    'nats',
    'natsUser',
    'natsPassword',
    'natsPasswordFile',
    'natsToken',
    'natsTokenFile',
  ] as const),
  ...(['natsCredentials', 'natsNkey', 'natsTlsCa', 'natsTlsCert', 'natsTlsKey', 'natsInboxPrefix'] as const),
  ...(['store', 'http', 'httpToken'] as const),
] as const;
type SettingName = (typeof SETTINGS)[number];

/** Flags as typed. */
export type ConfigFlags = { readonly [Name in SettingName]?: string };

export function flagOf(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

export const settingVariable = (name: SettingName): string => variableOf([name]);

export interface SettingValue {
  readonly text: string;
  /** `flag --store` or `environment PARLEY_STORE`. */
  readonly source: string;
}

export interface SettingsInput {
  readonly env: Environment;
  readonly flags: ConfigFlags;
  readonly workingDirectory: string;
  /** `nats` of `parley.yaml`, if that is read. */
  readonly nats?: NatsFile;
}

export function settingValue(input: SettingsInput, name: SettingName): SettingValue | null {
  const flag = input.flags[name];
  if (flag !== undefined) return { text: flag, source: `flag ${flagOf(name)}` };
  const text = variable(input.env, settingVariable(name));
  if (text !== undefined) return { text, source: `environment ${settingVariable(name)}` };
  const [key, value] = natsKey(input.nats, name);
  return value === undefined ? null : { text: value, source: `parley.yaml: ${key}` };
}

/** The key of `parley.yaml` that corresponds to a NATS flag, and its value. */
function natsKey(file: NatsFile | undefined, name: SettingName): [string, string | undefined] {
  if (name === 'nats') {
    const server = file?.server;
    return ['nats.server', typeof server === 'object' ? server.join(',') : server];
  }
  const [, isTls, rest = ''] = /^nats(Tls)?(\w+)$/.exec(name) ?? [];
  const key = rest.charAt(0).toLowerCase() + rest.slice(1);
  const section: Readonly<Record<string, unknown>> | undefined = isTls ? file?.tls : file;
  const value = section?.[key];
  return [isTls ? `nats.tls.${key}` : `nats.${key}`, typeof value === 'string' ? value : undefined];
}
