import { describe, expect, it } from 'vitest';
import { loadYaml, refusalOf } from './folder.ts';

const SHIPPED = { postsPerMinute: 1_200, maxBytes: 1_048_576, openConversations: 1_000 };

describe('the limits of publishers', () => {
  it('are on where nothing is said', async () => {
    expect((await loadYaml('')).publishers).toEqual({ others: SHIPPED, named: {} });
  });

  it('are those of default where a row does not name them, and none where it says null', async () => {
    const { publishers } = await loadYaml(
      'publishers:\n  default: { postsPerMinute: 5 }\n  importer: { maxBytes: null }\n',
    );
    const others = { ...SHIPPED, postsPerMinute: 5 };
    expect(publishers).toEqual({ others, named: { importer: { ...others, maxBytes: null } } });
  });

  it.each([
    ['publishers: { alice: { postsPerHour: 5 } }', 'postsPerHour'],
    ['publishers: { alice: { postsPerMinute: 0 } }', 'publishers.alice.postsPerMinute'],
    ['publishers: { alice: { maxBytes: many } }', 'publishers.alice.maxBytes'],
    ['publishers: { "a.b": { maxBytes: 5 } }', 'a.b'],
  ])('are refused by name in %s', async (yaml, named) => {
    expect(await refusalOf(loadYaml(yaml))).toContain(named);
  });
});
