import type { ApiRequest } from '../../bus/port.ts';
import {
  EXPORT_FORMATS,
  type ExportFormat,
  exportEntries,
  type OwnPublisher,
  SHA256,
  UNKNOWN_TYPE,
} from '../../conversation/index.ts';
import { asError, escapeHidden, ParleyError } from '../../kernel/index.ts';
import type { Application, Request, RouteContext } from '../context.ts';
import { actingAs } from '../guard/access.ts';
import { jsonBody, streamedBody } from '../guard/body.ts';
import { callerOf, readLog } from '../progress/ask.ts';
import { type Json, openApiDocument } from './openapi.ts';
import { EXPORTS, pathFields, queryFields, ROUTES, type Route, routerPath, SHOWN } from './routes.ts';

/**
 * The REST routes: a path and a body become one request of the API, and its answer becomes the response.
 *
 * HANDLERS-1 The API checks requests, and nothing is checked twice: all protocols give the same refusals.
 * HANDLERS-2 A field has one source: the body may not repeat one of the path or the query.
 *
 * Files of messages do not pass the API:
 *
 * REST-FILES-1  Neither direction holds a file in memory.
 * REST-FILES-2  A browser gets nothing that it could run: pictures of four types are shown, every other file is saved, as bytes
 *               without a type, audio and PDF with theirs.
 */

/** The publisher of a caller without a name. */
const ANONYMOUS: OwnPublisher = 'http';

export function addRestRoutes(app: Application, options: RouteContext): void {
  let document: Json | undefined; // built on the first request: that takes tens of milliseconds
  app.get('/api/openapi.json', (context) => {
    document ??= openApiDocument(options.version);
    return context.json(document);
  });
  app.get('/api/identity', (context) => {
    const { role, publisher, name = null, isSession = false } = context.var.identity;
    return context.json({ role, publisher, name, isSession });
  });
  for (const route of ROUTES) {
    app.on(route.method.toUpperCase(), routerPath(route), async (context) => {
      const request = await requestOf(route, context, options);
      const answer = await options.daemon(context).request(request);
      if (!answer.ok) throw asError(answer.refusal);
      // The same JSON, with characters escaped that would hide a part of a call from the person who approves it.
      const json = escapeHidden(JSON.stringify(answer.body));
      return context.body(json, route.status ?? 200, {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(json)), // short answers are not compressed
      });
    });
  }
}

async function requestOf(route: Route, context: Request, options: RouteContext): Promise<ApiRequest> {
  const { identity } = context.var;
  const body = route.method === 'post' ? await jsonBody(context) : {};
  const elsewhere = { ...queryOf(route, context), ...pathOf(route, context) };
  for (const name of Object.keys(elsewhere)) {
    if (name in body) throw badRequest(`the path says ${name}; leave it out of the body`);
  }
  if (route.path === '/api/conversations' && route.method === 'post') body.conversation ??= options.newId();
  return {
    endpoint: route.verb,
    ...callerOf(identity),
    body: { ...(route.acts ? actingAs(identity, body, ANONYMOUS) : body), ...elsewhere },
  };
}

function queryOf(route: Route, context: Request): Record<string, unknown> {
  const given = Object.entries(knownQuery(context, queryFields(route)));
  return Object.fromEntries(given.map(([name, text = '']) => [name, parsed(name, text)]));
}

function knownQuery(
  context: Request,
  known: readonly string[],
): Readonly<Record<string, string | undefined>> {
  const given = context.req.query();
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return given;
  throw badRequest(
    `${JSON.stringify(unknown)} means nothing here`,
    `known are ${known.join(', ') || 'none'}`,
  );
}

function pathOf(route: Route, context: Request): Record<string, unknown> {
  return Object.fromEntries(
    pathFields(route).map((name) => [name, parsed(name, context.req.param(name) ?? '')]),
  );
}

const NUMBERS: readonly string[] = ['from', 'limit', 'at', 'days', 'sequence'];

