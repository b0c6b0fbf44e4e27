import { describe, expect, it } from 'vitest';
import type { JsonRecord } from '../../../src/kernel/index.ts';
import {
  CheckBudget,
  MAX_SCHEMA,
  schemaFault,
  valueCheck,
  valueFault,
} from '../../../src/kernel/json-schema.ts';

const budget = () => new CheckBudget(() => performance.now());
const faultOf = (schema: unknown) => schemaFault(schema, budget());
/** Takes CPU time. */
const busy = (ms: number): true => {
  for (const end = performance.now() + ms; performance.now() < end; );
  return true;
};

it('a schema whose compilation ran out of time is compiled again when there is time', () => {
  let passed = 0;
  const spent = new CheckBudget(() => passed + performance.now());
  while (spent.spend(() => busy(5))); // until there is not enough time
  const properties = Object.fromEntries(
    Array.from({ length: 200 }, (_, at) => [`p${at}`, { type: 'object', properties: { [`q${at}`]: {} } }]),
  );
  const large = valueCheck({ type: 'object', properties, required: ['p1'] }, spent, 'answer');
  passed += 200; // 2 ms more
  expect(large({ p1: {} })).toBeUndefined();
  passed += 200_000;
  expect(large({ p1: {} })).toBeNull();
  expect(large({})).toContain('p1');
});

const check = (schema: JsonRecord, value: unknown) => valueCheck(schema, budget(), 'answer')(value);

const PERSON = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer', minimum: 0 } },
  required: ['name'],
  additionalProperties: false,
};

describe('a schema of a stranger', () => {
  it.each([
    ['an ordinary schema', PERSON],
    ['a schema of draft 7 with a list of items', { type: 'array', items: [{ type: 'string' }] }],
    ['a schema of draft 2020-12', { type: 'array', prefixItems: [{ type: 'string' }], items: false }],
    [
      'a tree',
      { type: 'object', properties: { children: { type: 'array', items: { $ref: '#' } } }, $id: 'tree' },
    ],
    ['a pattern that backtracks, since it is matched in linear time', { type: 'string', pattern: '^(a+)+$' }],
    ['an asynchronous schema', { $async: true, type: 'object' }],
    ['an unknown keyword and format', { type: 'string', format: 'iban', 'x-hint': 1 }],
  ])('%s is accepted', (_, schema) => {
    expect(faultOf(schema)).toBeNull();
  });

  it.each([
    ['a text', 'text', 'a schema is an object such as { "type": "object" }, not "text"'],
    ['a list', [], 'a schema is an object'],
    ['true', true, 'not true'],
    ['an unknown type', { properties: { a: { type: 'text' } } }, /invalid: schema\/properties\/a\/type must/],
    ['a limit that is a text', { minimum: '1' }, /invalid: schema\/minimum must be number/],
    ['a reference to nothing', { $ref: '#/$defs/a' }, /refers to "#\/\$defs\/a".*\$defs\/NAME/],
    ['a reference to another document', { items: { $ref: 'https://a.test/b' } }, /refers to "https/],
    ['a reference to itself', { $ref: '#' }, 'refers to itself without an end'],
    ['references in a circle', { $ref: '#/$defs/a', $defs: { a: { allOf: [{ $ref: '#' }] } } }, /itself/],
    [
      'references that lead only to each other',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
      'refers to itself without an end',
    ],
    ['a pattern with a lookahead', { pattern: '^(?=x)x$' }, /cannot be used: .*lookahead|cannot be used/],
    ['a pattern that is none', { pattern: '(' }, /cannot be used|invalid/],
    ['1 MB', { enum: ['x'.repeat(1_000_000)] }, `at most ${MAX_SCHEMA} are accepted`],
    ['half a character', { title: '\ud800' }, '/title has half a character'],
    ['the name of a prototype', JSON.parse('{"properties":{"__proto__":{}}}'), '/properties has the name'],
    ['an infinite number', { maximum: Number.POSITIVE_INFINITY }, 'number maximum is too large'],
  ])('%s is refused with the reason', (_, schema, reason) => {
    expect(faultOf(schema)).toMatch(reason);
  });

  it('a schema that is nested deeply is refused, not traversed', () => {
    const deep = JSON.parse(`${'{"not":'.repeat(100_000)}{}${'}'.repeat(100_000)}`);
    expect(faultOf(deep)).toContain('nested deeper than 64 levels');
  });

  it('alternatives that double at each level end within the budget', () => {
    // 2^40 checks: without the budget, they never end
    const level = (n: number) => ({ anyOf: [{ $ref: `#/$defs/l${n}` }, { $ref: `#/$defs/l${n}` }] });
    const $defs = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`l${n}`, level(n + 1)]));
    expect(faultOf({ ...level(0), $defs: { ...$defs, l40: { type: 'number', maximum: -1 } } })).toContain(
      'too long',
    );
  });
});

describe('a value', () => {
  it('a right value has no fault', () => {
    expect(check(PERSON, { name: 'Ada', age: 36 })).toBeNull();
  });

  it('each fault names the place, and what the schema wants', () => {
    expect(check(PERSON, { age: -1.5, more: true })).toBe(
      'answer must have required property \'name\', answer must NOT have additional properties: "more", ' +
        'answer/age must be integer, answer/age must be >= 0',
    );
    expect(check({ enum: ['a', 'b'] }, 'c')).toBe(
      'answer must be equal to one of the allowed values: ["a","b"]',
    );
    expect(check({ const: 1 }, 2)).toBe('answer must be equal to constant: 1');
    expect(check({ type: 'string', format: 'date' }, 'x')).toBe('answer must match format "date"');
  });

  it('of many faults, ten are listed', () => {
    const text = check(
      { type: 'array', items: { type: 'string' } },
      Array.from({ length: 50 }, () => 1),
    );
    expect(text?.split(', ')).toHaveLength(11);
    expect(text).toMatch(/and 40 more$/);
  });

  it('a name of the prototype is no property that a value has', () => {
    expect(check({ required: ['toString'] }, {})).toContain("required property 'toString'");
  });

  it('a format with a pattern costs no more than the budget', { timeout: 10_000 }, () => {
    for (const format of ['uri', 'email', 'uri-template', 'hostname', 'iri-reference', 'date-time'])
      check({ type: 'string', format }, `${'a.'.repeat(50_000)}@`);
  });

  it.each([
    ['a lone surrogate', { a: ['\udc00'] }, '/a/0 has half a character'],
    ['a name with half a character', { '\ud800': 1 }, 'a name in / has half'],
    ['the name of a prototype', JSON.parse('{"a":{"__proto__":1}}'), '/a has the name __proto__'],
    ['a number that is too large', { a: JSON.parse('1e999') }, 'number a is too large'],
    ['deep nesting', JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`), 'nested deeper than 64'],
  ])('%s is refused whatever the schema', (_, value, reason) => {
    expect(valueFault(value)).toContain(reason);
  });

  it('other values are kept', () => {
    for (const value of [null, 0, '', 'é😀', [], { constructor: 1 }]) expect(valueFault(value)).toBeNull();
  });
});
