import { type Environment, variable } from '../problems/environment.ts';
import type { NatsFile } from './http-file.ts';

/** The value of a setting: from its flag, its variable, or `nats` of `parley.yaml`, in this order. */

/** Flags as typed; each name is the flag's in camel case. */
export interface ConfigFlags {
  readonly data?: string;
  readonly nats?: string;
  readonly natsUser?: string;
  readonly natsPassword?: string;
  readonly natsPasswordFile?: string;
  readonly natsToken?: string;
  readonly natsTokenFile?: string;
  readonly natsCredentials?: string;
  readonly natsNkey?: string;
  readonly natsTlsCa?: string;
  readonly natsTlsCert?: string;
  readonly natsTlsKey?: string;
  readonly natsInboxPrefix?: string;
  readonly store?: string;
  readonly http?: string;
  readonly httpToken?: string;
}

interface Setting {
  readonly flag: string;
  readonly variable: string;
}

export const SETTINGS: Readonly<Record<keyof ConfigFlags, Setting>> = {
  data: { flag: '--data', variable: 'PARLEY_DATA' },
  nats: { flag: '--nats', variable: 'PARLEY_NATS' },
  natsUser: { flag: '--nats-user', variable: 'PARLEY_NATS_USER' },
  natsPassword: { flag: '--nats-password', variable: 'PARLEY_NATS_PASSWORD' },
  natsPasswordFile: { flag: '--nats-password-file', variable: 'PARLEY_NATS_PASSWORD_FILE' },
  natsToken: { flag: '--nats-token', variable: 'PARLEY_NATS_TOKEN' },
  natsTokenFile: { flag: '--nats-token-file', variable: 'PARLEY_NATS_TOKEN_FILE' },
  natsCredentials: { flag: '--nats-credentials', variable: 'PARLEY_NATS_CREDENTIALS' },
  natsNkey: { flag: '--nats-nkey', variable: 'PARLEY_NATS_NKEY' },
  natsTlsCa: { flag: '--nats-tls-ca', variable: 'PARLEY_NATS_TLS_CA' },
  natsTlsCert: { flag: '--nats-tls-cert', variable: 'PARLEY_NATS_TLS_CERT' },
  natsTlsKey: { flag: '--nats-tls-key', variable: 'PARLEY_NATS_TLS_KEY' },
  natsInboxPrefix: { flag: '--nats-inbox-prefix', variable: 'PARLEY_NATS_INBOX_PREFIX' },
  store: { flag: '--store', variable: 'PARLEY_STORE' },
  http: { flag: '--http', variable: 'PARLEY_HTTP' },
  httpToken: { flag: '--http-token', variable: 'PARLEY_HTTP_TOKEN' },
};

export interface SettingValue {
  readonly text: string;
  /** `flag --store` or `environment PARLEY_STORE`. */
  readonly source: string;
}

/** The sources of settings. */
export interface SettingsInput {
  readonly env: Environment;
  readonly flags: ConfigFlags;
  readonly workingDirectory: string;
  /** `nats` of `parley.yaml`, if that is read. */
  readonly nats?: NatsFile;
}

export function settingValue(input: SettingsInput, name: keyof ConfigFlags): SettingValue | null {
  const flag = input.flags[name];
  if (flag !== undefined) return { text: flag, source: `flag ${SETTINGS[name].flag}` };
  const text = variable(input.env, SETTINGS[name].variable);
  if (text !== undefined) return { text, source: `environment ${SETTINGS[name].variable}` };
  const [key, value] = natsKey(input.nats, name);
  return value === undefined ? null : { text: value, source: `parley.yaml: ${key}` };
}

/** The key of `parley.yaml` that corresponds to a NATS flag, and its value. */
function natsKey(file: NatsFile | undefined, name: keyof ConfigFlags): [string, string | undefined] {
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
