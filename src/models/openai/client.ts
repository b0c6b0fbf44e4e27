import OpenAI from 'openai';
import { ParleyError } from '../../kernel/index.ts';

export interface ProviderOptions {
  /** An endpoint that speaks chat completions: `http://127.0.0.1:8080/v1`. */
  readonly baseURL: string;
  /** Absent: no Authorization header is sent. */
  readonly apiKey?: string;
  /** Sent with every request, e.g. `api-key`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The package's client. It makes the URL and the headers of requests; `http-post.ts` sends them. */
export function createProviderClient(options: ProviderOptions): OpenAI {
  const apiKey = options.apiKey === '' ? undefined : options.apiKey;
  checkBaseUrl(options.baseURL);
  for (const [name, value] of [['apiKey', apiKey ?? ''], ...Object.entries(options.headers ?? {})]) {
    // Other characters are not valid in a header. The value is not shown: it may be a key.
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value ?? '')) {
      throw new ParleyError('CONFIG_INVALID', `${name}: expected a single line of Latin-1 characters`, {
        hint: 'look for a line break or a quotation mark that was copied with the key',
      });
    }
  }
  const url = new URL(options.baseURL);
  const isAzure = AZURE.test(url.hostname) && !isToken(apiKey);
  return new OpenAI({
    baseURL: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    defaultQuery: Object.fromEntries(url.searchParams),
    // The package requires a key; where it is not sent in this form, the header is removed below.
    apiKey: apiKey ?? 'none',
    defaultHeaders: {
      ...(apiKey === undefined || isAzure ? { authorization: null } : {}),
      ...(apiKey !== undefined && isAzure ? { 'api-key': apiKey } : {}),
      ...options.headers,
    },
    // Otherwise the package reads these from the environment.
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
  });
}

/** Azure takes a key in the header `api-key`, and a token of Entra ID, a JWT, as everybody else does. */
const AZURE = /\.(openai|services\.ai|cognitiveservices)\.azure\.(com|us|cn)$/;

function isToken(apiKey = ''): boolean {
  return /^ey[\w-]+\.[\w-]+\.[\w-]+$/.test(apiKey);
}

function checkBaseUrl(baseURL: string): void {
  const url = URL.canParse(baseURL) ? new URL(baseURL) : null;
  const isUsable =
    url !== null && ['http:', 'https:'].includes(url.protocol) && !`${url.username}${url.password}`;
  if (isUsable) return;
  const seen = baseURL.includes('@') ? 'a URL that holds credentials' : JSON.stringify(baseURL);
  throw new ParleyError('CONFIG_INVALID', `baseURL: seen ${seen}, expected an http or https URL`, {
    hint: 'for example http://127.0.0.1:8080/v1; a key goes into apiKey or headers',
  });
}
