#!/usr/bin/env node
/**
 * A coding agent for tests, written to the schema of the Agent Client Protocol (version 1), with odd habits.
 *
 * A prompt's last line says what it does, several separated by ` && `: `edit FILE TEXT` (asks first), `run COMMAND` (asks first), `use TOOL JSON`
 * (a tool of the MCP server that it was given), `close TOOL JSON` and `cancel TOOL JSON` (does not wait for its result), `watch TOOL JSON` (asks for progress), `think TEXT`, or a habit: `crash`, `hang`, `lose CODE`, `flood`, `noise`, `bad-json`, `fork-and-leave`,
 * `ask-twice`, `late`, `work TITLE`, `cost AMOUNT [CURRENCY]` (of the session so far, with tokens), `show BLOCKS` and `show-in-call BLOCKS` (JSON).
 * `continue`, and a prompt that says that the work was interrupted, does what its session has left to do.
 * Everything else is answered with the number of blocks that it was told. It waits at a moment of an edit (`before-asking`, `allowed`,
 * `written`) while the file `hold-MOMENT-FILE` is in ACP_STATE, and leaves `at-MOMENT-FILE`. Arguments: `--version N`, `--no-auth`, `--no-load`,
 * `--image`, `--audio`, `--embeddedContext`, `--resume`, `--no-http`, `--banner`, `--crash` (at the start), `--mute` (never answers `initialize`),
 * `--no-session` (nor `session/new`), `--deaf` (reads nothing after `session/new`), `--lists` (lists the tools when a session begins or is opened again, and uses no others), `--close`
 * (can close sessions). ACP_STATE is a folder: sessions, `told.jsonl` with every prompt, and `hold-session-`, while which no session begins (`at-session-`).
 */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const flag = (name) => process.argv.includes(`--${name}`);
const state = process.env.ACP_STATE ?? '.';
mkdirSync(state, { recursive: true });
const sessions = new Map();
const cancelled = new Set();
const waiting = new Map();
let ids = 0;

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const ask = (method, params) =>
  new Promise((done) => {
    ids += 1;
    waiting.set(ids, done);
    send({ id: ids, method, params });
  });
const update = (sessionId, content) =>
  send({ method: 'session/update', params: { sessionId, update: content } });