/** `before` is a time, or the sequence of a dead letter. */
function parsed(name: string, text: string): unknown {
  if (name === 'texts') return text.split(',');
  if (name === 'body' && (text === 'true' || text === 'false')) return text === 'true';
  const isNumber = NUMBERS.includes(name) || name === 'before';
  return isNumber && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

function badRequest(message: string, hint = 'GET /api/openapi.json says what is taken'): ParleyError {
  return new ParleyError('BAD_REQUEST', message, { hint });
}

/** A whole conversation as a file. */
export function addExportRoute(app: Application, routes: RouteContext): void {
  app.get('/api/conversations/:conversation/export', async (context) => {
    const format = formatOf(context.req.query('format') ?? 'markdown');
    const conversation = context.req.param('conversation');
    const entries = await readLog(routes.daemon(context), conversation, 0);
    const { type, extension } = EXPORTS[format];
    const text = exportEntries(entries, format);
    const title = entries.findLast((entry) => entry.type === 'title-set')?.title ?? null;
    return context.body(format === 'markdown' ? text : escapeHidden(text), 200, {
      'content-type': `${type}; charset=utf-8`,
      'content-disposition': `attachment; ${fileName(`${titledName(title, conversation)}.${extension}`, `${conversation}.${extension}`)}`,
    });
  });
}

function formatOf(given: string): ExportFormat {
  const format = EXPORT_FORMATS.find((one) => one === given);
  if (format) return format;
  throw new ParleyError('BAD_REQUEST', `${JSON.stringify(given)} is no format of an export`, {
    hint: `use ?format= with one of ${EXPORT_FORMATS.join(', ')}`,
  });
}

/** Code points of a title in the name of a file. */
const LONGEST_TITLE = 60;

/** The name of a file without its extension: the title in letters, digits and `-`, then the id. */
function titledName(title: string | null, id: string): string {
  const words = (title ?? '').normalize('NFC').match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  const short = [...words.join('-')].slice(0, LONGEST_TITLE).join('').replace(/-$/, '');
  return short === '' ? id : `${short}-${id}`;
}

const PLAIN_NAME = /^[\w .,()+-]+$/;

/** RFC 6266: a name that is not plain has another one beside it, for programs that know only that. No path, nothing hidden. */
function fileName(name: string, plain: string): string {
  const shown = (name.split(/[/\\]/).at(-1) ?? '').replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '');
  if (shown === '' || PLAIN_NAME.test(shown)) return `filename="${shown || plain}"`;
  const encoded = encodeURIComponent(shown).replaceAll(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16)}`,
  );
  return `filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** REST-FILES-2: saved with their type. */
const SAVED = /^(?:audio\/[\w.+-]+|application\/pdf)$/;
/** A hash names the same bytes for ever; they are read only with a token. */
const CACHE = 'private, max-age=31536000, immutable';
const NO_RIGHTS = "default-src 'none'; sandbox";

export function addFileRoutes(app: Application, routes: RouteContext): void {
  app.put('/api/blobs', async (context) => {
    const { name, sha256 } = knownQuery(context, ['name', 'sha256']);
    if (sha256 !== undefined && !SHA256.test(sha256)) throw noHash(sha256);
    const length = context.req.header('content-length');
    const part = await routes
      .daemon(context)
      .keepFile(
        streamedBody(context),
        { ...(name && { name }), publisher: context.var.identity.publisher ?? ANONYMOUS },
        { sha256, size: length === undefined ? undefined : Number(length) },
      );
    return context.body(escapeHidden(JSON.stringify(part)), 201, { 'content-type': 'application/json' });
  });
  app.get('/api/conversations/:conversation/blobs/:sha256', async (context) => {
    const { name } = knownQuery(context, ['name']);
    const { conversation, sha256 } = context.req.param();
    if (!SHA256.test(sha256)) throw noHash(sha256);
    const { mediaType, size, read } = await routes.daemon(context).findFile(conversation, sha256);
    const isShown = SHOWN.includes(mediaType);
    const etag = `"${sha256}"`;
    const headers = {
      etag,
      'cache-control': CACHE,
      'content-security-policy': NO_RIGHTS,
      'content-type': isShown || SAVED.test(mediaType) ? mediaType : UNKNOWN_TYPE,
      'content-disposition': `${isShown ? 'inline' : 'attachment'}; ${fileName(name ?? '', sha256.slice(0, 12))}`,
    };
    if (context.req.header('if-none-match')?.includes(etag)) return context.body(null, 304, headers);
    const sized = { ...headers, 'content-length': String(size) };
    if (context.req.method === 'HEAD') return context.body(null, 200, sized);
    const content = await read();
    if (content === null) throw new ParleyError('NOT_FOUND', 'the file was erased just now');
    return context.body(ReadableStream.from(content), 200, sized);
  });
}

function noHash(given: string): ParleyError {
  const message = `${JSON.stringify(given.slice(0, 100))} is no SHA-256`;
  return badRequest(message, 'give 64 digits: 0 to 9 and a to f');
}
