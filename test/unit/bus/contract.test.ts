import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  type AnswerOf,
  CONTRACT,
  CONVERSATION_VERBS,
  PUBLISHER_VERBS,
  REPEATABLE_VERBS,
  type RequestOf,
  VERBS,
  type Verb,
} from '../../../src/bus/contract.ts';
import type { Endpoint, ParleyClient, AnswerOf as SeenByClient } from '../../../src/client/index.ts';
import type { Handlers } from '../../../src/daemon/api/authorship.ts';
import { jsonSchema, openApiDocument } from '../../../src/gateway/rest/openapi.ts';
import { ROUTES } from '../../../src/gateway/rest/routes.ts';

/** HTTP has no route for them. */
const WITHOUT_ROUTE: readonly Verb[] = ['seed', 'upload', 'blob'];

describe('the contract of the request API', () => {
  it('each verb has a handler in the daemon with its request and answer', () => {
    expectTypeOf<keyof Handlers>().toEqualTypeOf<Verb>();
    const withoutPost = (handlers: Omit<Handlers, 'post'>): Handlers => {
      // @ts-expect-error: a verb without a handler does not compile
      return handlers;
    };
    const wrongAnswer = (handlers: Handlers): Handlers => {
      // @ts-expect-error: nor does a handler that gives another answer
      return { ...handlers, phases: () => ({ phases: [{ phase: 'plan' }] }) };
    };
    expect([withoutPost, wrongAnswer]).toHaveLength(2); // checked by tsc
    expectTypeOf<Parameters<Handlers['view']>[0]>().toEqualTypeOf<RequestOf<'view'>>();
  });

  it('each verb has a typed method of the client', () => {
    expectTypeOf<Endpoint>().toEqualTypeOf<Verb>();
    expectTypeOf<Parameters<ParleyClient['request']>[0]>().toEqualTypeOf<Verb>();
    expectTypeOf<SeenByClient<'dead'>>().toEqualTypeOf<AnswerOf<'dead'>>();
    type Fields = keyof AnswerOf<'post'>;
    expectTypeOf<Fields>().toEqualTypeOf<
      'conversation' | 'id' | 'index' | 'duplicate' | 'agents' | 'unknownMentions' | 'ignored'
    >();
  });

  it('each verb has an HTTP route or is listed as having none', () => {
    const routed = new Set(ROUTES.map(({ verb }) => verb));
    expect([...routed, ...WITHOUT_ROUTE].sort()).toEqual([...VERBS].sort());
  });

  it('the OpenAPI document describes each verb of the contract', () => {
    type Operation = { responses: Record<string, { content: Record<string, { schema: object }> }> };
    const { paths } = openApiDocument('1') as { paths: Record<string, Record<string, Operation>> };
    for (const { path, method, verb, status = 200 } of ROUTES) {
      const answer = paths[path]?.[method]?.responses[status]?.content['application/json'];
      expect(answer, path).toEqual({ schema: jsonSchema(CONTRACT[verb].answer, 'output') });
    }
  });

  it('an answer may gain fields, and a request may not', () => {
    const answer = { accepted: true, since: 'a later version' };
    expect(CONTRACT.answer.answer.parse(answer)).toEqual(answer);
    expect(CONTRACT.agents.request.safeParse({ since: 'a later version' }).success).toBe(false);
  });

  it('the contract lists the verbs that act as a publisher, that name a conversation in the subject, and that are idempotent', () => {
    expect([...PUBLISHER_VERBS]).toEqual(['post', 'upload', 'blob', 'feedback', 'answer', 'results']);
    expect([...CONVERSATION_VERBS]).toEqual(['post', 'blob', 'feedback', 'results']);
    const changing = ['delete', 'phase', 'mode', 'stop', 'resume', 'answer', 'dead-retry', 'dead-discard'];
    expect(VERBS.filter((verb) => !REPEATABLE_VERBS.has(verb))).toEqual(changing);
  });
});