const say = (id, text) =>
  update(id, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
const fail = (id, code, message) => send({ id, error: { code, message } });
const pathOf = (id) => join(state, `${id}.json`);

if (flag('crash')) {
  process.stderr.write(`${process.env.ACP_KEY} is wrong\n`);
  process.exit(1);
}
if (flag('banner')) process.stdout.write('Welcome to the agent!\n');

const TAKES = ['image', 'audio', 'embeddedContext'];

const OPTIONS = [
  { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
  { optionId: 'always', name: 'Always allow', kind: 'allow_always' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
];

async function permitted(sessionId, toolCall) {
  const { result } = await ask('session/request_permission', { sessionId, toolCall, options: OPTIONS });
  return result?.outcome?.optionId === 'yes';
}

async function guarded(sessionId, call, work) {
  const toolCall = { toolCallId: `call-${ids + 1}-${process.pid}`, status: 'pending', ...call };
  update(sessionId, { sessionUpdate: 'tool_call', ...toolCall });
  const isAllowed = await permitted(sessionId, toolCall);
  const text = isAllowed ? await work() : 'rejected';
  const content = [...(call.content ?? []), { type: 'content', content: { type: 'text', text } }];
  const status = isAllowed ? 'completed' : 'failed';
  update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId: toolCall.toolCallId, status, content });
  return isAllowed;
}

const shownProgress = (messages) =>
  `${messages.length > 1 ? 'progress, then ' : ''}${messages.at(-1)?.result?.content?.[0]?.text}`;

/** As over HTTP, with an MCP server on standard streams. */
async function useProgram({ command, args, env }, name, given, isWatched = false) {
  const variables = Object.fromEntries(env.map(({ name: key, value }) => [key, value]));
  const child = spawn(command, args, { env: variables, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const request = (body) => {
    child.stdin.write(`${typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', ...body })}\n`);
    return lines.next().then(({ value }) => JSON.parse(value));
  };
  const clientInfo = { name: 'test', version: '1' };
  await request({
    ...{ id: 1, method: 'initialize' },
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
  });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  if (name === 'broken-line') return JSON.stringify((await request('{')).error);
  const { result: list } = await request({ id: 2, method: 'tools/list' });
  const params = { name, arguments: JSON.parse(given || '{}') };
  if (isWatched) params._meta = { progressToken: 3 };
  const messages = [await request({ id: 3, method: 'tools/call', params })];
  while (messages.at(-1).id !== 3) messages.push(JSON.parse((await lines.next()).value));
  const { result, error } = messages.at(-1);
  child.stdin.end();
  await new Promise((done) => child.once('exit', done));
  const tools = list.tools.map((tool) => tool.name).join();
  if (isWatched) return shownProgress(messages);
  return `(${tools}) ${error ? `error: ${error.message}` : result.content.map(({ text }) => text).join('')}`;
}

async function post(server, request, signal) {
  const headers = Object.fromEntries(server.headers.map(({ name: key, value }) => [key, value]));
  const accept = 'application/json, text/event-stream';
  const answer = await fetch(server.url, {
    method: 'POST',
    headers: { ...headers, accept, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', ...request }),
    signal,
  });
  return answer.status === 202 ? {} : answer.json();
}

/** With progress, if its result comes late. */
async function watch({ servers: [server] }, name, given) {
  if (server.command) return useProgram(server, name, given, true);
  const params = { name, arguments: JSON.parse(given || '{}'), _meta: { progressToken: 3 } };
  const headers = Object.fromEntries(server.headers.map(({ name: key, value }) => [key, value]));
  const answer = await fetch(server.url, {
    method: 'POST',
    headers: {
      ...headers,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'tools/call', params }),
  });
  const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('data: {'));
  return shownProgress(lines.map((line) => JSON.parse(line.slice(6))));
}

const soon = () => new Promise((done) => setTimeout(done, 100));

/** As programs whose time for a call is over. */
async function giveUp({ id, servers: [server] }, how, name, given) {
  const over = new AbortController();
  const params = { name, arguments: JSON.parse(given || '{}') };
  const request = { id: 7, method: 'tools/call', params };
  post(server, request, over.signal).catch(() => {});
  await soon();
  if (how === 'close') over.abort();
  else await post(server, { method: 'notifications/cancelled', params: { requestId: 7 } });
  await soon();
  say(id, 'I gave up. ');
}

async function use(session, name, given) {
  const [server] = session.servers;
  if (!server) return 'no MCP server';
  if (server.command) return useProgram(server, name, given);
  if (session.listed && !session.listed.includes(name)) return `there is no tool ${name}`;
  const params = { name, arguments: JSON.parse(given || '{}') };
  const { result, error } = await post(server, { id: 1, method: 'tools/call', params });
  const shown = ({ text, type, data }) => text ?? ` <${type} ${data}>`;
  return error ? `error: ${error.message}` : result.content.map(shown).join('');
}

const HABITS = {
  crash() {
    process.stderr.write(`the key is ${process.env.ACP_KEY}\n`, () => process.exit(3));
    return new Promise(() => {});
  },
  hang: () => new Promise(() => {}),
  lose(id, code) {
    sessions.delete(id);
    throw Object.assign(new Error('the session ended.'), code && { code: Number(code) });
  },
  async flood(id) {
    for (let n = 0; n < 20_000; n += 1) say(id, `${n} `);
  },
  noise(id) {
    process.stdout.write('DEBUG this is not a message\n');
    say(id, 'noise is over');
  },
  'bad-json'(id) {
    process.stdout.write('{"jsonrpc":"2.0","method":\n');
    say(id, 'said after the broken line');
  },
  'fork-and-leave'() {
    spawn('sleep', ['300'], { detached: false, stdio: 'ignore' });
    process.exit(0);
  },
  async 'ask-twice'(id) {
    const call = { title: 'run date', kind: 'execute', toolCallId: 'same', rawInput: { command: 'date' } };
    const answers = [await permitted(id, call), await permitted(id, call)];
    say(id, `answers: ${answers.join(' ')}`);
  },
  show(id, json) {
    for (const content of JSON.parse(json)) update(id, { sessionUpdate: 'agent_message_chunk', content });
  },
  'show-in-call'(id, json) {
    const content = JSON.parse(json).map((block) => ({ type: 'content', content: block }));
    update(id, {
      sessionUpdate: 'tool_call',
      toolCallId: 'shot',
      title: 'Screenshot',
      status: 'completed',
      content,
    });
  },
  async work(id, title) {
    const call = { sessionUpdate: 'tool_call', toolCallId: 'w', kind: 'other' };
    update(id, { ...call, title });
    while (!cancelled.has(id)) await new Promise((done) => setTimeout(done, 20));
  },
  async late(id) {
    while (!cancelled.has(id)) await new Promise((done) => setTimeout(done, 20));
    say(id, 'this comes after the cancel');
  },
};

async function reach(moment, file) {
  writeFileSync(join(state, `at-${moment}-${file}`), String(process.pid));
  while (existsSync(join(state, `hold-${moment}-${file}`))) await new Promise((done) => setTimeout(done, 10));
}

const keep = ({ id, left }) => writeFileSync(pathOf(id), JSON.stringify(left));

async function prompt(session, blocks) {
  const { id } = session;
  const texts = blocks.flatMap(({ text }) => text ?? []);
  appendFileSync(join(state, 'told.jsonl'), `${JSON.stringify({ session: id, texts, blocks })}\n`);
  const lines = texts.join('\n').trimEnd().split('\n');
  const said = lines.map((line) => line.replace(/^\[\w+\]: /, ''));
  const last = said.findLast((line) => !line.startsWith('[file ')) ?? '';
  const isContinued = /^continue$|interrupted/.test(last);
  const order = isContinued ? said.findLast((line) => line.startsWith('edit ')) : last;
  if (session.left.length === 0 || !isContinued) session.left = (order ?? last).split(' && ');
  keep(session);
  let usage;
  while (session.left.length > 0 && !cancelled.has(id)) {
    const [command] = session.left;
    usage = await work(session, command, texts);
    if (session.left[0] === command) done(session);
  }
  return usage;
}

/** Before the answer is sent: who loads the session does not repeat it. */
function done(session) {
  session.left = session.left.slice(1);
  keep(session);
}

async function work(session, last, texts) {
  const { id } = session;
  const [word = '', first = '', ...rest] = last.split(' ');
  if (HABITS[word]) return HABITS[word](id, [first, ...rest].join(' '));
  if (word === 'cost') {
    update(id, {
      sessionUpdate: 'usage_update',
      used: 1,
      size: 2,
      cost: { amount: Number(first), currency: rest[0] ?? 'USD' },
    });
    say(id, 'counted');
    return {
      inputTokens: 10_000,
      outputTokens: 700,
      totalTokens: 50_700,
      cachedReadTokens: 40_000,
      thoughtTokens: null,
    };
  }
  if (word === 'think')
    return update(id, { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: last } });
  if (word === 'close' || word === 'cancel') return giveUp(session, word, first, rest.join(' '));
  if (word === 'watch') return say(id, await watch(session, first, rest.join(' ')));
  if (word === 'use') return say(id, `the tool says: ${await use(session, first, rest.join(' '))}`);
  if (word === 'run') {
    const command = [first, ...rest].join(' ');
    const call = { title: command, kind: 'execute', rawInput: { command } };
    const isDone = await guarded(id, call, () => 'exit code 0');
    return say(id, isDone ? 'I ran it.' : 'I did not run it.');
  }
  if (word === 'edit') {
    const path = resolve(session.cwd, first);
    const oldText = existsSync(path) ? readFileSync(path, 'utf8') : null;
    const newText = rest.join(' ');
    const call = {
      ...{
        title: `Edit ${first}`,
        kind: 'edit',
        rawInput: { filePath: path, newText },
        locations: [{ path }],
      },
      content: [{ type: 'diff', path, oldText, newText }],
    };
    say(id, 'I edit. ');
    await reach('before-asking', first);
    const isDone = await guarded(id, call, async () => {
      await reach('allowed', first);
      appendFileSync(join(state, 'edits.log'), `${first}\n`);
      writeFileSync(path, newText);
      done(session);
      await reach('written', first);
      return 'written';
    });
    return say(id, isDone ? 'Done.' : 'Not done.');
  }
  return say(id, `I was told ${texts.length} blocks.`);
}

const about = () => ({
  protocolVersion: flag('version') ? Number(process.argv[process.argv.indexOf('--version') + 1]) : 1,
  agentInfo: { name: 'test-agent', version: '1.2.3' },
  authMethods: [{ id: 'login', name: 'Sign in with the browser' }],
  agentCapabilities: {
    loadSession: !flag('no-load') && !flag('resume'),
    mcpCapabilities: { http: !flag('no-http'), sse: false },
    promptCapabilities: Object.fromEntries(TAKES.map((kind) => [kind, flag(kind)])),
    sessionCapabilities: { ...(flag('resume') && { resume: {} }), ...(flag('close') && { close: {} }) },
  },
});

/** Agents list the tools once, until the session is closed. */
async function listTools(session) {
  const [server] = session.servers;
  if (!flag('lists') || session.listed || !server) return;
  const { result } = await post(server, { id: 1, method: 'tools/list' });
  session.listed = result.tools.map(({ name }) => name);
}

const METHODS = {
  initialize: () => (flag('mute') ? new Promise(() => {}) : about()),
  async 'session/new'({ cwd, mcpServers }) {
    await reach('session', '');
    if (flag('no-session')) return new Promise(() => {});
    if (flag('no-auth')) throw Object.assign(new Error('Authentication required'), { code: -32_000 });
    const session = { id: `s-${process.pid}-${sessions.size}`, cwd, servers: mcpServers, left: [] };
    sessions.set(session.id, session);
    keep(session);
    await listTools(session);
    if (flag('deaf')) setInterval(() => input.pause(), 10);
    return { sessionId: session.id };
  },
  async 'session/load'({ sessionId, cwd, mcpServers }) {
    if (!existsSync(pathOf(sessionId))) throw Object.assign(new Error('no such session'), { code: -32_002 });
    const left = JSON.parse(readFileSync(pathOf(sessionId), 'utf8'));
    const { listed } = sessions.get(sessionId) ?? {};
    const session = { id: sessionId, cwd, servers: mcpServers, left, listed };
    sessions.set(sessionId, session);
    await listTools(session);
    say(sessionId, 'a replayed message');
    return {};
  },
  'session/close'({ sessionId }) {
    sessions.delete(sessionId);
    return {};
  },
  async 'session/prompt'({ sessionId, prompt: blocks }) {
    cancelled.delete(sessionId);
    const usage = await prompt(sessions.get(sessionId), blocks);
    return { stopReason: cancelled.has(sessionId) ? 'cancelled' : 'end_turn', ...(usage && { usage }) };
  },
};
METHODS['session/resume'] = METHODS['session/load'];

const input = createInterface({ input: process.stdin });
input
  .on('line', async (line) => {
    const { id, method, params, result, error } = JSON.parse(line);
    if (method === 'session/cancel') return cancelled.add(params.sessionId);
    if (method === undefined) {
      waiting.get(id)?.({ result, error });
      return waiting.delete(id);
    }
    try {
      if (!METHODS[method]) throw Object.assign(new Error(`no method ${method}`), { code: -32_601 });
      send({ id, result: await METHODS[method](params) });
    } catch (problem) {
      fail(id, problem.code ?? -32_603, problem.message);
    }
  })
  .on('close', () => process.exit(0));
