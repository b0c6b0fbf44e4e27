import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';

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

it('docs/configuration.md names every key of the schema that ships', async () => {
  const keys = keysOf(JSON.parse(await read('config/parley.schema.json')) as Schema);
  expect(keys).toContain('http.people.token');
  const page = await read('docs/configuration.md');
  const code = [...page.matchAll(/`([^`\n]+)`|^ {4}(.*)$/gm)].map(([, span, line]) => span ?? line);
  const named = new Set(code.flatMap((text) => text?.match(/[A-Za-z_]\w*/g) ?? []));
  expect(keys.filter((key) => !named.has(key.split('.').at(-1) ?? ''))).toEqual([]);
});
