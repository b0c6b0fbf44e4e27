import { z } from 'zod';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { count } from './model-file.ts';

/** The sections `nats`, `publishers`, `ingress` and `http` of `parley.yaml` (`schema.ts`). */

export const publisherName = z
  .string()
  .regex(NAME_PATTERN, 'a publisher name: letters, digits, _ and -, at most 128');

export const publisher = z.strictObject({
  postsPerMinute: count
    .nullable()
    .optional()
    .describe('Also the burst after a quiet minute; a long post counts once for each 16 KiB; null: no limit'),
  maxBytes: count
    .nullable()
    .optional()
    .describe('Size limit of one post as sent; null: the limit of the broker'),
  openConversations: count
    .nullable()
    .optional()
    .describe('Conversations in which agents may work for it at the same time; null: no limit'),
});
type PublisherFile = z.infer<typeof publisher>;
export interface PublisherConfig {
  readonly postsPerMinute: number | null;
  readonly maxBytes: number | null;
  readonly openConversations: number | null;
}

export const ingress = z.strictObject({
  maxBytes: count
    .default(1024 ** 3)
    .describe('Size of all waiting posts; at this limit no more are accepted'),
});

const secret = z.string().min(1);

/** An HTTP address without user, query and fragment. */
const isPlainUrl = (text: string) => /^https?:\/\/[^\s?#@]+$/.test(text) && URL.canParse(text);

export const http = z.strictObject({
  tokens: z
    .strictObject({
      read: secret.optional().describe('May read everything'),
      post: secret.optional().describe('May read and post'),
      approve: secret.optional().describe('May read and answer approvals'),
      operate: secret.optional().describe('May do everything'),
    })
    .default({})
    .describe(
      'Bearer tokens by role; best by reference to variables. If there is one, every request needs one',
    ),
  publishers: z
    .strictObject({
      post: publisherName.optional(),
      approve: publisherName.optional(),
      operate: publisherName.optional(),
    })
    .default({})
    .describe('The publisher of requests with each token; default: http, and for operate any publisher'),
  people: z
    .array(
      z.strictObject({
        role: z.enum(['read', 'post', 'approve', 'operate']).describe('What the token allows'),
        token: secret.describe('By reference to a variable, never in plain text'),
        publisher: publisherName.describe('The publisher of requests with this token'),
        name: z.string().min(1).optional().describe('The person at that publisher who owns the token'),
      }),
    )
    .default([])
    .describe('More tokens: one for each person or program'),
  hosts: z
    .array(z.string().min(1))
    .default([])
    .describe('Host names of the daemon, besides localhost, IP addresses and its listen address'),
  origins: z
    .array(
      z
        .string()
        .regex(/^https?:\/\/[^/\s]+$/, 'an origin such as https://console.example.org')
        .refine(
          isOrigin,
          'an origin as browsers send it: in lower case, without the port 80 of http or 443 of https',
        ),
    )
    .default([])
    .describe('Origins of other pages that may use it'),
  publicUrl: z
    .string()
    .refine(isPlainUrl, 'an address such as https://parley.example.org')
    .optional()
    .describe('The address for other machines when a proxy is in front; used in A2A cards and pages'),
  requestsPerSecond: count.default(100).describe('Of one address on average; a burst may be ten times that'),
  readers: count.default(1_000).describe('Concurrent event streams and waiting requests'),
  readersPerCaller: count.default(200).describe('The same for one caller: a token at an address'),
});
export type HttpFile = z.infer<typeof http>;

const natsFile = z.string().min(1);

export const nats = z.strictObject({
  server: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
    .optional()
    .describe('managed (the default), or the URL of a server, or a list of URLs'),
  user: z.string().min(1).optional().describe('User on that server'),
  password: secret.optional().describe('Best by reference to a variable, or in passwordFile'),
  passwordFile: natsFile.optional().describe('A file that holds the password'),
  token: secret.optional().describe('Best by reference to a variable, or in tokenFile'),
  tokenFile: natsFile.optional().describe('A file that holds the token'),
  credentials: natsFile.optional().describe('A .creds file'),
  nkey: natsFile.optional().describe('A file with an nkey seed'),
  inboxPrefix: z.string().min(1).optional().describe('What reply subjects begin with'),
  tls: z
    .strictObject({
      ca: natsFile
        .optional()
        .describe('Certificates of the authorities that sign the server certificate (PEM)'),
      cert: natsFile.optional().describe('Certificate of the client (PEM)'),
      key: natsFile.optional().describe('Its key (PEM)'),
    })
    .prefault({}),
});
export type NatsFile = Readonly<z.infer<typeof nats>>;

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}

/** The limits of each publisher. */
export interface PublishersConfig {
  readonly named: Readonly<Record<string, PublisherConfig>>;
  /** For all other publishers. */
  readonly others: PublisherConfig;
}

/** The row for publishers without a row. */
const DEFAULT_ROW = 'default';

/** Enough for people and most programs, and low enough that one runaway program does not block the others. */
const SHIPPED: PublisherConfig = { postsPerMinute: 1_200, maxBytes: 1_048_576, openConversations: 1_000 };

/** A limit that a row omits is taken from the row `default`, then from `SHIPPED`. */
export function resolvePublishers(rows: Readonly<Record<string, PublisherFile>>): PublishersConfig {
  const others = { ...SHIPPED, ...rows[DEFAULT_ROW] };
  const named = Object.entries(rows).filter(([name]) => name !== DEFAULT_ROW);
  return { others, named: Object.fromEntries(named.map(([name, row]) => [name, { ...others, ...row }])) };
}
