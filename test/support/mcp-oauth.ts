import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { type McpHttpServer, startMcpHttpServer } from './mcp-http-server.ts';

/** An authorization server on loopback (metadata, registration, authorization, tokens, refresh, revocation), and an MCP server that needs its tokens. */
export interface ProtectedMcp {
  readonly mcp: McpHttpServer;
  readonly issuer: string;
  /** Each request of the authorization server: `POST /token refresh_token`. */
  readonly asked: readonly string[];
  /** Added to its metadata; undefined removes. */
  metadata: Record<string, unknown>;
  /** Added to the metadata of the resource. */
  resource: Record<string, unknown>;
  /** Of the answer of the token endpoint. */
  readonly token: Record<string, unknown>;
  /** The parameters of the last registration, authorization and token request. */
  readonly last: { register?: Record<string, unknown>; authorize?: URLSearchParams; token?: URLSearchParams };
  /** What is added to the redirect; undefined removes. */
  redirect: Record<string, string | undefined>;
  /** The MCP server accepts no token that was given so far. */
  expire(): void;
  /** Refresh tokens too. */
  revoke(): void;
  /** A session is opened without a token, until it asks for the stream of the server. */
  opensFreely: boolean;
  /** Answers the token endpoint; null: as usual. */
  onToken: ((response: ServerResponse) => void) | null;
  readonly valid: ReadonlySet<string>;
  /** As a browser: opens the page and follows its redirect. Returns the page of the receiver. */
  browse(url: string): Promise<{ readonly status: number; readonly text: string; readonly redirect: string }>;
  close(): Promise<void>;
}

export async function startProtectedMcp(): Promise<ProtectedMcp> {
  const asked: string[] = [];
  const valid = new Set<string>();
  const refresh = new Set<string>();
  const codes = new Map<string, URLSearchParams>();
  const last: ProtectedMcp['last'] = {};
  const json = (response: ServerResponse, status: number, value: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const mcp = await startMcpHttpServer({
    before(request, response) {
      const base = `http://127.0.0.1:${mcp.port}`;
      if (request.url?.startsWith('/.well-known/oauth-protected-resource')) {
        json(response, 200, { resource: mcp.url, authorization_servers: [issuer], ...state.resource });
        return true;
      }
      const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
      if (valid.has(token)) return false;
      if (state.opensFreely && request.method === 'GET') {
        state.opensFreely = false;
        response.writeHead(404).end();
        return true;
      }
      if (state.opensFreely) return false;
      const metadata = `${base}/.well-known/oauth-protected-resource/mcp`;
      const refuse = () =>
        response
          .writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}", scope="tools"` })
          .end(`no such token: ${token}`);
      // A ping is answered before a list that was asked for at the same time.
      void textOf(request).then((body) => setTimeout(refuse, body.includes('"tools/list"') ? 100 : 0));
      return true;
    },
  });

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const { pathname, searchParams } = new URL(request.url ?? '/', issuer);
    const body = await textOf(request);
    const form = new URLSearchParams(body);
    asked.push([request.method, pathname, form.get('grant_type')].filter(Boolean).join(' '));
    switch (pathname) {
      case '/.well-known/oauth-authorization-server':
        return json(response, 200, {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          registration_endpoint: `${issuer}/register`,
          revocation_endpoint: `${issuer}/revoke`,
          response_types_supported: ['code'],
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none'],
          ...state.metadata,
        });
      case '/register':
        last.register = JSON.parse(body);
        return json(response, 201, { ...last.register, client_id: 'client-1' });
      case '/authorize': {
        last.authorize = searchParams;
        const code = randomUUID();
        codes.set(code, searchParams);
        const to = new URL(searchParams.get('redirect_uri') ?? '');
        const given = { code, state: searchParams.get('state') ?? '', ...state.redirect };
        for (const [key, value] of Object.entries(given))
          if (value !== undefined) to.searchParams.set(key, value);
        return response.writeHead(302, { location: to.href }).end();
      }
      case '/token': {
        last.token = form;
        if (state.onToken) return state.onToken(response);
        const isFit =
          form.get('grant_type') === 'refresh_token'
            ? refresh.delete(form.get('refresh_token') ?? '')
            : challengeOf(form.get('code_verifier') ?? '') ===
              codes.get(form.get('code') ?? '')?.get('code_challenge');
        codes.delete(form.get('code') ?? '');
        if (!isFit) return json(response, 400, { error: 'invalid_grant' });
        const given = { access: `access-${randomUUID()}`, refresh: `refresh-${randomUUID()}` };
        valid.add(given.access);
        refresh.add(given.refresh);
        return json(response, 200, {
          ...{ access_token: given.access, refresh_token: given.refresh, token_type: 'Bearer' },
          ...{ expires_in: 3600, ...state.token },
        });
      }
      case '/revoke':
        refresh.delete(form.get('token') ?? '');
        return response.writeHead(200).end();
      default:
        return response.writeHead(404).end();
    }
  }

  const state: ProtectedMcp = {
    ...{
      mcp,
      issuer,
      asked,
      valid,
      last,
      metadata: {},
      resource: {},
      token: {},
      redirect: {},
      onToken: null,
      opensFreely: false,
    },
    expire: () => valid.clear(),
    revoke() {
      valid.clear();
      refresh.clear();
    },
    async browse(url) {
      const page = await fetch(url, { redirect: 'manual' });
      const redirect = page.headers.get('location') ?? '';
      const end = await fetch(redirect);
      return { status: end.status, text: await end.text(), redirect };
    },
    async close() {
      await mcp.close();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return state;
}

const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');
