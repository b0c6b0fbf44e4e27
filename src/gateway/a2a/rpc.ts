import { JsonRpcTransportHandler } from '@a2a-js/sdk/server';
import { isRecord, ParleyError, valueAt } from '../../kernel/index.ts';
import type { Request, RouteContext } from '../context.ts';
import { jsonBody } from '../guard/body.ts';
import { faultOfParts } from './parts.ts';

/**
 * JSON-RPC errors of unreadable requests: the SDK answers all of them with `-32602`.
 *
 * RPC-1  No JSON (or an empty body) is `-32700`, JSON that is no request `-32600`, an unknown method `-32601`.
 *        What HTTP refuses (type, size, token) remains a refusal of HTTP.
 * RPC-2  A part of several kinds is `-32602`: the SDK would keep one of them and drop the others. So are parts that are no list: it would
 *        take them for none.
 * RPC-3  Parameters at which the SDK throws are `-32602`, in our words: it answers with what JavaScript says about its own code.
 */

export type Body = Record<string, unknown>;
export type Read = { readonly body: Body } | { readonly refused: object };

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

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
    const wrongParts = faultOfParts(params);
    if (wrongParts !== null) return { refused: refusal(body, INVALID_PARAMS, wrongParts) };
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

/** RPC-3. Our own errors begin with their code. */
export function asFaultOfClient(body: Body, answered: object): object {
  const error = valueAt(answered, ['error']);
  if (!isRecord(error) || error.code !== INTERNAL_ERROR || /^[A-Z][A-Z_]+: /.test(String(error.message)))
    return answered;
  return refusal(body, INVALID_PARAMS, `the parameters are not those of ${String(body.method)}`);
}

function refusal(body: Body, code: number, message: string): object {
  return { jsonrpc: '2.0', id: idOf(body), error: { code, message } };
}

function idOf({ id }: Body): string | number | null {
  return typeof id === 'string' || Number.isInteger(id) ? (id as string | number) : null;
}
