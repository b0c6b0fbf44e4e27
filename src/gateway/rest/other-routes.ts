import { z } from 'zod';
import { runInputSchema } from '../ag-ui/input.ts';
import { chatRequestSchema } from '../openai/request.ts';
import { type Json, jsonSchema } from './json-schema.ts';

/** Routes of other protocols in the OpenAPI document, with a link to each definition. */

const OPENAI = { description: "OpenAI's API", url: 'https://platform.openai.com/docs/api-reference/chat' };
const AG_UI = { description: 'AG-UI', url: 'https://docs.ag-ui.com' };
const A2A = { description: 'A2A', url: 'https://a2a-protocol.org' };
const MCP = { description: 'Model Context Protocol', url: 'https://modelcontextprotocol.io' };

const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream';

const jsonRpc = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string(),
  params: z.unknown().optional(),
});

interface OtherRoute {
  readonly method: 'get' | 'post';
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  /** Null: no token is needed. */
  readonly role: string | null;
  readonly answers: readonly string[];
  readonly body?: z.ZodType;
  readonly externalDocs?: Json;
}

const RPC_ROLES = 'read`; a request may also need `post`, `approve` or `operate';

const OTHER_ROUTES: readonly OtherRoute[] = [
  {
    method: 'post',
    path: '/api/console-token',
    operationId: 'exchange_code',
    summary: 'The token of the daemon, once, for the code of a printed address: `Authorization: Code <code>`',
    role: null,
    answers: [JSON_TYPE],
  },
  {
    method: 'get',
    path: '/v1/models',
    operationId: 'list_models',
    summary: 'Agents as models; `parley` is the agent that routing chooses',
    role: 'read',
    answers: [JSON_TYPE],
    externalDocs: OPENAI,
  },
  {
    method: 'get',
    path: '/v1/models/{model}',
    operationId: 'get_model',
    summary: 'An agent as a model',
    role: 'read',
    answers: [JSON_TYPE],
    externalDocs: OPENAI,
  },
  {
    method: 'post',
    path: '/v1/chat/completions',
    operationId: 'complete_chat',
    summary:
      'Post the last message and get the answer, whole or as events; the header `x-parley-conversation` names the conversation',
    role: 'post',
    answers: [JSON_TYPE, EVENTS],
    body: chatRequestSchema,
    externalDocs: OPENAI,
  },
  {
    method: 'post',
    path: '/ag-ui/{agent}',
    operationId: 'run_agent',
    summary: 'A run of an agent; a thread is a conversation',
    role: RPC_ROLES,
    answers: [EVENTS],
    body: runInputSchema,
    externalDocs: AG_UI,
  },
  {
    method: 'get',
    path: '/a2a',
    operationId: 'list_agent_cards',
    summary: 'The addresses of the agent cards',
    role: 'read',
    answers: [JSON_TYPE],
    externalDocs: A2A,
  },
  {
    method: 'post',
    path: '/a2a/{agent}',
    operationId: 'ask_agent',
    summary: 'Send a message; get, list, cancel and follow tasks, by JSON-RPC; a context is a conversation',
    role: RPC_ROLES,
    answers: [JSON_TYPE, EVENTS],
    body: jsonRpc,
    externalDocs: A2A,
  },
  {
    method: 'get',
    path: '/a2a/{agent}/.well-known/agent-card.json',
    operationId: 'get_agent_card',
    summary: 'The card of this agent',
    role: null,
    answers: [JSON_TYPE],
    externalDocs: A2A,
  },
  {
    method: 'get',
    path: '/.well-known/agent-card.json',
    operationId: 'get_card',
    summary: 'The card of the agent that routing chooses',
    role: null,
    answers: [JSON_TYPE],
    externalDocs: A2A,
  },
  {
    method: 'post',
    path: '/mcp',
    operationId: 'call_mcp',
    summary: 'The tools of an MCP server, by JSON-RPC over streamable HTTP, without sessions',
    role: RPC_ROLES,
    answers: [JSON_TYPE, EVENTS],
    body: jsonRpc,
    externalDocs: MCP,
  },
  {
    method: 'get',
    path: '/metrics',
    operationId: 'get_metrics',
    summary: 'Metrics for Prometheus',
    role: 'read',
    answers: ['text/plain'],
  },
  {
    method: 'get',
    path: '/healthz',
    operationId: 'get_health',
    summary: 'The process runs',
    role: null,
    answers: [JSON_TYPE],
  },
  {
    method: 'get',
    path: '/readyz',
    operationId: 'get_readiness',
    summary:
      'It accepts posts; 503 while it starts or stops, cannot reach NATS, or cannot write logs (a full disk)',
    role: null,
    answers: [JSON_TYPE],
  },
];

/** By path and method. */
export function otherRoutes(): Record<string, Record<string, Json>> {
  return Object.fromEntries(OTHER_ROUTES.map((route) => [route.path, { [route.method]: operation(route) }]));
}

function operation({ path, operationId, summary, role, answers, body, externalDocs }: OtherRoute): Json {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => String(match[1]));
  const schema = body && jsonSchema(body, 'input');
  return {
    operationId,
    summary,
    description: role === null ? 'Needs no token.' : `Needs the role \`${role}\`.`,
    ...(externalDocs && { externalDocs }),
    parameters: names.map((name) => ({ in: 'path', name, required: true, schema: { type: 'string' } })),
    ...(schema && { requestBody: { content: { [JSON_TYPE]: { schema } } } }),
    responses: {
      200: { description: 'Done', content: Object.fromEntries(answers.map((type) => [type, {}])) },
      default: { description: 'Refused, in the form of the protocol' },
    },
  };
}
