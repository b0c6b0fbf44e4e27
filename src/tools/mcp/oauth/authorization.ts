import {
  extractWWWAuthenticateParams,
  OAuthError,
  OAuthErrorCode,
  type OAuthTokens,
  refreshAuthorization,
} from '@modelcontextprotocol/client';
import { type HideValues, hideValues, sleep, systemClock } from '../../../kernel/index.ts';
import { guardFor } from './guarded-fetch.ts';
import type { Login, LoginStore } from './logins.ts';

/**
 * The access token of one MCP server, for the requests of its transport.
 *
 * AUTHORIZATION-1 The login is read for each request, so that a new one is used at once, and none after a logout.
 * AUTHORIZATION-2 A token is renewed before it expires, and once for a request that was refused. Requests share a renewal.
 * AUTHORIZATION-3 Another process may renew too: its result is used, and never replaced by an older one. A refresh token that
 *                 was refused is not sent again.
 */

const RENEW_BEFORE_MS = 30_000;
const LOOK_EVERY_MS = 1_000;

export interface LoginSettings {
  readonly url: string;
  readonly oauth?: { readonly authorizationServer?: string } | undefined;
}

export class Authorization {
  readonly #name: string;
  readonly #settings: LoginSettings;
  readonly #store: LoginStore;
  #renewal: Promise<string | null> | null = null;
  #refused: string | null = null;
  /** The token of the last request; null: none. */
  #sent: string | null = null;
  /** The token of the last request that was refused since the last wait for a login; undefined: no request was. */
  #denied: string | null | undefined;
  #secrets: readonly string[] = [];
  #hide: HideValues = (text) => text;

  constructor(name: string, settings: LoginSettings, store: LoginStore) {
    this.#name = name;
    this.#settings = settings;
    this.#store = store;
  }

  /** Sends a request with the token (AUTHORIZATION-2). A server that refuses a request did not execute it. */
  async send(headers: Headers, send: () => Promise<Response>): Promise<Response> {
    const token = await this.#token();
    this.#sent = token;
    if (token !== null) headers.set('authorization', `Bearer ${token}`);
    const response = await send();
    if (response.status === 403) await this.#noteWanted(response);
    if (response.status !== 401) return response;
    const renewed = await this.#renewed(token);
    if (renewed === null) {
      this.#denied = token;
      return response;
    }
    await response.body?.cancel();
    this.#sent = renewed;
    headers.set('authorization', `Bearer ${renewed}`);
    return send();
  }

  /** Hides the tokens in what the server says. */
  readonly hide: HideValues = (text) => this.#hide(text);

  /**
   * Resolves when the login is another one than that of the last refused request, or of the last request if none was refused, or when
   * the signal aborts. A session that was refused may be ended with a newer login.
   */
  async changed(signal: AbortSignal): Promise<void> {
    const used = this.#denied === undefined ? this.#sent : this.#denied;
    this.#denied = undefined;
    const current = () => this.#read().then((login) => login?.tokens.access_token ?? null);
    while (!signal.aborted && (await current().catch(() => used)) === used)
      await sleep(LOOK_EVERY_MS, signal);
  }

  async #token(): Promise<string | null> {
    const login = await this.#read();
    if (login === null) return null;
    const { tokens, expiresAt } = login;
    const isEnding = expiresAt !== null && expiresAt - RENEW_BEFORE_MS < systemClock();
    if (!isEnding || !tokens.refresh_token) return tokens.access_token;
    const renewed = this.#renewed(tokens.access_token).catch((error: unknown) => {
      if (expiresAt > systemClock()) return null; // it is valid still
      throw error;
    });
    return (await renewed) ?? tokens.access_token;
  }

  #renewed(used: string | null): Promise<string | null> {
    this.#renewal ??= this.#renew(used).finally(() => {
      this.#renewal = null;
    });
    return this.#renewal;
  }

  /** Null: a person must log in. Rejects if the authorization server does not answer. */
  async #renew(used: string | null): Promise<string | null> {
    const login = await this.#read();
    if (login === null) return null;
    if (login.tokens.access_token !== used) return login.tokens.access_token; // AUTHORIZATION-3
    const { refresh_token: refreshToken } = login.tokens;
    if (refreshToken === undefined || refreshToken === this.#refused) return null;
    const { issuer, metadata, resource, client: clientInformation } = login;
    const { url, oauth } = this.#settings;
    const guard = guardFor(url, oauth?.authorizationServer ? [oauth.authorizationServer] : []);
    try {
      const tokens = await refreshAuthorization(issuer, {
        clientInformation,
        refreshToken,
        fetchFn: guard.fetch,
        ...(metadata && { metadata }),
        ...(resource !== undefined && { resource }),
      });
      const latest = await this.#read();
      if (latest?.tokens.access_token !== used) return latest?.tokens.access_token ?? null; // AUTHORIZATION-3
      await this.#store.write(this.#name, { ...latest, tokens, expiresAt: expiryOf(tokens) });
      await this.#read();
      return tokens.access_token;
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code === OAuthErrorCode.ServerError) throw error;
      const latest = await this.#read();
      if (latest && latest.tokens.access_token !== used) return latest.tokens.access_token;
      this.#refused = refreshToken;
      return null;
    }
  }

  async #read(): Promise<Login | null> {
    const login = await this.#store.read(this.#name, this.#settings.url);
    if (login) this.#remember(login);
    return login;
  }

  /** A server may repeat a token that was replaced. */
  #remember({ tokens, client }: Login): void {
    const values = [tokens.access_token, tokens.refresh_token, tokens.id_token, client.client_secret];
    const fresh = values.filter((one) => one !== undefined && !this.#secrets.includes(one)) as string[];
    if (fresh.length === 0) return;
    this.#secrets = [...fresh, ...this.#secrets].slice(0, MOST_SECRETS);
    this.#hide = hideValues(this.#secrets);
  }

  /** The next login asks for these scopes too. */
  async #noteWanted(response: Response): Promise<void> {
    const { error, scope } = extractWWWAuthenticateParams(response);
    const login = error === 'insufficient_scope' && scope ? await this.#read() : null;
    if (login && scope && login.wanted !== scope)
      await this.#store.write(this.#name, { ...login, wanted: scope });
  }
}

const MOST_SECRETS = 12;

export function expiryOf({ expires_in: seconds }: Pick<OAuthTokens, 'expires_in'>): number | null {
  return seconds === undefined ? null : systemClock() + seconds * 1_000;
}
