import { JsonRpcTransportHandler } from '@a2a-js/sdk/server';
import { ParleyError } from '../../kernel/index.ts';
import type { Request, RouteContext } from '../context.ts';
import { jsonBody } from '../rest/handlers.ts';
import { mixedPart } from './parts.ts';

/**
 * JSON-RPC errors of unreadable requests: the SDK answers all of them with `-32602`.
 *
 * RPC-1  No JSON (or an empty body) is `-32700`, JSON that is no request `-32600`, an unknown method `-32601`.
 *        What HTTP refuses (type, size, token) remains a refusal of HTTP.
 * RPC-2  A part of several kinds is `-32602`: the SDK would keep one of them and drop the others.
 */

export type Body = Record<string, unknown>;
export type Read = { readonly body: Body } | { readonly refused: object };

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

/** Refusals of `jsonBody` that JSON-RPC has a code for. */
const CODES: Readonly<Record<string, number>> = {
  MALFORMED_JSON: PARSE_ERROR,
  INVALID_UTF8: PARSE_ERROR,
  INVALID_FIELD: INVALID_REQUEST,
  BAD_REQUEST: INVALID_REQUEST,
};

const METHODS: ReadonlySet<string> = new Set([
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
  'GetExtendedAgentCard',
]);

export async function readRequest(context: Request, routes: RouteContext, isLegacy: boolean): Promise<Read> {
  try {
    const body = await jsonBody(context, routes, false);
    const wrong = wrongWith(body);
    if (wrong !== null) return { refused: refusal(body, INVALID_REQUEST, wrong) };
    const { method, params = {} } = body;
    const mixed = mixedPart(params);
    if (mixed !== null) return { refused: refusal(body, INVALID_PARAMS, mixed) };
    if (isLegacy) {
      if (!METHODS.has(String(method))) return { body }; // the SDK knows its methods
      const hint = 'is one of version 1.0: send the header A2A-Version: 1.0';
      return { refused: refusal(body, METHOD_NOT_FOUND, `${method} ${hint}`) };
    }
    if (METHODS.has(String(method))) return { body: { ...body, params } };
    const known = `there is no method ${JSON.stringify(method)}: there are ${[...METHODS].join(', ')}`;
    return { refused: refusal(body, METHOD_NOT_FOUND, known) };
  } catch (error) {
    const code = error instanceof ParleyError ? CODES[error.code] : undefined;
    if (code === undefined) throw error;
    return { refused: refusal({}, code, (error as ParleyError).message) };
  }
}

/** Null: a valid request. */
function wrongWith({ jsonrpc, id, method }: Body): string | null {
  if (jsonrpc !== '2.0') return 'expected "jsonrpc": "2.0"';
  if (typeof method !== 'string' || method === '') return 'expected the name of a method as `method`';
  const isId = id === undefined || id === null || typeof id === 'string' || Number.isInteger(id);
  return isId ? null : 'expected a text or an integer as `id`';
}

export function refusalOf(body: Body, error: unknown): object {
  return { jsonrpc: '2.0', id: idOf(body), error: JsonRpcTransportHandler.mapToJSONRPCError(error) };
}

function refusal(body: Body, code: number, message: string): object {
  return { jsonrpc: '2.0', id: idOf(body), error: { code, message } };
}

function idOf({ id }: Body): string | number | null {
  return typeof id === 'string' || Number.isInteger(id) ? (id as string | number) : null;
}
