import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  auth,
  extractWWWAuthenticateParams,
  LATEST_PROTOCOL_VERSION,
  type OAuthClientInformationContext,
  type OAuthClientInformationMixed,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
} from '@modelcontextprotocol/client';
import {
  cut,
  escapeHidden,
  hideValues,
  inOneLine,
  isSameSecret,
  linkedAbort,
  ParleyError,
  VERSION,
} from '../../../kernel/index.ts';
import type { McpServerSettings } from '../connection.ts';
import { reasonFor } from '../failure.ts';
import { expiryOf } from './authorization.ts';
import { type Guard, guardFor, shown } from './guarded-fetch.ts';
import type { Login, LoginStore } from './logins.ts';

/**
 * A login of a person at an MCP server, with the checks that the SDK leaves to its user.
 *
 * LOG-IN-1 The metadata of an authorization server names the issuer by which it was found, its endpoints pass the guard, and it
 *          supports PKCE. A configured server is the only one accepted.
 * LOG-IN-2 The redirect is received on 127.0.0.1. It must have the state of this login and, if it names an issuer, that of the
 *          authorization server (RFC 9207). What else arrives is ignored, and nothing of it is shown in the page.
 * LOG-IN-3 Nothing is kept before tokens have arrived.
 */

const WAIT_MS = 10 * 60_000;
const REDIRECT_HOST = '127.0.0.1';

export type HttpServerSettings = Extract<McpServerSettings, { transport: 'http' }>;

export interface LogInOptions {
  readonly name: string;
  readonly settings: HttpServerSettings;
  readonly store: LoginStore;
  /** Where the redirect is received; 0: any. */
  readonly port: number;
  /** Shows a person where to log in. */
  readonly onUrl: (url: string) => void;
  readonly signal: AbortSignal;
  readonly waitMs?: number;
}

/** Resolves with the URL of the authorization server. */
export async function logIn(options: LogInOptions): Promise<string> {
  const { name, settings, store, onUrl } = options;
  const guard = guardOf(settings);
  const receiver = await Receiver.open(options.port);
  const person = new Person(settings, guard, receiver.url);
  const before = await store.read(name, settings.url).catch(() => null);
  try {
    const challenge = await challengeOf(settings);
    const scope = [settings.oauth?.scope ?? challenge.scope, before?.wanted].filter(Boolean).join(' ');
    const { resourceMetadataUrl } = challenge;
    const about = {
      serverUrl: settings.url,
      fetchFn: guard.fetch,
      skipIssuerMetadataValidation: true, // LOG-IN-1 checks it, for servers of revision 2025-03-26 too
      ...(scope !== '' && { scope }),
      ...(resourceMetadataUrl && { resourceMetadataUrl }),
    };
    await auth(person, about);
    onUrl(person.page);
    await auth(person, { ...about, ...(await receiver.answer(person, options)) });
    const login = person.login();
    await store.write(name, login);
    return login.issuer;
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    if (guard.refusal) throw guard.refusal;
    const reason = reasonFor(hideValues(person.secrets));
    throw new ParleyError('MCP_LOGIN_FAILED', `the login at ${name} failed: ${reason(error)}`, {
      hint: 'check its url and oauth in tools.mcpServers; docs/guides/tools-and-approvals.md, "Login"',
    });
  } finally {
    await receiver.close();
  }
}

/** Removes the login, and revokes it if the authorization server can. False: there was none. */
export async function logOut(
  name: string,
  settings: HttpServerSettings,
  store: LoginStore,
): Promise<boolean> {
  const login = await store.read(name, settings.url).catch(() => null);
  const removed = await store.remove(name);
  const { revocation_endpoint: endpoint } = { revocation_endpoint: null, ...login?.metadata };
  if (!login || typeof endpoint !== 'string') return removed;
  const { client, tokens } = login;
  const body = new URLSearchParams({
    token: tokens.refresh_token ?? tokens.access_token,
    client_id: client.client_id,
    ...(client.client_secret !== undefined && { client_secret: client.client_secret }),
  });
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  await guardOf(settings)
    .fetch(endpoint, { method: 'POST', headers, body })
    .catch(() => undefined); // the tokens expire by themselves
  return removed;
}

function guardOf({ url, oauth }: HttpServerSettings): Guard {
  return guardFor(url, oauth?.authorizationServer ? [oauth.authorizationServer] : []);
}

