import { z } from 'zod';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { count } from './model-file.ts';

/** The doors of the daemon in `parley.yaml` (`schema.ts`): the NATS server, who may post how much, and HTTP. */

export const publisherName = z
  .string()
  .regex(NAME_PATTERN, 'a publisher name: letters, digits, _ and -, at most 128');

export const publisher = z.strictObject({
  postsPerMinute: count
    .nullable()
    .optional()
    .describe(
      'As many at once too, after a quiet minute; a long one counts once for each 16 KiB; null: no limit',
    ),
  maxBytes: count.nullable().optional().describe('Of one post as it is sent; null: what the broker carries'),
  openConversations: count
    .nullable()
    .optional()
    .describe('Conversations in which agents may be at work for it at once; null: no limit'),
});
type PublisherFile = z.infer<typeof publisher>;
export interface PublisherConfig {
  readonly postsPerMinute: number | null;
  readonly maxBytes: number | null;
  readonly openConversations: number | null;
}

export const ingress = z.strictObject({
  maxBytes: count.default(1024 ** 3).describe('That wait together; while they do, no more are accepted'),
});

const secret = z.string().min(1);

/** Of HTTP, and nothing but a place: no user, no query, no fragment. */
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
      'Bearer tokens by what they allow; best by reference to variables. As soon as there is one, every request needs one',
    ),
  publishers: z
    .strictObject({
      post: publisherName.optional(),
      approve: publisherName.optional(),
      operate: publisherName.optional(),
    })
    .default({})
    .describe('Who acts where a token is used; http by default, anybody for operate'),
  people: z
    .array(
      z.strictObject({
        role: z.enum(['read', 'post', 'approve', 'operate']).describe('What the token allows'),
        token: secret.describe('By reference to a variable, never in plain text'),
        publisher: publisherName.describe('Who acts where it is used'),
        name: z.string().min(1).optional().describe('The person at that publisher whose posts these are'),
      }),
    )
    .default([])
    .describe('Further tokens: one for each person or program'),
  hosts: z
    .array(z.string().min(1))
    .default([])
    .describe('Names by which the daemon is reached, beside localhost, plain addresses and where it listens'),
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
    .describe('Pages of other origins that may use it'),
  publicUrl: z
    .string()
    .refine(isPlainUrl, 'an address such as https://parley.example.org')
    .optional()
    .describe('Under which others reach it, where a proxy stands before it: cards of A2A and pages have it'),
  requestsPerSecond: count.default(100).describe('Of one address, in the long run; ten times that at once'),
  readers: count.default(1_000).describe('Event streams and requests that wait, open at once'),
  readersPerCaller: count.default(200).describe('The same of one caller: a token at an address'),
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
  inboxPrefix: z.string().min(1).optional().describe('What answers come to begins with this'),
  tls: z
    .strictObject({
      ca: natsFile.optional().describe('Certificates that the server must be vouched for by (PEM)'),
      cert: natsFile.optional().describe('Certificate to show to the server (PEM)'),
      key: natsFile.optional().describe('Its key (PEM)'),
    })
    .prefault({}),
});
export type NatsFile = Readonly<z.infer<typeof nats>>;

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}

/** What each publisher may ask of the daemon. */
export interface PublishersConfig {
  readonly named: Readonly<Record<string, PublisherConfig>>;
  /** For everybody else. */
  readonly others: PublisherConfig;
}

/** The row that stands for everybody who has none of his own. */
const EVERYBODY = 'default';

/** Far beyond people and most programs, and little enough that one that has gone wild stops nobody else. */
const SHIPPED: PublisherConfig = { postsPerMinute: 1_200, maxBytes: 1_048_576, openConversations: 1_000 };

/** A row may name some of the limits: for the others that of `default` stands, and behind it what ships. */
export function resolvePublishers(rows: Readonly<Record<string, PublisherFile>>): PublishersConfig {
  const others = { ...SHIPPED, ...rows[EVERYBODY] };
  const named = Object.entries(rows).filter(([name]) => name !== EVERYBODY);
  return { others, named: Object.fromEntries(named.map(([name, row]) => [name, { ...others, ...row }])) };
}
