import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERBS } from '../../src/bus/index.ts';
import type { NatsConnection } from '../../src/bus/nats/index.ts';
import { ROUTES } from '../../src/gateway/rest/routes.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject, type Project, scriptedSettings } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';
import { createConnections, describeUsers, type ServerUsers } from '../support/server-users.ts';

/**
 * Every role of two tenants tries every verb at every entry point. The expected rights are written here by hand,
 * apart from the code that decides. A verb or route that is missing in these tables fails the test.
 */

type Role = 'read' | 'post' | 'approve' | 'operate';
const TENANTS = ['acme', 'rival'] as const;
type Tenant = (typeof TENANTS)[number];
const USERS = {
  daemon: { role: 'daemon' },
  ops: { role: 'operator' },
  alice: { role: 'publisher', conversations: ['demo'] },
  bob: { role: 'publisher', conversations: ['demo'] },
  critic: { role: 'agent', slug: 'critic' },
};
type User = keyof typeof USERS;

/** What follows the publisher in the subject of verbs that name one, and whether that publisher may use it. */
const FORMS: Readonly<Record<string, boolean>> = {
  'post.': false,
  'post.demo': true,
  'post.other': false,
  'blob.': false,
  'blob.demo': true,
  'blob.other': false,
  'upload.': true,
  'answer.': true,
  'results.': false,
  'results.demo': true,
  'results.other': false,
  'feedback.': false,
  'feedback.demo': true,
  'feedback.other': false,
};
const HTTP_ROLES: Readonly<Record<string, readonly Role[]>> = {
  read: ['read', 'post', 'approve', 'operate'],
  post: ['post', 'operate'],
  approve: ['approve', 'operate'],
  operate: ['operate'],
};
/** The HTTP role that each verb of the request API needs. */
const NEEDED: Readonly<Record<string, Role>> = {
  ...needs('read', 'entries conversation conversations view approvals agents tools phases workflows'),
  ...needs('read', 'what-ifs what-if-result status search turns reading dead dead-letter'),
  ...{ post: 'post', results: 'post', feedback: 'post', answer: 'approve', change: 'approve' },
  ...needs('operate', 'delete label phase mode fork hire dismiss reload what-if what-if-stop stop resume'),
  ...needs('operate', 'dead-retry dead-discard'),
};
const MCP_TOOLS: Readonly<Record<string, Role>> = {
  ...Object.fromEntries(['agents', 'list', 'read', 'explain', 'approvals'].map(reads)),
  ...{ post: 'post', answer: 'approve' },
  ...Object.fromEntries(['stop', 'resume'].map((verb) => [verb, 'operate' as const])),
};
function needs(role: Role, verbs: string): Record<string, Role> {
  return Object.fromEntries(verbs.split(' ').map((verb) => [verb, role]));
}
function reads(verb: string): [string, Role] {
  return [verb, 'read'];
}

