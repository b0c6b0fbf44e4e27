import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { flagOf, SETTINGS } from '../../../src/config/index.ts';
import { agentFileSchema } from '../../../src/config/schema/schema.ts';

const read = (path: string) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8');

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** Each key with the keys above it, dots between. */
function keysOf(schema: Schema, above: readonly string[] = []): string[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([key, below]) => [
    [...above, key].join('.'),
    ...keysOf(below, [...above, key]),
  ]);
  const { additionalProperties: others, items, anyOf = [], oneOf = [] } = schema;
  const nested = [
    ...(typeof others === 'object' ? [others] : []),
    ...(items ? [items] : []),
    ...anyOf,
    ...oneOf,
  ];
  return [...own, ...nested.flatMap((one) => keysOf(one, above))];
}

it('docs/reference/configuration.md names every key of the schema that ships', async () => {
  const keys = keysOf(JSON.parse(await read('config/parley.schema.json')) as Schema);
  expect(keys).toContain('http.people.token');
  const page = await read('docs/reference/configuration.md');
  const section = page.slice(page.indexOf('## Keys of parley.yaml'));
  const code = [...section.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span);
  const named = new Set(code.flatMap((text) => text?.match(/[A-Za-z_]\w*/g) ?? []));
  expect(keys.filter((key) => !named.has(key.split('.').at(-1) ?? ''))).toEqual([]);
});

it('docs/reference/configuration.md names every key of an agent and every flag of a setting', async () => {
  const page = await read('docs/reference/configuration.md');
  const names = [...Object.keys(agentFileSchema.shape), ...SETTINGS.map(flagOf)];
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
