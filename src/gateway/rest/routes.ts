import { z } from 'zod';
import { CONTRACT, type Verb } from '../../bus/contract.ts';
import { EXPORT_FORMATS, type ExportFormat, filePartSchema } from '../../conversation/index.ts';
import { runInputSchema } from '../ag-ui/input.ts';
import type { Role } from '../guard/access.ts';
import { chatRequestSchema } from '../openai/request.ts';
import { responseRequestSchema } from '../openai/responses/request.ts';

/**
 * Every route: the role that it needs, whether it may stay open, and its part of the OpenAPI document.
 *
 * ROUTES-1 A route that is missing here needs `operate`: the default is closed.
 * ROUTES-2 A handler that needs another role after the body was read (an answer, a tool call) calls `requireRole`.
 */

interface Row {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Names in braces are fields of the request. */
  readonly path: string;
  /** Null: public. */
  readonly role: Role | null;
  readonly summary: string;
  /** It may stay open, or is computed from a log: it takes a seat (SEATS-1). */
  readonly stays?: true;
}

/** A route of the request API. */
export interface Route extends Row {
  readonly verb: Verb;
  readonly role: Role;
  /** Fields that the query string may hold. */
  readonly query?: readonly string[];
  /** The request names its author, which the token provides. */
  readonly acts?: boolean;
  readonly status?: 201;
}

const get = (path: string, verb: Verb, ...query: readonly string[]) =>
  ({ method: 'get', path, verb, role: 'read', query }) as const;

const post = (path: string, verb: Verb, role: Role) =>
  ({ method: 'post', path, verb, role, acts: true }) as const;

/** The verbs of an operator. */
const STEERING: Partial<Record<Verb, string>> = {
  label: 'Set the `title`, or with `archived` the place in lists',
  phase: 'Enter a phase',
  mode: 'Switch between chat, agent and run',
  fork: 'Continue a copy of a conversation, up to entry `at`, as the conversation `as`',
  hire: 'Add an agent to this conversation',
  dismiss: 'Remove a hired agent, and those that it hired',
  'what-if':
    'Send requests of past turns again with another `model` or `persona`, beside the unchanged ones; the answer has the `id` of the result',
  stop: 'Abort running turns and start none until resumed; `agent` for one agent only',
  resume: 'Continue after a stop',
};

const ONE = '/api/conversations/{conversation}';

