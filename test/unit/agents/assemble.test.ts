import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type ModelRequest, RequestAssembler } from '../../../src/agents/index.ts';
import type { RequestParts } from '../../../src/agents/requests/assemble.ts';
import { AgentView, DEFAULT_VIEW_POLICY, estimateTokens } from '../../../src/conversation/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { Log, PROFILE, partsOf } from './support.ts';

/** The body as JSON.stringify writes it. */
function plainBody({ profile, tools, prefix, view }: RequestParts): string {
  const said = [...view.history, ...view.tail].map((part) => part.message);
  const messages = [{ role: 'system', content: prefix }, ...said];
  return JSON.stringify({ ...profile.fields, ...(tools.length > 0 ? { tools } : {}), messages });
}

const sha256 = (body: ModelRequest['body']) => createHash('sha256').update(Buffer.concat(body)).digest('hex');
const text = (body: ModelRequest['body']) => Buffer.concat(body).toString('utf8');
const tool = {
  type: 'function',
  function: { name: 'recall', description: 'reads', parameters: { type: 'object' } },
} as const;

describe('the assembler', () => {
  it('a request has the bytes that JSON.stringify would make of it, and their hash (ASSEMBLE-2)', () => {
    const log = Log.begun('Grüße 👋 "quoted"\n\u2028 and \u0000 controls');
    for (const tools of [[], [tool]]) {
      const parts = partsOf(log.entries, { tools });
      const { request } = new RequestAssembler().assemble(parts);
      expect(text(request.body)).toBe(plainBody(parts));
      expect(request.hash).toBe(sha256(request.body));
      expect(JSON.parse(text(request.body)).messages).toEqual(request.messages);
      expect(request.headers).toEqual(PROFILE.headers);
    }
  });

  it('a request can begin without static fields', () => {
    const log = Log.begun('hello');
    const parts = partsOf(log.entries, { profile: { ...PROFILE, fields: {} } });
    expect(text(new RequestAssembler().assemble(parts).request.body)).toBe(plainBody(parts));
  });

  it('the cached bytes grow to the bytes that a new assembler makes, turn after turn (ASSEMBLE-3)', () => {
    const log = new Log();
    const kept = new RequestAssembler();
    const view = new AgentView(log.entries, 'pm', DEFAULT_VIEW_POLICY);
    const requests: ModelRequest[] = [];
    for (let n = 0; n < 40; n++) {
      const turn = log.start('pm', log.person(`question ${n} ${'x'.repeat(n * 40)}`));
      const parts = partsOf(log.entries, { view: view.build() });
      const { request, tokens, fault } = kept.assemble(parts);
      const fresh = new RequestAssembler().assemble(partsOf(log.entries));
      expect(text(request.body)).toBe(text(fresh.request.body));
      expect([request.hash, tokens, fault]).toEqual([fresh.request.hash, fresh.tokens, null]);
      requests.push(request);
      log.answer('pm', turn, `answer ${n}`);
    }
    for (const { body, hash } of requests) expect(sha256(body)).toBe(hash); // ASSEMBLE-B-2
    expect(text(requests[3]?.body ?? [])).toContain('question 3');
    expect(JSON.parse(text(requests[3]?.body ?? [])).messages.length).toBe(8);
  });

  it('the assembler returns the same bytes when it is called twice', () => {
    const log = Log.begun('hello');
    const assembler = new RequestAssembler();
    const [first, second] = [
      assembler.assemble(partsOf(log.entries)),
      assembler.assemble(partsOf(log.entries)),
    ];
    expect(second.request.hash).toBe(first.request.hash);
    expect(second.tokens).toBe(first.tokens);
  });

  it('the assembler discards its cache when the prefix, the tools or the model change', () => {
    const log = new Log();
    const turn = log.start('pm', log.person('hello'));
    log.answer('pm', turn, 'hi');
    log.start('pm', log.person('again'));
    const assembler = new RequestAssembler();
    const view = new AgentView(log.entries, 'pm', DEFAULT_VIEW_POLICY).build();
    const changes: Partial<RequestParts>[] = [
      {},
      { prefix: 'Be brief.' },
      { tools: [tool] },
      { profile: { ...PROFILE, fields: { model: 'other' } } },
      {},
    ];
    for (const change of changes) {
      const parts = partsOf(log.entries, { view, ...change });
      expect(text(assembler.assemble(parts).request.body)).toBe(plainBody(parts));
    }
  });

  it('the assembler discards its cache when the history changes other than by growing', () => {
    const log = new Log();
    const turn = log.start('pm', log.person('hello'));
    log.answer('pm', turn, 'hi');
    log.start('pm', log.person('again'));
    const assembler = new RequestAssembler();
    const view = new AgentView(log.entries, 'pm', DEFAULT_VIEW_POLICY).build();
    assembler.assemble(partsOf(log.entries, { view }));
    const shorter = { ...view, history: view.history.slice(1), historyVersion: view.historyVersion + 1 };
    const parts = partsOf(log.entries, { view: { ...shorter, historyLength: shorter.history.length } });
    const again = assembler.assemble(parts);
    expect(text(again.request.body)).toBe(plainBody(parts));
    expect(again.tokens).toBe(new RequestAssembler().assemble(parts).tokens);
  });

  it('a request excludes entries that the view does not have yet', () => {
    const log = new Log();
    const turn = log.start('pm', log.person('hello'));
    log.answer('pm', turn, 'hi');
    log.start('pm', log.person('again'));
    const view = new AgentView(log.entries, 'pm', DEFAULT_VIEW_POLICY);
    const early = partsOf(log.entries, { view: view.build() });
    const body = plainBody(early);
    const length = early.view.history.length;
    log.answer('pm', 'turn-1', 'hi again');
    log.start('pm', log.person('a third time'));
    view.build();
    expect(early.view.history.length).toBeGreaterThan(length); // The array is shared.
    expect(text(new RequestAssembler().assemble(early).request.body)).toBe(body);
  });

  it('the assembler estimates every message, call and tool, and passes the sum to the guard', () => {
    const log = Log.begun('four');
    const plain = new RequestAssembler().assemble(partsOf(log.entries)).tokens;
    expect(plain).toBe(10 + estimateTokens('Be good.') + 10 + estimateTokens('four'));
    const withTool = new RequestAssembler().assemble(partsOf(log.entries, { tools: [tool] })).tokens;
    expect(withTool).toBe(plain + 50 + estimateTokens(JSON.stringify(tool)));
    const profile = { ...PROFILE, contextTokens: PROFILE.maxOutputTokens + plain };
    expect(new RequestAssembler().assemble(partsOf(log.entries, { profile })).fault).toBeNull();
    const tight = { ...profile, contextTokens: profile.contextTokens - 1 };
    expect(new RequestAssembler().assemble(partsOf(log.entries, { profile: tight })).fault).toMatchObject(
      errorWith('CONTEXT_STILL_TOO_LARGE', 'the request is about'),
    );
  });

  it('a persona larger than the window is refused with its size and the keys of the window (GUARD-3)', () => {
    const log = Log.begun('hi');
    const prefix = 'x'.repeat(40_000);
    const profile = { ...PROFILE, name: 'small', contextTokens: 9_000, maxOutputTokens: 1_000 };
    expect(new RequestAssembler().assemble(partsOf(log.entries, { prefix, profile })).fault).toMatchObject({
      code: 'CONTEXT_STILL_TOO_LARGE',
      message:
        'the persona and the tools of pm alone are about 10010 tokens; models.small.contextTokens (9000) less its maxOutputTokens (1000) leaves room for 8000',
      hint: expect.stringMatching(/agents\/pm\.md.*models\.small\.contextTokens/),
    });
  });
});
