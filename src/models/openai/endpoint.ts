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

/** One provider, to which the package `openai` addresses requests; `http-post.ts` sends them. */
export interface Endpoint {
  /** For people: without query. */
  readonly shown: string;
  /** What all requests have in common, made once: for each request the package would take longer than sending it. */
  head(): Promise<Head>;
}

interface Head {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
}

/** Throws `CONFIG_INVALID` for an invalid baseURL, key or header. */
export function endpointOf(options: ProviderOptions, path: string): Endpoint {
  const { client, shown } = clientOf(options);
  let made: Promise<Head> | undefined;
  return {
    shown,
    head() {
      made ??= headOf(client, path);
      return made;
    },
  };
}

async function headOf(client: OpenAI, path: string): Promise<Head> {
  const { req, url } = await client.buildRequest({ method: 'post', path });
  const headers: Iterable<[string, string]> = req.headers;
  return { url, headers: [...headers] };
}

function clientOf({ baseURL, apiKey = '', headers = {} }: ProviderOptions) {
  const url = checkedUrl(baseURL);
  for (const [name, value] of [['apiKey', apiKey] as const, ...Object.entries(headers)]) {
    // Other characters are not valid in a header. The value is not shown: it may be a key.
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new ParleyError('CONFIG_INVALID', `${name}: expected a single line of Latin-1 characters`, {
        hint: 'look for a line break or a quotation mark that was copied with the key',
      });
    }
  }
  const isAzure = AZURE.test(url.hostname) && !TOKEN.test(apiKey);
  const shown = `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
  const client = new OpenAI({
    baseURL: shown,
    defaultQuery: Object.fromEntries(url.searchParams),
    // The package requires a key; where it is not sent in this form, the header is removed below.
    apiKey: apiKey === '' ? 'none' : apiKey,
    defaultHeaders: {
      ...(apiKey === '' || isAzure ? { authorization: null } : {}),
      ...(apiKey !== '' && isAzure ? { 'api-key': apiKey } : {}),
      ...headers,
    },
    // Otherwise the package reads these from the environment.
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
  });
  return { client, shown };
}

/** Azure takes a key in the header `api-key`, and a token of Entra ID, a JWT, as everybody else does. */
const AZURE = /\.(openai|services\.ai|cognitiveservices)\.azure\.(com|us|cn)$/;
const TOKEN = /^ey[\w-]+\.[\w-]+\.[\w-]+$/;

function checkedUrl(baseURL: string): URL {
  const url = URL.canParse(baseURL) ? new URL(baseURL) : null;
  if (url && ['http:', 'https:'].includes(url.protocol) && !`${url.username}${url.password}`) return url;
  const seen = baseURL.includes('@') ? 'a URL that holds credentials' : JSON.stringify(baseURL);
  throw new ParleyError('CONFIG_INVALID', `baseURL: seen ${seen}, expected an http or https URL`, {
    hint: 'for example http://127.0.0.1:8080/v1; a key goes into apiKey or headers',
  });
}