/** What the server answers to a request without a token. */
async function challengeOf({ url, headers }: HttpServerSettings) {
  const own = Object.entries(headers).map(([key, value]): [string, string] => [key, value.reveal()]);
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      ...Object.fromEntries(own),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: LATEST_PROTOCOL_VERSION,
        capabilities: {},
        clientInfo: { name: 'parley', version: VERSION },
      },
    }),
    signal: AbortSignal.timeout(20_000),
  });
  await response.body?.cancel();
  return response.status === 401 ? extractWWWAuthenticateParams(response) : {};
}

/** The SDK's view of a person who logs in. */
class Person implements OAuthClientProvider {
  readonly redirectUrl: string;
  readonly expectedState = randomBytes(32).toString('base64url');
  readonly #settings: HttpServerSettings;
  readonly #guard: Guard;
  #found: OAuthDiscoveryState | null = null;
  #client: OAuthClientInformationMixed | undefined;
  #tokens: OAuthTokens | null = null;
  #verifier = '';
  page = '';

  constructor(settings: HttpServerSettings, guard: Guard, redirectUrl: string) {
    this.#settings = settings;
    this.#guard = guard;
    this.redirectUrl = redirectUrl;
    const { clientId, clientSecret } = settings.oauth ?? {};
    if (clientId !== undefined)
      this.#client = { client_id: clientId, ...(clientSecret && { client_secret: clientSecret.reveal() }) };
  }

  get clientMetadata() {
    const methods = this.#found?.authorizationServerMetadata?.token_endpoint_auth_methods_supported;
    const isPublic = methods === undefined || methods.includes('none');
    return {
      client_name: 'Parley',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...(isPublic && { token_endpoint_auth_method: 'none' }),
    };
  }

  /** The issuer that a redirect names (RFC 9207). */
  get issuerOfRedirect(): { readonly is: string | undefined; readonly isNeeded: boolean } {
    const metadata = this.#found?.authorizationServerMetadata;
    const { authorization_response_iss_parameter_supported: named } = {
      authorization_response_iss_parameter_supported: false,
      ...metadata,
    };
    const isNeeded = named === true;
    return { is: metadata?.issuer, isNeeded };
  }

  get secrets(): string[] {
    return [this.#verifier, this.expectedState, this.#client?.client_secret].filter(
      (one) => one !== undefined,
    );
  }