export const ROUTES: readonly Route[] = [
  {
    ...get('/api/conversations', 'conversations', 'after', 'limit', 'days'),
    summary:
      'List conversations by id; `next` is the `after` of the next page. `days`: with what model calls used on each of so many days',
  },
  {
    ...post('/api/conversations', 'post', 'post'),
    status: 201,
    summary: 'Begin a conversation with a message; `conversation` is generated when it is left out',
  },
  {
    ...get(ONE, 'conversation'),
    summary: 'The state of a conversation',
  },
  {
    method: 'delete',
    path: ONE,
    verb: 'delete',
    role: 'operate',
    query: ['lastEntryBefore'],
    summary: 'Delete a conversation and its files; can be repeated. 404 for an id that never existed',
  },
  {
    ...post(`${ONE}/messages`, 'post', 'post'),
    status: 201,
    summary: 'Post a message; answers once it is durable. The same `id` again changes nothing',
  },
  {
    ...post(`${ONE}/results`, 'results', 'post'),
    summary:
      'Answer calls of tools that a message of the same author brought. The same results again change nothing',
  },
  {
    ...post(`${ONE}/feedback`, 'feedback', 'post'),
    summary: 'A thumb for the answer `index`, with a `note`: `up`, `down`, or `none` to take it back',
  },
  {
    ...get(`${ONE}/entries`, 'entries', 'from', 'limit'),
    summary: 'A page of the log; the next one begins at the last index + 1, until `length`',
  },
  {
    ...get(`${ONE}/view`, 'view', 'agent', 'at', 'texts', 'body'),
    stays: true,
    summary:
      'The exact request that an agent is sent, with a report; `texts`: names of parts of the definition, with commas; `body=true`: the exact bytes instead of the messages',
  },
  ...(Object.entries(STEERING) as [Verb, string][]).map(([verb, summary]) => ({
    ...post(`${ONE}/${verb}`, verb, 'operate'),
    summary,
  })),
  {
    ...get(`${ONE}/what-ifs`, 'what-ifs'),
    summary: 'The what-ifs of this conversation, newest first',
  },
  {
    ...get(`${ONE}/what-ifs/{id}`, 'what-if-result', 'from', 'limit'),
    summary: 'The progress and the results of a what-if; `next` is the `from` of the next page',
  },
  {
    ...post(`${ONE}/what-ifs/{id}/stop`, 'what-if-stop', 'operate'),
    summary: 'End a what-if; what it has is kept',
  },
  {
    ...get(`${ONE}/approvals`, 'approvals'),
    summary: 'Outstanding approvals of this conversation',
  },
  {
    ...get(
      '/api/search',
      'search',
      'q',
      'conversation',
      'agent',
      'person',
      'phase',
      'after',
      'before',
      'limit',
    ),
    stays: true,
    summary:
      'Words in the messages of all conversations, best first; words in quotation marks occur in this order',
  },
  {
    ...post('/api/reading', 'reading', 'read'),
    summary:
      'What the person of this token has read: `read` has the entries by conversation, `filters` the saved filters of the list; the answer is all that is kept. A token without a person is refused',
  },
  {
    ...get(
      '/api/turns',
      'turns',
      'conversation',
      'agent',
      'model',
      'outcome',
      'tool',
      'rated',
      'since',
      'after',
      'limit',
    ),
    stays: true,
    summary:
      'The turns of all conversations with agent, models, outcome, time, tokens, cost, tools and ratings, newest conversation first; `next` is the `after` of the next page',
  },
  {
    ...get('/api/approvals', 'approvals', 'conversation'),
    summary: 'Outstanding approvals of all conversations',
  },
  {
    ...get('/api/approvals/{approvalId}/change', 'change'),
    role: 'approve',
    summary:
      'What a call that waits would change now: the difference of a file for `fs_write` and `fs_edit`, or `why` there is none; null for other tools',
  },
  {
    ...post('/api/approvals/{approvalId}/change', 'change', 'approve'),
    acts: false,
    summary: 'The same with other `arguments`, or `why` the call cannot run with them; nothing changes',
  },
  {
    ...post('/api/approvals/{approvalId}', 'answer', 'approve'),
    summary: 'Approve or deny a call, or resolve one whose outcome is unknown',
  },
  {
    ...get('/api/agents', 'agents', 'persona'),
    summary: 'The agents; `persona`: the agent whose persona the answer contains',
  },
  {
    ...post('/api/reload', 'reload', 'operate'),
    summary: 'Read the configuration again; one that is not valid changes nothing',
  },
  {
    ...get('/api/tools', 'tools'),
    summary: 'The tools that agents can call, and the MCP servers',
  },
  {
    ...get('/api/status', 'status', 'limit', 'days'),
    summary:
      'What runs, waits, is halted or failed; daemons, models, agents in other processes and MCP servers; `limit`: rows of each group; `days`: also what model calls used on each of so many days',
  },
  {
    ...get('/api/dead-letters', 'dead', 'publisher', 'conversation', 'code', 'before', 'limit'),
    summary: 'Refused posts, newest first; `next` is the `before` of the next page',
  },
  {
    ...get('/api/dead-letters/{sequence}', 'dead-letter'),
    summary: 'One refused post, with its text',
  },
  {
    method: 'delete',
    path: '/api/dead-letters/{sequence}',
    verb: 'dead-discard',
    role: 'operate',
    summary: 'Remove a refused post for good',
  },
  {
    ...post('/api/dead-letters/{sequence}/retry', 'dead-retry', 'operate'),
    acts: false,
    summary: 'Post a refused post again, as its publisher',
  },
  {
    ...get('/api/phases', 'phases'),
    summary: 'The phases, and which ones an agent may enter from each',
  },
  {
    ...get('/api/workflows', 'workflows'),
    summary: 'The workflows with their nodes',
  },
];

/** A route beside the request API: its operation in the OpenAPI document. */
export interface OtherRoute extends Row {
  readonly operationId: string;
  /** Media types. */
  readonly answers: readonly string[];
  /** The answer in JSON. */
  readonly answer?: z.ZodType;
  readonly body?: z.ZodType;
  /** The request has bytes of any type. */
  readonly takesFile?: true;
  readonly status?: 201;
  /** By name: descriptions of the parameters in the query, or their schemas. */
  readonly query?: Readonly<Record<string, string | z.ZodType>>;
  /** The protocol's own definition. */
  readonly docs?: { readonly description: string; readonly url: string };
  /** The role depends on the request, too (ROUTES-2). */
  readonly needsMore?: true;
}

const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream';

const PUBLIC = { method: 'get', role: null, answers: [JSON_TYPE] } as const;
const READ = { method: 'get', role: 'read', answers: [JSON_TYPE] } as const;
const STAYS = { method: 'post', role: 'read', needsMore: true, stays: true } as const;
const FOLLOW = { method: 'get', role: 'read', answers: [EVENTS], stays: true } as const;

