import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import type { FakeReply, FakeRequest } from '../support/fake-provider.ts';
import { type Fleet, ownerOf, startFleet } from '../support/fleet.ts';
import { posting } from '../support/http.ts';
import { claimants, entriesOf, followUntil, said, turnsEnded } from '../support/log.ts';
import { type McpHttpServer, startMcpHttpServer } from '../support/mcp-http-server.ts';
import {
  distinct,
  type OtlpReceiver,
  type ReceivedSpan,
  startOtlpReceiver,
} from '../support/otlp-receiver.ts';
import { openProject, providerSettings } from '../support/project.ts';

/** Traces, as a collector receives them from real daemons. */

const AGENTS = {
  pm: '---\nname: Pam\ntools: [mcp__web__echo, handoff]\n---\nPERSONA OF PAM',
  dev: '---\nname: Dev\ntools: [delegate]\n---\nPERSONA OF DEV',
  critic: '---\nname: Carl\nruntime: bus\n---\nPERSONA OF CARL',
};

const CALLER = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
const TRACEPARENT = `00-${CALLER.traceId}-${CALLER.spanId}-01`;

const call = (name: string, given: object): FakeReply => ({
  toolCalls: [{ name, arguments: JSON.stringify(given) }],
});

/** pm calls a tool and hands over; dev delegates to the critic and answers. */
function team({ json: { messages = [] } }: FakeRequest): FakeReply {
  const results = messages.filter(({ role }) => role === 'tool').length;
  const isPam = messages[0]?.content?.includes('PERSONA OF PAM');
  if (isPam && results === 0) return call('mcp__web__echo', { text: 'SECRET ARGUMENT' });
  if (isPam) return call('handoff', { to: 'dev', summary: 'SECRET SUMMARY' });
  if (results === 0) return call('delegate', { to: 'critic', request: 'look at it' });
  return { text: 'SECRET ANSWER' };
}

/** The developer's turn is over. */
const isAnswered = (entries: readonly Entry[]) =>
  entries.some(
    (entry) => entry.type === 'turn-ended' && entry.agent === 'dev' && entry.outcome === 'completed',
  );

let otlp: OtlpReceiver;
let mcp: McpHttpServer;
let fleet: Fleet | null = null;
beforeEach(async () => {
  otlp = await startOtlpReceiver();
  mcp = await startMcpHttpServer();
});
afterEach(async () => {
  await fleet?.close();
  fleet = null;
  await mcp.close();
  await otlp.close();
});

const settings = () => ({
  telemetry: { otlp: { endpoint: otlp.url, headers: { 'x-tenant': 'test' } } },
  tools: { mcpServers: { web: { url: mcp.url } }, risk: { mcp__web__echo: 'safe' } },
});

