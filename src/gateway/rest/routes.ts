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
  /** The request names its author, which the token provides. */
  readonly acts?: boolean;
  readonly status?: 201;
}

const get = (path: string, verb: Verb, summary: string): Route => ({
  method: 'get',
  path,
  verb,
  role: 'read',
  summary,
});
const remove = (path: string, verb: Verb, summary: string): Route => ({
  method: 'delete',
  path,
  verb,
  role: 'operate',
  summary,
});
const post = (path: string, verb: Verb, role: Role, summary: string): Route => ({
  method: 'post',
  path,
  verb,
  role,
  summary,
  acts: 'publisher' in CONTRACT[verb].request.shape,
  ...(verb === 'post' && { status: 201 }),
});

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
  get(
    '/api/conversations',
    'conversations',
    'List conversations by id; `next` is the `after` of the next page. `days`: with what model calls used on each of so many days',
  ),
  post(
    '/api/conversations',
    'post',
    'post',
    'Begin a conversation with a message; `conversation` is generated when it is left out',
  ),
  get(ONE, 'conversation', 'The state of a conversation'),
  remove(
    ONE,
    'delete',
    'Delete a conversation and its files; can be repeated. 404 for an id that never existed',
  ),
  post(
    `${ONE}/messages`,
    'post',
    'post',
    'Post a message; answers once it is durable. The same `id` again changes nothing',
  ),
  post(
    `${ONE}/results`,
    'results',
    'post',
    'Answer calls of tools that a message of the same author brought. The same results again change nothing',
  ),
  post(
    `${ONE}/feedback`,
    'feedback',
    'post',
    'A thumb for the answer `index`, with a `note`: `up`, `down`, or `none` to take it back',
  ),
  get(
    `${ONE}/entries`,
    'entries',
    'A page of the log; the next one begins at the last index + 1, until `length`',
  ),
  {
    ...get(
      `${ONE}/view`,
      'view',
      'The exact request that an agent is sent, with a report; `texts`: names of parts of the definition, with commas; `body=true`: the exact bytes instead of the messages',
    ),
    stays: true,
  },
  ...(Object.entries(STEERING) as [Verb, string][]).map(([verb, summary]) =>
    post(`${ONE}/${verb}`, verb, 'operate', summary),
  ),
  get(`${ONE}/what-ifs`, 'what-ifs', 'The what-ifs of this conversation, newest first'),
  get(
    `${ONE}/what-ifs/{id}`,
    'what-if-result',
    'The progress and the results of a what-if; `next` is the `from` of the next page',
  ),
  post(`${ONE}/what-ifs/{id}/stop`, 'what-if-stop', 'operate', 'End a what-if; what it has is kept'),
  get(`${ONE}/approvals`, 'approvals', 'Outstanding approvals of this conversation'),
  {
    ...get(
      '/api/search',
      'search',
      'Words in the messages of all conversations, best first; words in quotation marks occur in this order',
    ),
    stays: true,
  },
  post(
    '/api/reading',
    'reading',
    'read',
    'What the person of this token has read: `read` has the entries by conversation, `filters` the saved filters of the list; the answer is all that is kept. A token without a person is refused',
  ),
  {
    ...get(
      '/api/turns',
      'turns',
      'The turns of all conversations with agent, models, outcome, time, tokens, cost, tools and ratings, newest conversation first; `next` is the `after` of the next page',
    ),
    stays: true,
  },
  get('/api/approvals', 'approvals', 'Outstanding approvals of all conversations'),
  {
    ...get(
      '/api/approvals/{approvalId}/change',
      'change',
      'What a call that waits would change now: the difference of a file for `fs_write` and `fs_edit`, or `why` there is none; null for other tools',
    ),
    role: 'approve',
  },
  post(
    '/api/approvals/{approvalId}/change',
    'change',
    'approve',
    'The same with other `arguments`, or `why` the call cannot run with them; nothing changes',
  ),
  post(
    '/api/approvals/{approvalId}',
    'answer',
    'approve',
    'Approve or deny a call, or resolve one whose outcome is unknown',
  ),
  get('/api/agents', 'agents', 'The agents; `persona`: the agent whose persona the answer contains'),
  post(
    '/api/reload',
    'reload',
    'operate',
    'Read the configuration again; one that is not valid changes nothing',
  ),
  get('/api/tools', 'tools', 'The tools that agents can call, and the MCP servers'),
  get(
    '/api/status',
    'status',
    'What runs, waits, is halted or failed; daemons, models, agents in other processes and MCP servers; `limit`: rows of each group; `days`: also what model calls used on each of so many days',
  ),
  get('/api/dead-letters', 'dead', 'Refused posts, newest first; `next` is the `before` of the next page'),
  get('/api/dead-letters/{sequence}', 'dead-letter', 'One refused post, with its text'),
  remove('/api/dead-letters/{sequence}', 'dead-discard', 'Remove a refused post for good'),
  post(
    '/api/dead-letters/{sequence}/retry',
    'dead-retry',
    'operate',
    'Post a refused post again, as its publisher',
  ),
  get('/api/phases', 'phases', 'The phases, and which ones an agent may enter from each'),
  get('/api/workflows', 'workflows', 'The workflows with their nodes'),
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

