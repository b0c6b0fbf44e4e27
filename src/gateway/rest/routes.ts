import type { Verb } from '../../bus/contract.ts';
import type { Role } from '../guard/access.ts';

/** The REST routes: the verb of the request API that each path means, and the role that it needs. */

export interface Route {
  readonly method: 'get' | 'post' | 'delete';
  /** Names in braces are fields of the request. */
  readonly path: string;
  readonly verb: Verb;
  readonly role: Role;
  readonly summary: string;
  /** Fields that the query string may hold. */
  readonly query?: readonly string[];
  /** The request names its author, which the token provides. */
  readonly acts?: true;
  readonly status?: 201;
}

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
    method: 'get',
    path: '/api/conversations',
    verb: 'conversations',
    role: 'read',
    summary:
      'List conversations by id; `next` is the `after` of the next page. `days`: with what model calls used on each of so many days',
    query: ['after', 'limit', 'days'],
  },
  {
    method: 'post',
    path: '/api/conversations',
    verb: 'post',
    role: 'post',
    summary: 'Begin a conversation with a message; `conversation` is generated when it is left out',
    acts: true,
    status: 201,
  },
  {
    method: 'get',
    path: ONE,
    verb: 'conversation',
    role: 'read',
    summary: 'The state of a conversation',
  },
  {
    method: 'delete',
    path: ONE,
    verb: 'delete',
    role: 'operate',
    summary: 'Delete a conversation and its files; can be repeated. 404 for an id that never existed',
    query: ['lastEntryBefore'],
  },
  {
    method: 'post',
    path: `${ONE}/messages`,
    verb: 'post',
    role: 'post',
    summary: 'Post a message; answers once it is durable. The same `id` again changes nothing',
    acts: true,
    status: 201,
  },
  {
    method: 'get',
    path: `${ONE}/entries`,
    verb: 'entries',
    role: 'read',
    summary: 'A page of the log; the next one begins at the last index + 1, until `length`',
    query: ['from', 'limit'],
  },
  {
    method: 'get',
    path: `${ONE}/view`,
    verb: 'view',
    role: 'read',
    summary:
      'The exact request that an agent is sent, with a report; `texts`: names of parts of the definition, with commas',
    query: ['agent', 'at', 'texts'],
  },
  ...(Object.entries(STEERING) as [Verb, string][]).map(
    ([verb, summary]): Route => ({
      method: 'post',
      path: `${ONE}/${verb}`,
      verb,
      role: 'operate',
      summary,
      acts: true,
    }),
  ),
  {
    method: 'get',
    path: `${ONE}/what-ifs`,
    verb: 'what-ifs',
    role: 'read',
    summary: 'The what-ifs of this conversation, newest first',
  },
  {
    method: 'get',
    path: `${ONE}/what-ifs/{id}`,
    verb: 'what-if-result',
    role: 'read',
    summary: 'The progress and the results of a what-if; `next` is the `from` of the next page',
    query: ['from', 'limit'],
  },
  {
    method: 'post',
    path: `${ONE}/what-ifs/{id}/stop`,
    verb: 'what-if-stop',
    role: 'operate',
    summary: 'End a what-if; what it has is kept',
    acts: true,
  },
  {
    method: 'get',
    path: `${ONE}/approvals`,
    verb: 'approvals',
    role: 'read',
    summary: 'Outstanding approvals of this conversation',
  },
  {
    method: 'get',
    path: '/api/search',
    verb: 'search',
    role: 'read',
    summary:
      'Words in the messages of all conversations, best first; words in quotation marks occur in this order',
    query: ['q', 'conversation', 'agent', 'person', 'phase', 'after', 'before', 'limit'],
  },
  {
    method: 'get',
    path: '/api/approvals',
    verb: 'approvals',
    role: 'read',
    summary: 'Outstanding approvals of all conversations',
    query: ['conversation'],
  },
  {
    method: 'post',
    path: '/api/approvals/{approvalId}',
    verb: 'answer',
    role: 'approve',
    summary: 'Approve or deny a call, or resolve one whose outcome is unknown',
    acts: true,
  },
  {
    method: 'get',
    path: '/api/agents',
    verb: 'agents',
    role: 'read',
    summary: 'The agents; `persona`: the agent whose persona the answer contains',
    query: ['persona'],
  },
  {
    method: 'post',
    path: '/api/reload',
    verb: 'reload',
    role: 'operate',
    summary: 'Read the configuration again; one that is not valid changes nothing',
    acts: true,
  },
  {
    method: 'get',
    path: '/api/tools',
    verb: 'tools',
    role: 'read',
    summary: 'The tools that agents can call, and the MCP servers',
  },
  {
    method: 'get',
    path: '/api/status',
    verb: 'status',
    role: 'read',
    summary:
      'What runs, waits, is halted or failed; daemons, models, agents in other processes and MCP servers; `limit`: rows of each group; `days`: also what model calls used on each of so many days',
    query: ['limit', 'days'],
  },
  {
    method: 'get',
    path: '/api/dead-letters',
    verb: 'dead',
    role: 'read',
    summary: 'Refused posts, newest first; `next` is the `before` of the next page',
    query: ['publisher', 'conversation', 'code', 'before', 'limit'],
  },
  {
    method: 'get',
    path: '/api/dead-letters/{sequence}',
    verb: 'dead-letter',
    role: 'read',
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
    method: 'post',
    path: '/api/dead-letters/{sequence}/retry',
    verb: 'dead-retry',
    role: 'operate',
    summary: 'Post a refused post again, as its publisher',
  },
  {
    method: 'get',
    path: '/api/phases',
    verb: 'phases',
    role: 'read',
    summary: 'The phases, and which ones an agent may enter from each',
  },
  {
    method: 'get',
    path: '/api/workflows',
    verb: 'workflows',
    role: 'read',
    summary: 'The workflows with their nodes',
  },
];

/** The path as the router writes it. */
export function routerPath({ path }: Route): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}
