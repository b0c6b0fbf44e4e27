import { SHA256, UNKNOWN_TYPE } from '../../conversation/index.ts';
import { escapeHidden, ParleyError } from '../../kernel/index.ts';
import type { Application, Request, RouteContext } from '../context.ts';
import { streamedBody } from '../guard/body.ts';
import { ANONYMOUS, badRequest, fileName } from './handlers.ts';
import { SHOWN } from './routes.ts';

/**
 * Files of messages.
 *
 * REST-FILES-1  Neither direction holds a file in memory.
 * REST-FILES-2  A browser gets nothing that it could run: pictures of four types are shown, every other file is saved, as bytes
 *               without a type, audio and PDF with theirs.
 */

/** REST-FILES-2: saved with their type. */
const SAVED = /^(?:audio\/[\w.+-]+|application\/pdf)$/;
/** A hash names the same bytes for ever; they are read only with a token. */
const CACHE = 'private, max-age=31536000, immutable';
const NO_RIGHTS = "default-src 'none'; sandbox";

export function addFileRoutes(app: Application, routes: RouteContext): void {
  app.put('/api/blobs', async (context) => {
    const { name, sha256 } = queryOf(context, ['name', 'sha256']);
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
    const { name } = queryOf(context, ['name']);
    const { conversation, sha256 } = context.req.param();
    if (!SHA256.test(sha256)) throw noHash(sha256);
    const { mediaType, size, read } = await routes.daemon(context).findFile(conversation, sha256);
    const isShown = SHOWN.includes(mediaType);
    const etag = `"${sha256}"`;
    const headers = {
      ...{ etag, 'cache-control': CACHE, 'content-security-policy': NO_RIGHTS },
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

function queryOf(context: Request, known: readonly string[]): Readonly<Record<string, string | undefined>> {
  const given = context.req.query();
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return given;
  throw badRequest(`${JSON.stringify(unknown)} means nothing here`, `known are ${known.join(', ')}`);
}

function noHash(given: string): ParleyError {
  const message = `${JSON.stringify(given.slice(0, 100))} is no SHA-256`;
  return badRequest(message, 'give 64 digits: 0 to 9 and a to f');
}
