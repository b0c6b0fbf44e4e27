import { z } from 'zod';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { bool, count, matching, section, text, texts } from './parameters.ts';

/** The sections `nats`, `publishers`, `ingress`, `blobs` and `http` of `parley.yaml` (`schema.ts`). */

const PUBLISHER_FORM = 'a publisher name: letters, digits, _ and -, at most 128';
export const publisherName = matching(NAME_PATTERN, PUBLISHER_FORM);

export const publisher = z.strictObject({
  postsPerMinute: count
    .nullable()
    .optional()
    .describe(
      'Posts a minute, and the burst after a minute without posts. A post counts once for each 16 KiB. null: no limit (default: 1200)',
    ),
  maxBytes: count
    .nullable()
    .optional()
    .describe('Size limit of one post as sent; null: the limit of the nats-server (default: 1048576)'),
  openConversations: count
    .nullable()
    .optional()
    .describe(
      'Conversations in which agents work, or wait for approval, because of its posts; null: no limit (default: 1000)',
    ),
  workflows: texts
    .optional()
    .describe(
      'Workflows that its posts may start, by id; * is every one. Operators may start any (default: none)',
    ),
  sessions: bool
    .optional()
    .describe(
      'The `sessionId` of its posts becomes the session of the agents that they wake. Operators always may (default: true with a managed server, else false)',
    ),
});
type PublisherFile = z.infer<typeof publisher>;
export interface PublisherConfig {
  readonly postsPerMinute: number | null;
  readonly maxBytes: number | null;
  readonly openConversations: number | null;
  /** Ids, or `*` (PERSON-6); absent: none. */
  readonly workflows?: readonly string[] | undefined;
  /** Its posts may set sessions (PERSON-7); absent: no. */
  readonly sessions?: boolean | undefined;
}

export const ingress = z.strictObject({
  maxBytes: count
    .default(1024 ** 3)
    .describe('Size of all waiting posts. At this limit posts are refused until a quarter of it is free'),
});

export const blobs = z.strictObject({
  maxBytes: count.default(20 * 1024 ** 2).describe('Size limit of one file'),
  maxBytesPerConversation: count
    .default(2 * 1024 ** 3)
    .describe('Size of all files that the messages of one conversation name'),
  scan: texts
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'A command and its arguments that each file must pass before it is stored. It gets the path of the file as its last argument and the name in PARLEY_FILE_NAME; exit code 0 accepts, otherwise the sender gets the first line that it prints. null: none',
    ),
});

