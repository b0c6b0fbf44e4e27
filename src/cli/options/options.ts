import { type Command, InvalidArgumentError } from 'commander';
import { NAME_PATTERN } from '../../client/index.ts';
import type { ConfigFlags } from '../../config/index.ts';
import type { SkipUntil } from '../../daemon/index.ts';
import { DURATION_FORM, durationOf } from '../../kernel/index.ts';

/** The options of every command, and parsers of single values. An invalid value exits with 2. */

export interface GlobalOptions extends ConfigFlags {
  readonly json?: boolean;
  readonly verbose?: boolean;
  readonly prefix?: string;
}

export function addGlobalOptions(program: Command): void {
  program
    .option('--json', 'print one JSON value per line')
    .option('--verbose', 'print more details on stderr')
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
}

/** A parser that accepts what fits: `read` returns null for anything else. */
export const parser =
  <T>(read: (value: string) => T | null, expected: string) =>
  (value: string): T => {
    const found = read(value);
    if (found !== null) return found;
    throw new InvalidArgumentError(expected);
  };
export const matching = (pattern: RegExp, expected: string) =>
  parser((value) => (pattern.test(value) ? value : null), expected);
const numberMatching = (pattern: RegExp, expected: string) =>
  parser((value) => (pattern.test(value) ? Number(value) : null), expected);

export const conversationId = matching(
  NAME_PATTERN,
  'A conversation id is 1 to 128 letters, digits, _ or -.',
);
export const publisherName = matching(NAME_PATTERN, 'A publisher is 1 to 128 letters, digits, _ or -.');
export const entryIndex = numberMatching(/^\d{1,15}$/, 'Give the index of an entry: a whole number from 0.');
export const wholeNumber = numberMatching(/^[1-9]\d{0,14}$/, 'Give a whole number from 1.');

/** Milliseconds. */
export const duration = parser(durationOf, `Give ${DURATION_FORM}.`);

/** A number is a sequence, never a year. */
export const skipUntil = parser((value): SkipUntil | null => {
  if (value === 'now') return { kind: 'now' };
  if (/^\d{1,15}$/.test(value)) return { kind: 'sequence', sequence: Number(value) };
  const time = /^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? null : { kind: 'time', time };
}, 'Give a sequence of the ingress stream, an ISO time such as 2026-11-24T09:30:00Z, or now.');

/** Names, separated by commas. */
export const listOf = (what: string) =>
  parser((value) => {
    const names = value.split(',').map((name) => name.trim());
    return names.includes('') ? null : names;
  }, `Give ${what}, separated by commas.`);

/** A command about one conversation. */
export function ofConversation(program: Command, name: string, description: string): Command {
  return program.command(name).description(description).argument('<conversation>', 'its id', conversationId);
}