/** An HTTP request and the role that it needs; null: none. */
interface HttpCase {
  readonly method: string;
  readonly path: string;
  readonly needs: Role | null;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

const message = (text: string) => ({
  messageId: text,
  role: 'ROLE_USER',
  parts: [{ text }],
});
const a2a = (method: string, needs: Role, params: object): HttpCase => ({
  method: 'POST',
  path: '/a2a/lead',
  needs,
  headers: { 'a2a-version': '1.0' },
  body: { jsonrpc: '2.0', id: 1, method, params },
});
const agUi = (needs: Role, more: object): HttpCase => ({
  method: 'POST',
  path: '/ag-ui/lead',
  needs,
  body: { threadId: 'matrix', runId: 'r', state: {}, messages: [], tools: [], context: [], ...more },
});
const mcp = (needs: Role, method: string, params: object): HttpCase => ({
  method: 'POST',
  path: '/mcp',
  needs,
  headers: { accept: 'application/json, text/event-stream' },
  body: { jsonrpc: '2.0', id: 1, method, params },
});

const inPath = (_: string, name: string) => ({ conversation: 'matrix', sequence: '9' })[name] ?? 'none';

const HTTP_CASES: readonly HttpCase[] = [
  ...ROUTES.map(({ method, path, verb }) => ({
    method: method.toUpperCase(),
    path: path.replaceAll(/\{(\w+)\}/g, inPath) + (verb === 'view' ? '?agent=lead' : ''),
    needs: NEEDED[verb] ?? ('missing' as Role),
    ...(method === 'post' && { body: bodyOf(verb) }),
  })),
  {
    method: 'POST',
    path: '/api/conversations/matrix/messages',
    needs: 'operate',
    body: { content: 'Hello', workflow: 'none' },
  },
  { method: 'GET', path: '/healthz', needs: null },
  { method: 'GET', path: '/readyz', needs: null },
  { method: 'GET', path: '/', needs: null },
  ...['/metrics', '/api/conversations/matrix/export', '/api/openapi.json', '/api/identity', '/v1/models'].map(
    (path) => ({ method: 'GET', path, needs: 'read' as const }),
  ),
  {
    method: 'POST',
    path: '/v1/chat/completions',
    needs: 'post',
    body: { model: 'lead', messages: [{ role: 'user', content: 'Hello' }] },
  },
  { method: 'POST', path: '/v1/responses', needs: 'post', body: { model: 'lead', input: 'Hello' } },
  { method: 'POST', path: '/v1/responses/resp_0_none/cancel', needs: 'post', body: {} },
  ...['responses/resp_0_none', 'responses/resp_0_none/input_items', 'conversations/matrix/items'].map(
    (path) => ({ method: 'GET', path: `/v1/${path}`, needs: 'read' as const }),
  ),
  { method: 'PUT', path: '/api/blobs', needs: 'post', body: { any: 'bytes' } },
  { method: 'GET', path: `/api/conversations/matrix/blobs/${'0'.repeat(64)}`, needs: 'read' },
  { method: 'GET', path: '/a2a', needs: 'read' },
  a2a('SendMessage', 'post', { message: message('hello') }),
  a2a('GetTask', 'read', { id: 'none' }),
  a2a('ListTasks', 'read', {}),
  // A new message for each caller: one that the thread has needs no role to post (BEGIN-8).
  agUi('post', {
    messages: [
      {
        role: 'user',
        content: 'Hello',
        get id() {
          return randomUUID();
        },
      },
    ],
  }),
  mcp('read', 'tools/list', {}),
  ...Object.entries(MCP_TOOLS).map(([name, needs]) =>
    mcp(needs, 'tools/call', { name, arguments: argumentsOf(name) }),
  ),
];

function bodyOf(verb: string): object {
  const bodies: Readonly<Record<string, object>> = {
    post: { content: 'Hello' },
    results: { results: [{ call: 'c0_0', content: 'x' }] },
    answer: { answer: 'deny' },
    feedback: { index: 0, value: 'up' },
    fork: { as: 'matrix-fork' },
    hire: { slug: 'scout', persona: 'Look.' },
    ...{ label: { title: 'Mine' }, dismiss: { agent: 'scout' } },
    'what-if': { agent: 'lead', at: 'all', persona: 'Be brief.' },
    phase: { phase: 'chat' },
    mode: { mode: 'chat' },
  };
  return bodies[verb] ?? {};
}

function argumentsOf(name: string): object {
  const own = { post: { content: 'Hello', waitSeconds: 0 }, explain: { agent: 'lead' } } as Record<
    string,
    object
  >;
  if (name === 'agents' || name === 'list') return {};
  if (name === 'answer') return { approvalId: 'none', answer: 'deny' };
  return { conversation: 'matrix', ...(own[name] ?? bodyOf(name)) };
}

const connections = createConnections();
let nats: TestNatsServer;
let users: ServerUsers;
const projects = new Map<Tenant, { project: Project; http: string }>();
const userOf = (tenant: Tenant, user: User) => (tenant === 'acme' ? user : `${tenant}-${user}`);
const tokenOf = (tenant: Tenant, role: Role) => `${tenant}-token-that-may-${role}`;

beforeAll(async () => {
  const opened: Project[] = [];
  for (const tenant of TENANTS)
    opened.push(
      await openProject({
        settings: scriptedSettings({ http: { requestsPerSecond: 10_000 } }),
        agents: { lead: '---\nname: Lead\ndescription: leads\n---\nLEAD' },
        files: { 'script.yaml': { rules: [{ reply: { text: 'noted' } }] } },
        env: Object.fromEntries(
          (['read', 'post', 'approve', 'operate'] as const).map((role) => [
            `PARLEY_HTTP_TOKENS_${role.toUpperCase()}`,
            tokenOf(tenant, role),
          ]),
        ),
      }),
    );
  const described = (tenant: Tenant) =>
    Object.fromEntries(Object.entries(USERS).map(([name, user]) => [userOf(tenant, name as User), user]));
  const [first] = opened;
  if (!first) throw new Error('there is no project');
  users = await describeUsers(first.root, 'password', { acme: described('acme'), rival: described('rival') });
  nats = await startNatsServer({ config: users.config });
  for (const [place, tenant] of TENANTS.entries()) {
    const project = opened[place] as Project;
    const flags = users.flags(userOf(tenant, 'daemon'), nats.url);
    const { ready } = await project.up('--store', 'jetstream', '--http', '127.0.0.1:0', ...flags);
    projects.set(tenant, { project, http: String(ready.http) });
  }
});
afterAll(async () => {
  await connections.close();
  for (const { project } of projects.values()) await project.close();
  await nats?.stop();
});

describe('every role at every entry point', () => {
  it('the tables contain each verb, route and tool', async () => {
    expect(ROUTES.filter(({ verb }) => NEEDED[verb] === undefined)).toEqual([]);
    const answer = await ask('acme', tokenOf('acme', 'operate'), mcp('read', 'tools/list', {}));
    const names = [...(await answer.text()).matchAll(/"name":"(\w+)","(?:title|description)"/g)].map(
      ([, name]) => name,
    );
    expect(new Set(names)).toEqual(new Set(Object.keys(MCP_TOOLS)));
  });

  it.each(hasLongTests ? TENANTS : (['acme'] as const))(
    'each role may do exactly what the table says on NATS, for %s',
    async (tenant) => {
      const surprises: string[] = [];
      for (const user of Object.keys(USERS) as User[]) {
        const own = userOf(tenant, user);
        const cells = VERBS.flatMap((verb) => [
          { subject: `parley.api.${verb}`, may: user === 'ops' || user === 'daemon' },
          ...(['alice', 'bob'] as const).flatMap((name) =>
            ['', 'demo', 'other'].map((conversation) => {
              const publisher = userOf(tenant, name);
              const form = FORMS[`${verb}.${conversation}`];
              const isServed = form !== undefined && (user === 'ops' || user === 'daemon');
              const subject = ['parley.api', verb, publisher, conversation].filter(Boolean).join('.');
              return { subject, may: (own === publisher && form === true) || isServed };
            }),
          ),
        ]);
        const options = users.options(own, nats.url);
        const denied = await connections.refused(
          options,
          cells.map(({ subject }) => subject),
          [],
        );
        const connection = await connections.connect(options);
        await Promise.all(
          cells.map(async ({ subject, may }) => {
            const seen = !denied.includes(subject) && (await mayRequest(connection, subject));
            if (seen !== may) surprises.push(`${own} ${subject}: ${seen ? 'allowed' : 'refused'}`);
          }),
        );
      }
      expect(surprises).toEqual([]);
    },
  );

  it.each(hasLongTests ? TENANTS : (['acme'] as const))(
    'each role may do exactly what the table says over HTTP, for %s',
    async (tenant) => {
      const other = tenant === 'acme' ? 'rival' : 'acme';
      const callers: readonly (readonly [string, string | null, Role | null])[] = [
        ['nobody', null, null],
        ['a stranger', 'an-unknown-token', null],
        ...(['read', 'post', 'approve', 'operate'] as const).flatMap(
          (role) =>
            [
              [role, tokenOf(tenant, role), role],
              [`${role} of ${other}`, tokenOf(other, role), null],
            ] as const,
        ),
      ];
      const surprises: string[] = [];
      for (const one of HTTP_CASES)
        for (const [who, token, role] of callers) {
          const may = one.needs === null || (role !== null && HTTP_ROLES[one.needs]?.includes(role) === true);
          const answer = await ask(tenant, token, one);
          const text = await answer.text();
          const seen =
            answer.status !== 401 && answer.status !== 403 && !/FORBIDDEN|may not do this/.test(text);
          if (seen !== may)
            surprises.push(
              `${who} ${one.method} ${one.path} ${JSON.stringify(one.body ?? null)}: ${answer.status} ${text.slice(0, 120)}`,
            );
        }
      expect(surprises).toEqual([]);
    },
  );

  it('no text of one tenant is visible to the other', async () => {
    const marks = { acme: 'words-of-acme', rival: 'words-of-rival' };
    for (const tenant of TENANTS) {
      const post = { method: 'POST', path: '/api/conversations/shared/messages', needs: 'post' as const };
      const answer = await ask(tenant, tokenOf(tenant, 'post'), {
        ...post,
        body: { content: marks[tenant] },
      });
      expect(answer.status).toBe(201);
    }
    for (const tenant of TENANTS) {
      const entries = await ask(tenant, tokenOf(tenant, 'operate'), {
        method: 'GET',
        path: '/api/conversations/shared/entries',
        needs: 'read',
      });
      const text = await entries.text();
      expect(text).toContain(marks[tenant]);
      expect(text).not.toContain(marks[tenant === 'acme' ? 'rival' : 'acme']);
    }
  });
});

/** Whether the daemon executed the request, or refused it for a reason other than the caller. */
async function mayRequest(connection: NatsConnection, subject: string): Promise<boolean> {
  try {
    const [, , , , conversation = 'matrix'] = subject.split('.');
    const body = JSON.stringify({
      conversation,
      content: 'Hello',
      answer: 'deny',
      approvalId: 'none',
    });
    const answer = await connection.request(subject, Buffer.from(body), { timeout: 5_000 });
    return !answer.string().includes('"FORBIDDEN"');
  } catch {
    return false;
  }
}

function ask(
  tenant: Tenant,
  token: string | null,
  { method, path, body, headers }: HttpCase,
): Promise<Response> {
  return fetch(`${projects.get(tenant)?.http}${path}`, {
    method,
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
      ...(token !== null && { authorization: `Bearer ${token}` }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
}
