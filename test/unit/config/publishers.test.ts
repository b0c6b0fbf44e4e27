import { describe, expect, it } from 'vitest';
import { loadYaml, refusalOf } from './folder.ts';

const SHIPPED = { postsPerMinute: 1_200, maxBytes: 1_048_576, openConversations: 1_000, sessions: true };

describe('the limits of publishers', () => {
  it('limits apply by default', async () => {
    expect((await loadYaml('')).publishers).toEqual({ others: SHIPPED, named: {} });
  });

  it('a limit that a row omits is taken from default, and null means no limit', async () => {
    const { publishers } = await loadYaml(
      'publishers:\n  default: { postsPerMinute: 5 }\n  importer: { maxBytes: null }\n',
    );
    const others = { ...SHIPPED, postsPerMinute: 5 };
    expect(publishers).toEqual({ others, named: { importer: { ...others, maxBytes: null } } });
  });

  it('PERSON-7: each publisher of a managed server may name sessions, and on another one those whose row allows it', async () => {
    const rows = 'publishers:\n  alice: { sessions: true }\n  bob: { sessions: false }\n  carol: {}\n';
    const rights = async (yaml: string) => {
      const { named, others } = (await loadYaml(yaml)).publishers;
      return [...['alice', 'bob', 'carol'].map((name) => named[name]?.sessions), others.sessions];
    };
    expect(await rights(rows)).toEqual([true, false, true, true]);
    expect(await rights(`nats: { server: "nats://h:4222" }\n${rows}`)).toEqual([true, false, false, false]);
  });

  it.each([
    ['publishers: { alice: { sessions: 1 } }', 'publishers.alice.sessions'],
    ['publishers: { alice: { postsPerHour: 5 } }', 'postsPerHour'],
    ['publishers: { alice: { postsPerMinute: 0 } }', 'publishers.alice.postsPerMinute'],
    ['publishers: { alice: { maxBytes: many } }', 'publishers.alice.maxBytes'],
    ['publishers: { "a.b": { maxBytes: 5 } }', 'a.b'],
  ])('a wrong limit is refused by name in %s', async (yaml, named) => {
    expect(await refusalOf(loadYaml(yaml))).toContain(named);
  });
});