/** A helper of rows: what most of these routes have, and `more` of one of them. */
const other =
  (common: Pick<OtherRoute, 'method' | 'role' | 'answers' | 'stays' | 'needsMore'>) =>
  (path: string, operationId: string, summary: string, more: Partial<OtherRoute> = {}): OtherRoute => ({
    ...common,
    path,
    operationId,
    summary,
    ...more,
  });
const open = other({ method: 'get', role: null, answers: [JSON_TYPE] });
const read = other({ method: 'get', role: 'read', answers: [JSON_TYPE] });
const call = other({
  method: 'post',
  role: 'read',
  answers: [JSON_TYPE, EVENTS],
  stays: true,
  needsMore: true,
});
const complete = other({ method: 'post', role: 'post', answers: [JSON_TYPE, EVENTS], stays: true });

const OPENAI = {
  docs: { description: "OpenAI's API", url: 'https://platform.openai.com/docs/api-reference/chat' },
};
const AG_UI = { docs: { description: 'AG-UI', url: 'https://docs.ag-ui.com' } };
const A2A = { docs: { description: 'A2A', url: 'https://a2a-protocol.org' } };
const MCP = { docs: { description: 'Model Context Protocol', url: 'https://modelcontextprotocol.io' } };

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
  read(
    `${ONE}/export`,
    'exportConversation',
    'A whole conversation as a file: for people, as messages in the form of OpenAI, all entries as JSON Lines, or its rated answers as test cases',
    {
      answers: Object.values(EXPORTS).map(({ type }) => type),
      query: { format: z.enum(EXPORT_FORMATS).default('markdown') },
    },
  ),
  {
    method: 'put',
    path: '/api/blobs',
    operationId: 'uploadFile',
    role: 'post',
    stays: true,
    answers: [JSON_TYPE],
    answer: filePartSchema,
    takesFile: true,
    status: 201,
    query: { name: 'The name of the file', sha256: 'Refuse bytes that have another hash' },
    summary: 'Store a file. The answer is a part of a message as it is: `{"parts": [<answer>]}`',
  },
  read(
    `${ONE}/blobs/{sha256}`,
    'downloadFile',
    'The bytes of a file that a message of this conversation names',
    {
      answers: ['application/octet-stream', ...SHOWN],
      stays: true,
      query: { name: 'The name under which it is saved' },
    },
  ),
  read(
    `${ONE}/events`,
    'followConversation',
    'Follow a conversation: each entry once, in order, with its index as the id; live text has no id. The header `Last-Event-ID` continues',
    { answers: [EVENTS], stays: true, query: { from: CONTRACT.entries.request.shape.from } },
  ),
  read(
    '/api/events',
    'followSeveral',
    'Follow several conversations and the conversation list in one stream',
    {
      answers: [EVENTS],
      stays: true,
      query: {
        follow:
          'Conversations as `ID@INDEX`, separated by commas; INDEX: the first index wanted, by default 0',
        list: 'The `version` of the last `list` event, or `1`: the whole list',
      },
    },
  ),
  read(
    '/api/identity',
    'get_identity',
    'The role, the publisher and the name of the token; without tokens, each caller is the operator',
    { answer: identity },
  ),
  open(
    '/api/session',
    'sign_in',
    'Sign a browser in with a cookie, for a token or for the code of a printed address: `Authorization: Code <code>`, once',
    { method: 'post' },
  ),
  open('/api/session', 'sign_out', 'Remove the cookie', { method: 'delete' }),
  read('/v1/models', 'list_models', 'Agents as models; `parley` is the agent that routing chooses', OPENAI),
  read('/v1/models/{model}', 'get_model', 'An agent as a model', OPENAI),
  complete(
    '/v1/chat/completions',
    'complete_chat',
    'Post the last message and get the answer, whole or as events; the header `x-parley-conversation` names the conversation',
    { ...OPENAI, body: chatRequestSchema },
  ),
  complete('/v1/responses', 'create_response', 'The same in the form of the Responses API', {
    ...OPENAI,
    body: responseRequestSchema,
  }),
  read('/v1/responses/{id}', 'get_response', 'A response as the log has it now', OPENAI),
  read(
    '/v1/responses/{id}/input_items',
    'list_response_input',
    'The message that a response answers',
    OPENAI,
  ),
  complete('/v1/responses/{id}/cancel', 'cancel_response', 'End the turns of a response', {
    ...OPENAI,
    answers: [JSON_TYPE],
  }),
  read('/v1/conversations/{id}', 'get_openai_conversation', 'A conversation', OPENAI),
  read(
    '/v1/conversations/{id}/items',
    'list_openai_items',
    'The messages of a conversation, newest first, in pages',
    OPENAI,
  ),
  read('/v1/conversations/{id}/items/{item}', 'get_openai_item', 'A message of a conversation', OPENAI),
  call('/ag-ui/{agent}', 'run_agent', 'A run of an agent; a thread is a conversation', {
    ...AG_UI,
    answers: [EVENTS],
    body: runInputSchema,
  }),
  read('/a2a', 'list_agent_cards', 'The addresses of the agent cards', A2A),
  call(
    '/a2a/{agent}',
    'ask_agent',
    'Send a message; get, list, cancel and follow tasks, by JSON-RPC; a context is a conversation',
    { ...A2A, body: jsonRpc },
  ),
  // Clients learn from the card that they need a token.
  open('/a2a/{agent}/.well-known/agent-card.json', 'get_agent_card', 'The card of this agent', A2A),
  open('/.well-known/agent-card.json', 'get_card', 'The card of the agent that routing chooses', A2A),
  call('/mcp', 'call_mcp', 'The tools of an MCP server, by JSON-RPC over streamable HTTP, without sessions', {
    ...MCP,
    body: jsonRpc,
  }),
  read('/metrics', 'get_metrics', 'Metrics for Prometheus', { answers: ['text/plain'] }),
  open('/healthz', 'get_health', 'The process runs'),
  open(
    '/readyz',
    'get_readiness',
    'It accepts posts; 503 while it starts or stops, cannot reach NATS, or cannot write logs (a full disk)',
  ),
];

export function pathFields({ path }: Pick<Row, 'path'>): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => String(match[1]));
}

/** The fields that the query string may hold: those of a request without a body. JSON is never one of them. */
export function queryFields({ method, path, verb }: Route): string[] {
  const elsewhere = [...pathFields({ path }), 'arguments'];
  const fields = method === 'post' ? [] : Object.keys(CONTRACT[verb].request.shape);
  return fields.filter((name) => !elsewhere.includes(name));
}

export function routerPath({ path }: Pick<Row, 'path'>): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** The files of the console, and the document itself. */
const UNDESCRIBED: readonly Pick<Row, 'method' | 'path' | 'role'>[] = [
  { method: 'get', path: '/', role: null },
  { method: 'get', path: '/assets/{name}', role: null },
  { method: 'get', path: '/api/openapi.json', role: 'read' },
];

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