async function until(isTrue: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`not within 20 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const named = (spans: readonly ReceivedSpan[], name: string) => spans.filter((span) => span.name === name);

/** The names on the path from a span to its root. */
function pathOf(span: ReceivedSpan, spans: readonly ReceivedSpan[]): string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentId);
  return parent ? [span.name, ...pathOf(parent, spans)] : [span.name];
}

/** The ids of parents that no span has; empty string: a root. */
function orphans(spans: readonly ReceivedSpan[]): string[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  return spans.map(({ parentId }) => parentId).filter((id) => !ids.has(id));
}

describe('traces of daemons that share their logs', () => {
  it('one post through a tool, a handoff, a bus agent and a takeover is one tree', async () => {
    let hangs = 1;
    fleet = await startFleet({
      count: 2,
      agents: AGENTS,
      settings: settings(),
      handler: (request) => {
        const reply = team(request);
        return reply.text && hangs-- > 0 ? { text: 'half', hang: 'after-text' } : reply;
      },
    });
    const carried: (string | undefined)[] = [];
    await fleet.client.agent('critic', (turn) => {
      carried.push(turn.traceparent);
      return 'it is fine';
    });
    await fleet.client.post({ conversation: 'demo', publisher: 'alice', content: 'SECRET QUESTION' });
    await fleet.provider.waitForRequests(4);
    await (await ownerOf(fleet, 'demo')).kill9(); // in the middle of the last model call
    const entries = await followUntil(fleet.client, 'demo', isAnswered);
    expect(checkLaws(entries)).toEqual([]);
    expect(new Set(claimants(entries)).size).toBe(2);
    expect(said(entries)).toContain('SECRET ANSWER');
    await until(() => named(otlp.spans, 'post').length > 0, 'the span of the post');
    const spans = distinct(otlp.spans);

    expect(orphans(spans)).toEqual(['']);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    const critic = named(spans, 'invoke_agent critic')[0] as ReceivedSpan;
    expect(pathOf(critic, spans)).toEqual([
      'invoke_agent critic',
      'execute_tool delegate',
      'invoke_agent dev',
      'execute_tool handoff',
      'invoke_agent pm',
      'post',
    ]);
    const sent = (spanId: string) => `00-${critic.traceId}-${spanId}-01`;
    const [tool] = named(spans, 'execute_tool mcp__web__echo');
    expect(mcp.headers.map(({ traceparent }) => traceparent)).toContain(sent(tool?.spanId ?? ''));
    expect(carried).toEqual([sent(spans.find(({ parentId }) => parentId === critic.spanId)?.spanId ?? '')]);
    const models = spans.filter(({ name }) => name.startsWith('chat fake')).map(({ spanId }) => sent(spanId));
    const requested = fleet.provider.requests.map(({ headers }) => headers.traceparent);
    expect(new Set(requested)).toEqual(new Set(models));
    expect(JSON.stringify(otlp.spans, (_, value) => (typeof value === 'bigint' ? 0 : value))).not.toContain(
      'SECRET',
    );
    expect(otlp.requests[0]).toMatchObject({ 'x-tenant': 'test' });
  }, 60_000);
});

describe('traces of one daemon', () => {
  it('without an exporter, models, MCP servers and bus agents get the traceparent of the post, and nothing without one', async () => {
    fleet = await startFleet({
      count: 1,
      agents: AGENTS,
      handler: (request) => team(request),
      settings: { tools: settings().tools },
    });
    const carried: (string | undefined)[] = [];
    await fleet.client.agent('critic', (turn) => {
      carried.push(turn.traceparent);
      return 'it is fine';
    });
    await fleet.client.post({ conversation: 'plain', publisher: 'alice', content: 'hello' });
    await followUntil(fleet.client, 'plain', isAnswered);
    await fleet.client.post({
      ...{ conversation: 'demo', publisher: 'alice', content: 'hello' },
      traceparent: TRACEPARENT,
    });
    await followUntil(fleet.client, 'demo', isAnswered);
    expect(carried).toEqual([undefined, TRACEPARENT]);
    const requested = fleet.provider.requests.map(({ headers }) => headers.traceparent);
    expect(requested).toEqual([...Array(4).fill(undefined), ...Array(4).fill(TRACEPARENT)]);
    const called = mcp.headers.flatMap(({ traceparent }) => traceparent ?? []);
    expect(called).toEqual([TRACEPARENT]);
    expect(otlp.spans).toEqual([]);
  }, 60_000);

  it('a post continues the trace of its publisher, over NATS and over HTTP', async () => {
    fleet = await startFleet({ count: 1, settings: settings() });
    const [project] = fleet.projects;
    await project?.close();
    const plain = await openProject({
      nats: fleet.nats.url,
      settings: providerSettings(fleet.provider.url, settings()),
    });
    const daemon = await plain.up('--store', 'jetstream', '--http', '127.0.0.1:0', '--http-token', 'none');
    try {
      const { headers } = await import('nats');
      const made = headers();
      made.set('traceparent', TRACEPARENT);
      await fleet.program.jetstream().publish('parley.in.alice.nats', 'over NATS', { headers: made });
      await fetch(
        `${daemon.ready.http}/api/conversations/http/messages`,
        posting({ content: 'over HTTP' }, { traceparent: TRACEPARENT }),
      );
      made.set('traceparent', 'not-a-traceparent');
      await fleet.program
        .jetstream()
        .publish('parley.in.alice.wrong', 'with a wrong header', { headers: made });
      for (const id of ['nats', 'http', 'wrong']) await followUntil(fleet.client, id, turnsEnded(1));
      await until(() => named(otlp.spans, 'post').length === 3, 'three posts');
      const [nats, http, wrong] = ['nats', 'http', 'wrong'].map((id) =>
        named(otlp.spans, 'post').find(({ attributes }) => attributes['gen_ai.conversation.id'] === id),
      );
      expect(nats).toMatchObject({ traceId: CALLER.traceId, parentId: CALLER.spanId });
      expect(http).toMatchObject({ traceId: CALLER.traceId, parentId: CALLER.spanId });
      expect(wrong?.parentId).toBe('');
      expect((await entriesOf(fleet.client, 'wrong'))[1]).not.toHaveProperty('traceparent');
    } finally {
      await plain.close();
    }
  }, 60_000);
});
