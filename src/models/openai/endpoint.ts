import { ParleyError, VERSION } from '../../kernel/index.ts';

export interface ProviderOptions {
  /** An endpoint that speaks chat completions: `http://127.0.0.1:8080/v1`. */
  readonly baseURL: string;
  /** Absent: no Authorization header is sent. */
  readonly apiKey?: string;
  /** Sent with every request, e.g. `api-key`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What all requests to one provider have in common. */
export interface Endpoint {
  readonly url: string;
  /** For people: without query. */
  readonly shown: string;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
}

/** Throws `CONFIG_INVALID` for an invalid baseURL, key or header. */
export function endpointOf({ baseURL, apiKey = '', headers = {} }: ProviderOptions, path: string): Endpoint {
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
  const key: [string, string] = isAzure ? ['api-key', apiKey] : ['authorization', `Bearer ${apiKey}`];
  const own = Object.entries(headers).map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  const shown = `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
  return {
    url: `${shown}${path}${url.search}`,
    shown,
    headers: new Map([['user-agent', `parleyd/${VERSION}`], ...(apiKey === '' ? [] : [key]), ...own]),
  };
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