const OPENAI = { description: "OpenAI's API", url: 'https://platform.openai.com/docs/api-reference/chat' };
const AG_UI = { description: 'AG-UI', url: 'https://docs.ag-ui.com' };
const A2A = { description: 'A2A', url: 'https://a2a-protocol.org' };
const MCP = { description: 'Model Context Protocol', url: 'https://modelcontextprotocol.io' };

const jsonRpc = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string(),
  params: z.unknown().optional(),
});

/** The caller. Null `publisher`: it may act as any; null `name`: its requests name the person. `isSession`: by the cookie of a sign-in. */
export const identity = z.looseObject({
  role: z.string(),
  publisher: z.string().nullable(),
  name: z.string().nullable(),
  isSession: z.boolean(),
});

/** Pictures that browsers show and cannot run. Every other file is saved. */
export const SHOWN: readonly string[] = ['image/gif', 'image/jpeg', 'image/png', 'image/webp'];

export const EXPORTS: Readonly<Record<ExportFormat, { readonly type: string; readonly extension: string }>> =
  {
    markdown: { type: 'text/markdown', extension: 'md' },
    openai: { type: 'application/json', extension: 'json' },
    jsonl: { type: 'application/jsonl', extension: 'jsonl' },
    cases: { type: 'application/jsonl', extension: 'cases.jsonl' },
  };

