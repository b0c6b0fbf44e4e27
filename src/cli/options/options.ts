import { type Command, InvalidArgumentError, Option } from 'commander';
import { NAME_PATTERN } from '../../client/index.ts';
import type { ConfigFlags } from '../../config/index.ts';
import type { SkipUntil } from '../../daemon/index.ts';
import { DURATION_FORM, durationOf } from '../../kernel/index.ts';

/** The options of every command, and parsers of single values. An invalid value exits with 2. */

export interface GlobalOptions extends ConfigFlags {
  readonly json?: boolean;
  readonly verbose?: boolean;
  readonly prefix?: string;
  readonly context?: string;
  readonly natsCreds?: string;
  readonly natsCa?: string;
  readonly natsCert?: string;
  readonly natsKey?: string;
}

export function addGlobalOptions(program: Command): void {
  program
    .option('--json', 'print one JSON value per line')
    .option('--verbose', 'print more details on stderr')
    .option('--context <name>', 'a saved server: `parley context` (PARLEY_CONTEXT)')
    .option('--data <dir>', "the daemon's data directory (PARLEY_DATA; default: data)")
    .option(
      '--nats <urls>',
      "the daemon's NATS server, or several with commas (PARLEY_NATS_URL; default: as `up` saved it)",
    )
    .option('--nats-user <name>', 'user on that server (PARLEY_NATS_USER)')
    .option('--nats-password-file <file>', 'a file with its password (PARLEY_NATS_PASSWORD_FILE)')
    .option('--nats-password <password>', 'visible in process lists (PARLEY_NATS_PASSWORD is safer)')
    .option('--nats-token-file <file>', 'a file with a token (PARLEY_NATS_TOKEN_FILE)')
    .option('--nats-token <token>', 'visible in process lists (PARLEY_NATS_TOKEN is safer)')
    .option('--nats-credentials <file>', 'a .creds file (PARLEY_NATS_CREDENTIALS)')
    .option('--nats-nkey <file>', 'a file with an nkey seed (PARLEY_NATS_NKEY)')
    .option('--nats-tls-ca <file>', 'certificate authority (PARLEY_NATS_TLS_CA)')
    .option('--nats-tls-cert <file>', 'client certificate (PARLEY_NATS_TLS_CERT)')
    .option('--nats-tls-key <file>', 'its key (PARLEY_NATS_TLS_KEY)')
    .option('--nats-inbox-prefix <prefix>', 'prefix of its reply subjects (PARLEY_NATS_INBOX_PREFIX)')
    .option('--prefix <prefix>', "the daemon's subjectPrefix (PARLEY_SUBJECT_PREFIX; default: parley)");
  for (const name of ['--nats-creds', '--nats-ca', '--nats-cert', '--nats-key']) {
    program.addOption(new Option(`${name} <file>`).hideHelp()); // the spelling of the `nats` command
  }
}

/** The global options that are part of the configuration. */
export function configFlags(options: GlobalOptions): ConfigFlags {
  const flags: Record<keyof ConfigFlags, string | undefined> = {
    data: options.data,
    nats: options.nats,
    natsUser: options.natsUser,
    natsPassword: options.natsPassword,
    natsPasswordFile: options.natsPasswordFile,
    natsToken: options.natsToken,
    natsTokenFile: options.natsTokenFile,
    natsCredentials: options.natsCredentials ?? options.natsCreds,
    natsNkey: options.natsNkey,
    natsTlsCa: options.natsTlsCa ?? options.natsCa,
    natsTlsCert: options.natsTlsCert ?? options.natsCert,
    natsTlsKey: options.natsTlsKey ?? options.natsKey,
    natsInboxPrefix: options.natsInboxPrefix,
    store: options.store,
    http: options.http,
    httpToken: options.httpToken,
  };
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
}

export function conversationId(value: string): string {
  if (NAME_PATTERN.test(value)) return value;
  throw new InvalidArgumentError('A conversation id is 1 to 128 letters, digits, _ or -.');
}

/** Milliseconds. */
export function duration(value: string): number {
  const found = durationOf(value);
  if (found !== null) return found;
  throw new InvalidArgumentError(`Give ${DURATION_FORM}.`);
}

export function publisherName(value: string): string {
  if (NAME_PATTERN.test(value)) return value;
  throw new InvalidArgumentError('A publisher is 1 to 128 letters, digits, _ or -.');
}

export function entryIndex(value: string): number {
  if (/^\d{1,15}$/.test(value)) return Number(value);
  throw new InvalidArgumentError('Give the index of an entry: a whole number from 0.');
}

/** A number is a sequence, never a year. */
export function skipUntil(value: string): SkipUntil {
  if (value === 'now') return { kind: 'now' };
  if (/^\d{1,15}$/.test(value)) return { kind: 'sequence', sequence: Number(value) };
  const time = /^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN;
  if (!Number.isNaN(time)) return { kind: 'time', time };
  throw new InvalidArgumentError(
    'Give a sequence of the ingress stream, an ISO time such as 2026-11-24T09:30:00Z, or now.',
  );
}

export function slugs(value: string): string[] {
  const found = value.split(',').map((slug) => slug.trim());
  if (found.every((slug) => slug !== '')) return found;
  throw new InvalidArgumentError('Give slugs of agents, separated by commas: pm,dev.');
}

export function wholeNumber(value: string): number {
  if (/^[1-9]\d{0,14}$/.test(value)) return Number(value);
  throw new InvalidArgumentError('Give a whole number from 1.');
}
