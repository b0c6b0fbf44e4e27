import { describe, expect, it } from 'vitest';
import { perTest } from '../../support/lifetime.ts';
import { createWorld } from './world.ts';

describe('what a person can choose from', () => {
  const world = perTest(() => createWorld());

  it('the verb phases lists every phase with the phases that may follow', async () => {
    expect(await world.request('phases', {})).toMatchObject({
      ok: true,
      body: {
        phases: expect.arrayContaining([
          { phase: 'plan', description: expect.any(String), next: ['execute'] },
        ]),
      },
    });
  });

  it('the verb workflows lists every workflow with its nodes', async () => {
    expect(await world.request('workflows', {})).toMatchObject({
      ok: true,
      body: { workflows: expect.any(Array) },
    });
  });

  it('the answer about agents names the configured models, for a what-if', async () => {
    const { names } = world.runtime.whatIfs.models;
    expect(names.length).toBeGreaterThan(0);
    expect(await world.request('agents', {})).toMatchObject({ ok: true, body: { models: names } });
  });

  it('the answer about agents lists the tools of each, and the persona of the one that is named', async () => {
    const answer = await world.request('agents', { persona: 'dev' });
    const { agents } = (answer as { body: { agents: { slug: string; tools: object; persona?: string }[] } })
      .body;
    expect(agents.every(({ tools }) => Array.isArray(tools))).toBe(true);
    expect(agents.flatMap(({ slug, persona }) => (persona === undefined ? [] : [[slug, persona]]))).toEqual([
      ['dev', expect.stringContaining('Persona of')],
    ]);
    expect(JSON.stringify(await world.request('agents', {}))).not.toContain('Persona of');
  });

  it('a persona is asked of an agent that exists', async () => {
    expect(await world.request('agents', { persona: 'nobody' })).toMatchObject({
      ok: false,
      refusal: { code: 'UNKNOWN_AGENT', hint: expect.stringContaining('dev') },
    });
  });

  it.each(['phases', 'workflows'])('the tables are requested without fields: %s', async (endpoint) => {
    expect(await world.request(endpoint, { more: 1 })).toMatchObject({
      ok: false,
      refusal: { code: 'BAD_REQUEST' },
    });
  });
});

describe('the list of conversations', () => {
  it('the list of conversations names agents whose turn runs, and none after it ended', async () => {
    const world = createWorld();
    const row = async () => {
      const answer = await world.request('conversations', {});
      return answer.ok ? (answer.body as { conversations: object[] }).conversations[0] : answer;
    };
    await world.request('post', { conversation: 'demo', publisher: 'alice', content: 'hello' });
    expect(await row()).toMatchObject({ id: 'demo', running: ['pm'], waiting: [] });
    world.calls.at(-1)?.answer('done');
    await expect.poll(row).toMatchObject({ id: 'demo', running: [], waiting: [] });
    await world.end();
  });
});

describe('a post that is asked for', () => {
  it('a post is refused with the path of a number in meta that JSON would write as null', async () => {
    const world = createWorld();
    const body = { conversation: 'demo', publisher: 'alice', content: 'x', meta: { a: [Infinity] } };
    expect(await world.request('post', body)).toMatchObject({
      ok: false,
      refusal: { code: 'INVALID_FIELD', message: expect.stringContaining('meta.a.0') },
    });
    await world.end();
  });
});