/** An HTTP address without user, query and fragment. */
const isPlainUrl = (text: string) => /^https?:\/\/[^\s?#@]+$/.test(text) && URL.canParse(text);

/** The name of a host, never an address: its last label has a letter. */
const HOST_FORM = /^(?:\*\.)?(?:[a-z0-9-]{1,63}\.)*(?=[0-9-]*[a-z])[a-z0-9-]{1,63}$/i;

export const http = z.strictObject({
  tokens: z
    .strictObject({
      read: text.optional().describe('May read everything'),
      post: text.optional().describe('May read and post'),
      approve: text.optional().describe('May read and answer approvals'),
      operate: text.optional().describe('May do everything'),
    })
    .default({})
    .describe(
      'Bearer tokens by role, at least 16 characters, by reference to variables. Without any token the daemon makes one',
    ),
  publishers: z
    .strictObject({
      post: publisherName.optional().describe('Default: http'),
      approve: publisherName.optional().describe('Default: http'),
      operate: publisherName.optional().describe('Default: any publisher that the request names'),
    })
    .default({})
    .describe('The publisher of requests with each token of http.tokens'),
  people: z
    .array(
      z.strictObject({
        role: z.enum(['read', 'post', 'approve', 'operate']).describe('What the token allows'),
        token: text.describe('The token, by reference to a variable'),
        publisher: z
          .string({ error: "the publisher of requests with this token, such as the person's name: ann" })
          .regex(NAME_PATTERN, PUBLISHER_FORM)
          .describe('The publisher of requests with this token'),
        name: text
          .optional()
          .describe('The name of the person who owns the token; it is bound to the publisher'),
        stopOnDisconnect: bool
          .optional()
          .describe('The same for requests with this token (default: http.stopOnDisconnect)'),
      }),
    )
    .default([])
    .describe('Further tokens, one for each person or program'),
  stopOnDisconnect: bool
    .default(false)
    .describe(
      'A client of /v1 that disconnects before its answer is complete ends the turns that its request started',
    ),
  hosts: texts
    .default([])
    .describe(
      'Host names under which requests are accepted, besides localhost, IP addresses and the listen address',
    ),
  origins: z
    .array(
      matching(/^https?:\/\/[^/\s]+$/, 'an origin such as https://console.example.org').refine(
        isOrigin,
        'an origin as browsers send it: in lower case, without the port 80 of http or 443 of https',
      ),
    )
    .default([])
    .describe('Origins of web pages that may use the API from a browser'),
  publicUrl: z
    .string()
    .refine(isPlainUrl, 'an address such as https://parley.example.org')
    .optional()
    .describe('The address for other machines if a proxy is in front; used in A2A cards and links'),
  fetch: section('What the daemon may fetch for clients of the standard protocols', {
    hosts: z
      .array(matching(HOST_FORM, 'a host name such as example.org, or *.example.org for all hosts below it'))
      .default([])
      .describe(
        'Hosts of which files are fetched that a client names by URL; `*.example.org`: all below it. Their addresses must be public (default: none)',
      ),
  }),
  requestsPerSecond: count
    .default(100)
    .describe(
      'Requests of one token (or of one address without a token) a second, on average; a burst may be ten times that',
    ),
  readers: count.default(1_000).describe('Concurrent event streams and waiting requests'),
  readersPerCaller: count.default(200).describe('The same for one caller (a token at an address)'),
});
export type HttpFile = z.infer<typeof http>;

export const nats = z.strictObject({
  server: z
    .union([text, texts.min(1)])
    .optional()
    .describe('managed (the default), the URL of a server, or a list of URLs'),
  user: text.optional().describe('User on that server'),
  password: text.optional().describe('By reference to a variable; or use passwordFile'),
  passwordFile: text.optional().describe('A file that contains the password'),
  token: text.optional().describe('By reference to a variable; or use tokenFile'),
  tokenFile: text.optional().describe('A file that contains the token'),
  credentials: text.optional().describe('A .creds file'),
  nkey: text.optional().describe('A file with an nkey seed'),
  inboxPrefix: text
    .optional()
    .describe(
      'First part of reply subjects, below _INBOX, as the permissions of this user require (default: _INBOX)',
    ),
  tls: section('Paths of TLS files', {
    ca: text.optional().describe('Certificates of the authorities that sign the server certificate (PEM)'),
    cert: text.optional().describe('Certificate of the client (PEM)'),
    key: text.optional().describe('Key of that certificate (PEM)'),
  }),
});
export type NatsFile = Readonly<z.infer<typeof nats>>;

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}

export interface PublishersConfig {
  readonly named: Readonly<Record<string, PublisherConfig>>;
  readonly others: PublisherConfig;
}

/** The row for publishers without a row. */
const DEFAULT_ROW = 'default';

/** Enough for people and most programs, and low enough that one runaway program does not block the others. */
const SHIPPED: PublisherConfig = { postsPerMinute: 1_200, maxBytes: 1_048_576, openConversations: 1_000 };

/** What a row omits is taken from the row `default`, then from `SHIPPED`. */
export function resolvePublishers(
  rows: Readonly<Record<string, PublisherFile>>,
  isManaged: boolean,
): PublishersConfig {
  const others = { ...SHIPPED, sessions: isManaged, ...rows[DEFAULT_ROW] };
  const named = Object.entries(rows).filter(([name]) => name !== DEFAULT_ROW);
  return { others, named: Object.fromEntries(named.map(([name, row]) => [name, { ...others, ...row }])) };
}
