import { ParleyError } from '../../kernel/index.ts';
import type { Request, RouteContext } from '../context.ts';

/**
 * The body of a request.
 *
 * BODY-1 At most `maxBodyBytes` are kept. A body is taken as it is: none is decompressed.
 * BODY-2 The request is read, never replaced by a copy: the signal of a copy that is garbage-collected while its answer
 *        streams does not report that the client is gone.
 * BODY-3 A body whose connection ends early is the client's fault, not a bug of the daemon.
 */

/** The body as one JSON object. */
export async function jsonBody(
  context: Request,
  { maxBodyBytes, wire }: Pick<RouteContext, 'maxBodyBytes' | 'wire'>,
  mayBeEmpty = true,
): Promise<Record<string, unknown>> {
  const bytes = await readBody(context, maxBodyBytes);
  if (bytes.length === 0) {
    if (mayBeEmpty) return {};
    throw new ParleyError('MALFORMED_JSON', 'the body is empty', { hint: 'send one JSON object' });
  }
  const type = context.req.header('content-type') ?? '';
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(type)?.[1] ?? 'utf-8';
  if (!/^application\/([a-z.-]+\+)?json\s*(;|$)/i.test(type) || !/^(utf-?8|us-ascii)$/i.test(charset)) {
    throw new ParleyError('UNSUPPORTED_MEDIA_TYPE', `a body of type ${JSON.stringify(type)} is not taken`, {
      hint: 'send JSON in UTF-8 with the header Content-Type: application/json',
    });
  }
  const decoded = wire.decode(bytes);
  if (!decoded.ok) throw new ParleyError(decoded.refusal.code, decoded.refusal.message, decoded.refusal);
  const { body } = decoded;
  if (body !== null && typeof body === 'object' && !Array.isArray(body)) return { ...body };
  throw new ParleyError('BAD_REQUEST', 'expected a JSON object', {
    hint: 'GET /api/openapi.json says what is taken',
  });
}

/** The body piece by piece, as it is sent. The reader counts. */
export function streamedBody({ req }: Request): AsyncIterable<Uint8Array> {
  const encoding = req.header('content-encoding')?.trim().toLowerCase() || 'identity';
  if (encoding === 'identity') return piecesOf(req.raw.body);
  throw new ParleyError(
    'UNSUPPORTED_MEDIA_TYPE',
    `the content-encoding ${JSON.stringify(encoding)} is not supported`,
    { hint: 'send the body as it is' },
  );
}

/** Stops at the limit. The server discards the rest (GATEWAY-N-1), so that the client can read the refusal. */
async function readBody(context: Request, maxBytes: number): Promise<Uint8Array> {
  const pieces = streamedBody(context);
  if (Number(context.req.header('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of pieces) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

async function* piecesOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read().catch(incomplete)) ?? { done: true };
    if (done || value === undefined) return;
    yield value;
  }
}

function incomplete(cause: unknown): never {
  throw new ParleyError('REQUEST_INCOMPLETE', 'the connection ended before the whole body was received', {
    hint: 'send the request again',
    cause,
  });
}

function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError('TOO_LARGE', `a body may have ${maxBytes} bytes`, {
    hint: 'send less at once',
  });
}