  login(): Login {
    const found = this.#found;
    if (!found || !this.#client || !this.#tokens) throw new Error('it gave no tokens');
    const resource = found.resourceMetadata?.resource;
    return {
      url: this.#settings.url,
      issuer: String(found.authorizationServerUrl),
      metadata: found.authorizationServerMetadata,
      resource,
      client: this.#client,
      tokens: this.#tokens,
      expiresAt: expiryOf(this.#tokens),
    };
  }

  state = () => this.expectedState;
  /** A configured client is one of the server that is asked: LOG-IN-1 checks which that is. */
  clientInformation = (about?: OAuthClientInformationContext) =>
    this.#client && { ...(about && { issuer: about.issuer }), ...this.#client };
  tokens = () => undefined;
  codeVerifier = () => this.#verifier;
  discoveryState = () => this.#found ?? undefined;

  saveClientInformation(client: OAuthClientInformationMixed): void {
    this.#client = client;
  }

  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    await this.#guard.check(url);
    this.page = url.href;
  }

  /** LOG-IN-1 */
  async saveDiscoveryState(found: OAuthDiscoveryState): Promise<void> {
    const at = new URL(found.authorizationServerUrl);
    const { authorizationServer } = this.#settings.oauth ?? {};
    if (authorizationServer !== undefined && !isSameUrl(at.href, authorizationServer))
      throw refused(
        `the MCP server names ${shown(at)}, and not ${authorizationServer}`,
        'correct oauth.authorizationServer, if that server is right',
      );
    await this.#guard.check(at);
    const metadata = found.authorizationServerMetadata;
    if (metadata) {
      if (!isIssuer(metadata.issuer, at, found.resourceMetadata === undefined))
        throw refused(
          `the metadata of ${shown(at)} names another issuer`,
          'its operator must correct `issuer`; it may be an attempt to get a code of another server',
        );
      if (!metadata.code_challenge_methods_supported?.includes('S256'))
        throw refused(`${shown(at)} does not support PKCE with S256`, 'its operator must enable it');
      const { authorization_endpoint, token_endpoint, registration_endpoint } = metadata;
      for (const endpoint of [authorization_endpoint, token_endpoint, registration_endpoint])
        if (typeof endpoint === 'string') await this.#guard.check(new URL(endpoint));
      if (!this.#client && registration_endpoint === undefined)
        throw refused(
          `${shown(at)} registers no clients`,
          'register one there, with the redirect http://127.0.0.1:PORT/callback, set oauth.clientId, and log in with --port PORT',
        );
    }
    this.#found = found;
  }
}

/** `isOld`: the MCP server names no authorization server, so its own origin is asked (revision 2025-03-26). */
function isIssuer(issuer: string, at: URL, isOld: boolean): boolean {
  return (
    isSameUrl(issuer, at.href) || (isOld && URL.canParse(issuer) && new URL(issuer).origin === at.origin)
  );
}

/** With or without `/` at the end. */
function isSameUrl(a: string, b: string): boolean {
  const form = (text: string) => (URL.canParse(text) ? new URL(text).href : text).replace(/\/$/, '');
  return form(a) === form(b);
}

interface Answered {
  readonly authorizationCode: string;
  /** The issuer that the redirect names. */
  readonly iss?: string;
}

/** LOG-IN-2 */
class Receiver {
  readonly #server: Server;
  #onRedirect: ((given: URLSearchParams) => boolean) | null = null;

  private constructor() {
    this.#server = createServer((request, response) => {
      const [given = '', base] = [request.url, `http://${REDIRECT_HOST}`];
      const url = request.method === 'GET' && URL.canParse(given, base) ? new URL(given, base) : null;
      const isOurs = url?.pathname === '/callback' && this.#onRedirect?.(url.searchParams);
      const text = isOurs
        ? 'Parley has the answer. Close this page, and see the terminal.'
        : 'No login waits here.';
      response.writeHead(isOurs ? 200 : 400, {
        'content-type': 'text/plain; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        connection: 'close',
      });
      response.end(text);
    });
  }

  static async open(port: number): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve, reject) => {
      receiver.#server.once('error', reject).listen(port, REDIRECT_HOST, resolve);
    }).catch((cause: unknown) => {
      throw new ParleyError('MCP_LOGIN_FAILED', `port ${port} of ${REDIRECT_HOST} cannot be used`, {
        hint: 'name another with --port',
        cause,
      });
    });
    return receiver;
  }

  get url(): string {
    return `http://${REDIRECT_HOST}:${(this.#server.address() as AddressInfo).port}/callback`;
  }

  async answer(person: Person, { signal, waitMs = WAIT_MS }: LogInOptions): Promise<Answered> {
    const own = linkedAbort(signal);
    const late = setTimeout(() => own.abort(), waitMs);
    try {
      const given = await new Promise<URLSearchParams>((resolve, reject) => {
        const ended = () => reject(refused('nobody has logged in', 'run the command again'));
        own.signal.addEventListener('abort', ended, { once: true });
        this.#onRedirect = (params) => {
          if (!isSameSecret(params.get('state') ?? '', person.expectedState)) return false;
          this.#onRedirect = null; // one answer
          resolve(params);
          return true;
        };
      });
      return answerIn(given, person);
    } finally {
      clearTimeout(late);
      own.unlink();
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function answerIn(given: URLSearchParams, { issuerOfRedirect: issuer }: Person): Answered {
  const from = given.get('iss');
  if (from === null ? issuer.isNeeded : issuer.is === undefined || from !== issuer.is)
    throw refused(
      'the answer is not from the authorization server that was asked',
      'log in again; if it repeats, tell the operator of the MCP server: it may be an attempt to get your code',
    );
  const error = given.get('error');
  if (error !== null) {
    const why = [error, given.get('error_description')].filter(Boolean).join(': ');
    const shownWhy = escapeHidden(inOneLine(cut(why, 300)));
    throw refused(`the authorization server answered ${shownWhy}`, 'log in again');
  }
  const code = given.get('code');
  if (!code) throw refused('the authorization server sent no code', 'log in again');
  return { authorizationCode: code, ...(from !== null && { iss: from }) };
}

function refused(message: string, hint: string): ParleyError {
  return new ParleyError('MCP_LOGIN_REFUSED', message, { hint });
}