export const OTHER_ROUTES: readonly OtherRoute[] = [
  {
    ...READ,
    path: `${ONE}/export`,
    operationId: 'exportConversation',
    answers: Object.values(EXPORTS).map(({ type }) => type),
    query: { format: z.enum(EXPORT_FORMATS).default('markdown') },
    summary:
      'A whole conversation as a file: for people, as messages in the form of OpenAI, all entries as JSON Lines, or its rated answers as test cases',
  },
  {
    ...{ method: 'put', path: '/api/blobs', operationId: 'uploadFile', role: 'post', stays: true },
    ...{ answers: [JSON_TYPE], answer: filePartSchema, takesFile: true, status: 201 },
    query: { name: 'The name of the file', sha256: 'Refuse bytes that have another hash' },
    summary: 'Store a file. The answer is a part of a message as it is: `{"parts": [<answer>]}`',
  },
  {
    ...READ,
    path: `${ONE}/blobs/{sha256}`,
    operationId: 'downloadFile',
    answers: ['application/octet-stream', ...SHOWN],
    stays: true,
    query: { name: 'The name under which it is saved' },
    summary: 'The bytes of a file that a message of this conversation names',
  },
  {
    ...FOLLOW,
    path: `${ONE}/events`,
    operationId: 'followConversation',
    query: { from: CONTRACT.entries.request.shape.from },
    summary:
      'Follow a conversation: each entry once, in order, with its index as the id; live text has no id. The header `Last-Event-ID` continues',
  },
  {
    ...FOLLOW,
    path: '/api/events',
    operationId: 'followSeveral',
    query: {
      follow: 'Conversations as `ID@INDEX`, separated by commas; INDEX: the first index wanted, by default 0',
      list: 'The `version` of the last `list` event, or `1`: the whole list',
    },
    summary: 'Follow several conversations and the conversation list in one stream',
  },
  {
    ...READ,
    path: '/api/identity',
    operationId: 'get_identity',
    answer: identity,
    summary: 'The role, the publisher and the name of the token; without tokens, each caller is the operator',
  },
  {
    ...PUBLIC,
    method: 'post',
    path: '/api/session',
    operationId: 'sign_in',
    summary:
      'Sign a browser in with a cookie, for a token or for the code of a printed address: `Authorization: Code <code>`, once',
  },
  {
    ...PUBLIC,
    method: 'delete',
    path: '/api/session',
    operationId: 'sign_out',
    summary: 'Remove the cookie',
  },
  {
    ...READ,
    path: '/v1/models',
    operationId: 'list_models',
    docs: OPENAI,
    summary: 'Agents as models; `parley` is the agent that routing chooses',
  },
  {
    ...READ,
    path: '/v1/models/{model}',
    operationId: 'get_model',
    docs: OPENAI,
    summary: 'An agent as a model',
  },
  {
    ...{ method: 'post', path: '/v1/chat/completions', operationId: 'complete_chat', role: 'post' },
    ...{ answers: [JSON_TYPE, EVENTS], stays: true, body: chatRequestSchema, docs: OPENAI },
    summary:
      'Post the last message and get the answer, whole or as events; the header `x-parley-conversation` names the conversation',
  },
  {
    ...{ method: 'post', path: '/v1/responses', operationId: 'create_response', role: 'post' },
    ...{ answers: [JSON_TYPE, EVENTS], stays: true, body: responseRequestSchema, docs: OPENAI },
    summary: 'The same in the form of the Responses API',
  },
  {
    ...READ,
    path: '/v1/responses/{id}',
    operationId: 'get_response',
    docs: OPENAI,
    summary: 'A response as the log has it now',
  },
  {
    ...READ,
    path: '/v1/responses/{id}/input_items',
    operationId: 'list_response_input',
    docs: OPENAI,
    summary: 'The message that a response answers',
  },
  {
    ...{ method: 'post', path: '/v1/responses/{id}/cancel', operationId: 'cancel_response', role: 'post' },
    ...{ answers: [JSON_TYPE], stays: true, docs: OPENAI },
    summary: 'End the turns of a response',
  },
  {
    ...READ,
    path: '/v1/conversations/{id}',
    operationId: 'get_openai_conversation',
    docs: OPENAI,
    summary: 'A conversation',
  },
  {
    ...READ,
    path: '/v1/conversations/{id}/items',
    operationId: 'list_openai_items',
    docs: OPENAI,
    summary: 'The messages of a conversation, newest first, in pages',
  },
  {
    ...READ,
    path: '/v1/conversations/{id}/items/{item}',
    operationId: 'get_openai_item',
    docs: OPENAI,
    summary: 'A message of a conversation',
  },
  {
    ...STAYS,
    path: '/ag-ui/{agent}',
    operationId: 'run_agent',
    ...{ answers: [EVENTS], body: runInputSchema, docs: AG_UI },
    summary: 'A run of an agent; a thread is a conversation',
  },
  {
    ...READ,
    path: '/a2a',
    operationId: 'list_agent_cards',
    docs: A2A,
    summary: 'The addresses of the agent cards',
  },
  {
    ...STAYS,
    path: '/a2a/{agent}',
    operationId: 'ask_agent',
    ...{ answers: [JSON_TYPE, EVENTS], body: jsonRpc, docs: A2A },
    summary: 'Send a message; get, list, cancel and follow tasks, by JSON-RPC; a context is a conversation',
  },
  {
    ...PUBLIC, // clients learn from the card that they need a token
    path: '/a2a/{agent}/.well-known/agent-card.json',
    operationId: 'get_agent_card',
    docs: A2A,
    summary: 'The card of this agent',
  },
  {
    ...PUBLIC,
    path: '/.well-known/agent-card.json',
    operationId: 'get_card',
    docs: A2A,
    summary: 'The card of the agent that routing chooses',
  },
  {
    ...STAYS,
    path: '/mcp',
    operationId: 'call_mcp',
    ...{ answers: [JSON_TYPE, EVENTS], body: jsonRpc, docs: MCP },
    summary: 'The tools of an MCP server, by JSON-RPC over streamable HTTP, without sessions',
  },
  {
    ...READ,
    path: '/metrics',
    operationId: 'get_metrics',
    answers: ['text/plain'],
    summary: 'Metrics for Prometheus',
  },
  { ...PUBLIC, path: '/healthz', operationId: 'get_health', summary: 'The process runs' },
  {
    ...PUBLIC,
    path: '/readyz',
    operationId: 'get_readiness',
    summary:
      'It accepts posts; 503 while it starts or stops, cannot reach NATS, or cannot write logs (a full disk)',
  },
];

/** The path as the router writes it. */
export function routerPath({ path }: Pick<Row, 'path'>): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** The files of the console, and the document itself. */
const UNDESCRIBED: readonly Pick<Row, 'method' | 'path' | 'role'>[] = [
  { method: 'get', path: '/', role: null },
  { method: 'get', path: '/assets/{name}', role: null },
  { method: 'get', path: '/api/openapi.json', role: 'read' },
];

/** A route as the router names it. */
export interface RouteName {
  readonly method: string;
  readonly path: string;
}

/** By method and path of the router. */
const ROLES: ReadonlyMap<string, Role | null> = new Map(
  [...ROUTES, ...OTHER_ROUTES, ...UNDESCRIBED].map((row) => [
    `${row.method.toUpperCase()} ${routerPath(row)}`,
    row.role,
  ]),
);

/** Undefined: not in the table. */
export function declaredRole({ method, path }: RouteName): Role | null | undefined {
  return ROLES.get(`${method} ${path}`);
}

export function roleOf(route: RouteName): Role | null {
  const declared = declaredRole(route);
  return declared === undefined ? 'operate' : declared;
}
