import { promisify } from 'node:util';
import { brotliDecompress, gunzip, type InputType, inflate, type ZlibOptions } from 'node:zlib';
import { asError, errnoOf, ParleyError } from '../../kernel/index.ts';
import type { Request } from '../context.ts';
import { Turns } from './limits.ts';

/**
 * The body of a request.
 *
 * BODY-1 At most `maxBytes` are kept, as sent and as decoded: decoding stops at the limit, whatever a body expands to.
 * BODY-2 The request is read, never replaced by a copy: the signal of a copy that is garbage-collected while its answer
 *        streams does not report that the client is gone.
 * BODY-3 A body whose connection ends early is the client's fault, not a bug of the daemon.
 * BODY-4 An encoded body may expand to 1 MiB, or to 32 times its size if that is more: few bytes do not fill the memory.
 * BODY-5 Of the bodies above 1 MiB, at most eight of one caller are read at a time; the others wait on their connections.
 */

type Decode = (bytes: InputType, options: ZlibOptions) => Promise<Uint8Array>;

/** By `content-encoding`. */
const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: promisify<InputType, ZlibOptions, Buffer>(gunzip),
  'x-gzip': promisify<InputType, ZlibOptions, Buffer>(gunzip),
  deflate: promisify<InputType, ZlibOptions, Buffer>(inflate),
  br: promisify<InputType, ZlibOptions, Buffer>(brotliDecompress),
};
const ACCEPTED = 'gzip, deflate, br';
/** BODY-4, BODY-5 */
const SMALL = 1_048_576;
const MOST_TIMES = 32;
const large = new Turns(8);

interface BodyOptions {
  /** The client sends all messages, with their files in base64. */
  readonly hasHistory?: boolean;
  readonly mayBeEmpty?: boolean;
}

export async function jsonBody(
  context: Request,
  { hasHistory = false, mayBeEmpty = true }: BodyOptions = {},
): Promise<Record<string, unknown>> {
  const { maxBodyBytes, maxHistoryBytes, wire } = context.var.routes;
  const bytes = await readBody(context, hasHistory ? maxHistoryBytes : maxBodyBytes);
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
  if (!decoded.ok) throw asError(decoded.refusal);
  const { body } = decoded;
  if (body !== null && typeof body === 'object' && !Array.isArray(body)) return { ...body };
  throw new ParleyError('BAD_REQUEST', 'expected a JSON object', {
    hint: 'GET /api/openapi.json says what is taken',
  });
}

/** The body piece by piece, as it is sent. The reader counts. */
export function streamedBody({ req }: Request): AsyncIterable<Uint8Array> {
  const encoding = req.header('content-encoding')?.trim().toLowerCase() || 'identity';
  if (encoding !== 'identity') throw unsupported(encoding, 'send the file as it is');
  return piecesOf(req.raw.body);
}

async function readBody(context: Request, maxBytes: number): Promise<Uint8Array> {
  const { req } = context;
  const encoding = (req.header('content-encoding') ?? '').trim().toLowerCase() || 'identity';
  const decode = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined;
  if (decode === undefined && encoding !== 'identity') {
    context.header('accept-encoding', ACCEPTED);
    throw unsupported(encoding, `send the body as it is, or with one of ${ACCEPTED}`);
  }
  if (Number(req.header('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const bytes = await readAll(context, maxBytes);
  if (decode === undefined || bytes.length === 0) return bytes;
  const most = Math.min(maxBytes, Math.max(SMALL, bytes.length * MOST_TIMES));
  try {
    return await decode(bytes, { maxOutputLength: most });
  } catch (error) {
    if (errnoOf(error) === 'ERR_BUFFER_TOO_LARGE')
      throw most < maxBytes ? tooDense(most) : tooLarge(maxBytes);
    throw new ParleyError('BAD_REQUEST', `the body is not valid ${encoding}`, {
      hint: 'send the header Content-Encoding only with a body that is encoded that way',
      cause: error,
    });
  }
}

/** Stops at the limit. The server discards the rest (GATEWAY-N-1), so that the client can read the refusal. */
async function readAll(context: Request, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let release: (() => void) | undefined;
  try {
    for await (const chunk of piecesOf(context.req.raw.body)) {
      size += chunk.length;
      if (size > maxBytes) throw tooLarge(maxBytes);
      if (size > SMALL) release ??= await large.take(context);
      chunks.push(chunk);
    }
  } finally {
    release?.();
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

function unsupported(encoding: string, hint: string): ParleyError {
  const message = `the content-encoding ${JSON.stringify(encoding)} is not supported`;
  return new ParleyError('UNSUPPORTED_MEDIA_TYPE', message, { hint });
}

function incomplete(cause: unknown): never {
  throw new ParleyError('REQUEST_INCOMPLETE', 'the connection ended before the whole body was received', {
    hint: 'send the request again',
    cause,
  });
}

function tooDense(most: number): ParleyError {
  return new ParleyError('TOO_LARGE', `a body that is sent with so few bytes may have ${most}, decoded`, {
    hint: 'send it without Content-Encoding',
  });
}

function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError('TOO_LARGE', `a body may have ${maxBytes} bytes, decoded`, {
    hint: 'send less at once',
  });
}
