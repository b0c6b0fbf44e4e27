import { describe, expect, it } from 'vitest';
import {
  type DialectName,
  type ModelProfile,
  PLAIN_FORM,
  RequestAssembler,
  type WireTool,
} from '../../../src/agents/index.ts';
import { strictTool } from '../../../src/agents/requests/assemble.ts';
import { PRESETS } from '../../../src/config/schema/profiles.ts';
import { Log, PROFILE, partsOf } from './support.ts';

const object = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});
const toolWith = (parameters: object): WireTool => ({
  type: 'function',
  function: { name: 'look', description: 'looks', parameters: { ...parameters } },
});
const isStrict = (parameters: object) => strictTool(toolWith(parameters)).function.strict === true;

describe('a strict tool', () => {
  it.each([
    ['no arguments', object({})],
    [
      'simple arguments',
      object({ path: { type: 'string', description: 'where' }, deep: { type: 'boolean' } }),
    ],
    ['lists and objects', object({ all: { type: 'array', items: object({ a: { type: 'integer' } }) } })],
    [
      'alternatives with a description',
      object({ a: { description: 'd', anyOf: [object({}), { type: 'string' }] } }),
    ],
    ['alternatives', object({ a: { anyOf: [{ type: 'string', enum: ['x'] }, { type: 'null' }] } })],
  ])('a tool with %s is strict', (_, parameters) => {
    expect(isStrict(parameters)).toBe(true);
  });

  it.each([
    ['an optional argument', object({ a: { type: 'string' } }, { required: [] })],
    ['additional arguments', object({ a: { type: 'string' } }, { additionalProperties: true })],
    ['no rule for additional arguments', { type: 'object', properties: {} }],
    ['a keyword that some providers do not know', object({ a: { type: 'string', minLength: 1 } })],
    ['a nested open object', object({ a: { type: 'array', items: { type: 'object' } } })],
    ['an argument of any type', object({ a: {} })],
    ['a schema that is no object', { type: 'string' }],
    ['alternatives for all of it', { type: 'object', anyOf: [object({})] }],
    ['alternatives beside closed arguments', object({ a: { type: 'string' } }, { anyOf: [object({})] })],
    [
      'alternatives beside what is not strict',
      object({ a: { anyOf: [object({})], type: 'object', properties: { b: {} } } }),
    ],
    ['alternatives beside a list of anything', object({ a: { anyOf: [{ type: 'null' }], items: {} } })],
    ['a required argument that it has not', object({ a: { type: 'string' } }, { required: ['a', 'b'] })],
    ['required arguments that are no list', object({}, { required: 'a' })],
  ])('a tool with %s is not strict, and is sent unchanged', (_, parameters) => {
    const tool = toolWith(parameters);
    expect(strictTool(tool)).toBe(tool);
  });

  it('a strict tool is marked in the request if the profile says so, with the other fields of tools', () => {
    const log = Log.begun('hello');
    const toolFields = { parallel_tool_calls: false };
    const bodyOf = (tools: WireTool[], strictTools: boolean) => {
      const profile = { ...PROFILE, strictTools, toolFields };
      const { request } = new RequestAssembler().assemble(partsOf(log.entries, { tools, profile }));
      const body = JSON.parse(Buffer.concat(request.body).toString('utf8'));
      expect(body.tools ?? []).toEqual(request.tools);
      return body;
    };
    const tools = [toolWith(object({})), toolWith({ type: 'object' })];
    expect(bodyOf(tools, true).tools.map((tool: WireTool) => tool.function.strict)).toEqual([
      true,
      undefined,
    ]);
    expect(bodyOf(tools, false).tools).toEqual(tools);
    expect(bodyOf(tools, true)).toMatchObject(toolFields);
    expect(bodyOf([], true)).not.toHaveProperty('parallel_tool_calls');
  });
});

describe('the schema of an answer', () => {
  const schema = object({ city: { type: 'string' } });
  const TOOLS = [toolWith(object({}))];
  const bodyOf = (
    more: Partial<ModelProfile>,
    asked: Readonly<Record<string, unknown>> | null = schema,
    tools: readonly WireTool[] = [],
  ) => {
    const log = Log.begun('hello');
    const profile = { ...PROFILE, structured: true, ...more };
    const parts = partsOf(log.entries, { schema: asked, profile, tools });
    const { request } = new RequestAssembler().assemble(parts);
    return JSON.parse(Buffer.concat(request.body).toString('utf8'));
  };
  const form = (dialect: DialectName) => ({ ...PLAIN_FORM, dialect });

  it('is in the field of each dialect that enforces it, beside what the field has', () => {
    const format = { type: 'json_schema', name: 'answer', strict: true, schema };
    expect(bodyOf({}).response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'answer', strict: true, schema },
    });
    const fields = { model: 'm', text: { verbosity: 'low' }, output_config: { effort: 'low' } };
    expect(bodyOf({ form: form('responses'), fields }).text).toEqual({ verbosity: 'low', format });
    expect(bodyOf({ form: form('anthropic'), fields }).output_config).toEqual({
      effort: 'low',
      format: { type: 'json_schema', schema },
    });
  });

  it.each([
    ['an open object', {}, { type: 'object' }],
    ['a limit that some providers do not know', {}, object({ a: { type: 'string', minLength: 1 } })],
    ['a list', {}, { type: 'array', items: { type: 'string' } }],
    ['a model that enforces none', { structured: false }, schema],
    ['no schema', {}, null],
  ])('is not in the body with %s: a provider could refuse the request', (_, more, asked) => {
    expect(bodyOf(more, asked)).not.toHaveProperty('response_format');
  });

  it('is in the body beside tools only for models that apply it to the answer alone', () => {
    expect(bodyOf({}, schema, TOOLS)).toHaveProperty('response_format');
    expect(bodyOf({ structured: 'without-tools' }, schema, TOOLS)).not.toHaveProperty('response_format');
    expect(bodyOf({ structured: 'without-tools' })).toHaveProperty('response_format');
    const withTools = Object.entries(PRESETS).flatMap(([name, { structured }]) =>
      structured === true ? [name] : [],
    );
    expect(withTools).toEqual(['openai']);
  });

  it('a request with another schema does not reuse the bytes of the one before', () => {
    const log = Log.begun('hello');
    const assembler = new RequestAssembler();
    const profile = { ...PROFILE, structured: true };
    const { view } = partsOf(log.entries);
    const hashOf = (asked: Readonly<Record<string, unknown>>) =>
      assembler.assemble(partsOf(log.entries, { schema: asked, profile, view })).request.hash;
    expect(hashOf(schema)).not.toBe(hashOf(object({ town: { type: 'string' } })));
    expect(hashOf(schema)).toBe(hashOf({ ...schema }));
  });
});
