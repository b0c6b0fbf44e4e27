import { showBytes } from '../conversation/index.ts';
import { abortable, messageOf, ParleyError } from '../kernel/index.ts';
import { addressesOf, type Resolve, reachOf, readAtMost, requestAt } from '../kernel/public-address.ts';

/**
 * Fetches the file behind a URL that a client sends in place of bytes.
 *
 * FETCH-1 Only hosts that `http.fetch.hosts` names are asked, also by a redirect. The default is none.
 * FETCH-2 A host is connected to at the addresses that were checked, so that DNS cannot change in between. An address that is
 *         not public (loopback, private, link-local, mapped and others) is refused.
 * FETCH-3 No credentials, cookies or headers of the client are sent. Size and time are limited while reading.
 */

const MOST_REDIRECTS = 3;
const MOST_MS = 20_000;

export interface FetchOptions {
  /** Names, or `*.` and a name for all hosts below it. */
  readonly hosts: readonly string[];
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
  readonly maxMs?: number;
  /** For tests; default: the resolver of the system, and only public addresses. */
  readonly network?: { readonly resolve: Resolve; readonly isPublic?: (address: string) => boolean };
}

const HEADERS = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'parley' };

export async function fetchFile(url: string, options: FetchOptions): Promise<Uint8Array> {
  const { maxMs = MOST_MS } = options;
  const timeout = AbortSignal.timeout(maxMs);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
  let at = url;
  try {
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects += 1) {
      const target = checked(at, options.hosts);
      const addresses = await publicAddressesOf(target, options, signal);
      const response = await requestAt(target, addresses, { headers: HEADERS, signal });
      const { statusCode = 0, headers } = response;
      if (statusCode === 200)
        return await readAtMost(response, options.maxBytes, () => tooLarge(options.maxBytes));
      response.destroy();
      if (![301, 302, 303, 307, 308].includes(statusCode) || headers.location === undefined)
        throw failed(`it answered ${statusCode}`);
      at = URL.canParse(headers.location, target.href)
        ? new URL(headers.location, target).href
        : headers.location;
    }
    throw failed(`it redirects more than ${MOST_REDIRECTS} times`);
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    const { hostname } = new URL(at);
    throw failed(
      timeout.aborted
        ? `${hostname} took longer than ${maxMs / 1_000} s`
        : `${hostname}: ${messageOf(error)}`,
    );
  }
}

/** FETCH-1 */
function checked(text: string, hosts: readonly string[]): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw refused(
      `a URL of the kind ${JSON.stringify(url?.protocol ?? text.slice(0, 40))} is not fetched`,
      'send http, https, or the bytes as a data URL',
    );
  const { hostname } = url;
  const isAllowed = hosts.some((name) =>
    name.startsWith('*.') ? hostname.endsWith(name.slice(1).toLowerCase()) : hostname === name.toLowerCase(),
  );
  if (!isAllowed)
    throw refused(
      `nothing is fetched from ${hostname}`,
      'send the bytes as a data URL, or name the host in http.fetch.hosts of parley.yaml',
    );
  if (url.username !== '' || url.password !== '')
    throw refused(`the URL at ${hostname} has a user or a password`, 'send the bytes as a data URL');
  return url;
}

/** FETCH-2 */
async function publicAddressesOf({ hostname }: URL, { network }: FetchOptions, signal: AbortSignal) {
  const { resolve, isPublic = (address: string) => reachOf(address) === 'public' } = network ?? {};
  const addresses = await abortable(addressesOf(hostname, resolve), signal);
  const other = addresses.find(({ address }) => !isPublic(address));
  if (!other) return addresses;
  throw refused(
    `${hostname} is at ${other.address}, which is no public address`,
    'http.fetch.hosts takes public hosts only; send the bytes as a data URL',
  );
}

/** FETCH-3 */
function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError('BLOB_TOO_LARGE', `a file may have ${showBytes(maxBytes)}`, {
    hint: 'send a smaller one, or raise blobs.maxBytes in parley.yaml',
  });
}

function refused(message: string, hint: string): ParleyError {
  return new ParleyError('URL_REFUSED', message, { hint });
}

function failed(why: string): ParleyError {
  return new ParleyError('URL_NOT_FETCHED', `the URL could not be fetched: ${why}`, {
    hint: 'send the bytes as a data URL',
  });
}
