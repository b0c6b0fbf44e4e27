import { z } from 'zod';
import { CONTRACT, type Verb } from '../../bus/contract.ts';
import { EXPORT_FORMATS } from '../../conversation/index.ts';
import { EXPORTS } from './export.ts';
import { type Json, jsonSchema } from './json-schema.ts';
import { otherRoutes } from './other-routes.ts';
import { ROUTES, type Route } from './routes.ts';

/** The OpenAPI document: the REST routes with the schemas of the contract, and the routes of other protocols. */

/** The caller. Null `publisher`: it may act as any; null `name`: its requests name the person. */
export const identity = z.looseObject({
  role: z.string(),
  publisher: z.string().nullable(),
  name: z.string().nullable(),
});

const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  hint: z.string().optional(),
});

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

export function openApiDocument(version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of ROUTES) {
    paths[route.path] = { ...paths[route.path], [route.method]: operation(route) };
  }
  paths['/api/conversations/{conversation}/export'] = { get: exportOperation() };
  paths['/api/conversations/{conversation}/events'] = { get: events() };
  paths['/api/events'] = { get: severalEvents() };
  paths['/api/identity'] = { get: identityOperation() };
  Object.assign(paths, otherRoutes());
  return {
    openapi: '3.1.0',
    info: { title: 'Parley', version, description: 'Conversations of people and agents' },
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      responses: {
        problem: {
          description: 'Refused (RFC 9457), with a stable `code` and a `hint` of what to do',
          content: { 'application/problem+json': { schema: jsonSchema(problem, 'output') } },
        },
      },
    },
    security: [{}, { token: [] }],
  };
}

function operation(route: Route): Json {
  const fields = requestOf(route.verb);
  const inPath = pathFields(route.path);
  const body = bodyOf(fields, [...inPath, ...(route.query ?? [])]);
  const answer = { 'application/json': { schema: jsonSchema(CONTRACT[route.verb].answer, 'output') } };
  return {
    operationId: operationId(route),
    summary: route.summary,
    description: `Needs the role \`${route.role}\`.`,
    parameters: [
      ...inPath.map((name) => parameter('path', name, fields)),
      ...(route.query ?? []).map((name) => parameter('query', name, fields)),
    ],
    ...(route.method === 'post' && { requestBody: { content: { 'application/json': { schema: body } } } }),
    responses: {
      [route.status ?? 200]: { description: 'Done', content: answer },
      default: { $ref: '#/components/responses/problem' },
    },
  };
}

function exportOperation(): Json {
  const format = z.enum(EXPORT_FORMATS).default('markdown');
  const types = Object.values(EXPORTS).map(({ type }) => [type, {}] as const);
  return {
    operationId: 'exportConversation',
    summary:
      'A whole conversation as a file: for people, as messages in the form of OpenAI, or all entries as JSON Lines',
    description: 'Needs the role `read`.',
    parameters: [
      parameter('path', 'conversation', requestOf('entries')),
      { in: 'query', name: 'format', required: false, schema: jsonSchema(format, 'input') },
    ],
    responses: {
      200: { description: 'Done', content: Object.fromEntries(types) },
      default: { $ref: '#/components/responses/problem' },
    },
  };
}

function events(): Json {
  const fields = requestOf('entries');
  return {
    operationId: 'followConversation',
    summary:
      'Follow a conversation: each entry once, in order, with its index as the id; live text has no id',
    description: 'Needs the role `read`.',
    parameters: [
      parameter('path', 'conversation', fields),
      parameter('query', 'from', fields),
      { in: 'header', name: 'Last-Event-ID', schema: { type: 'integer', minimum: 0 } },
    ],
    responses: {
      200: { description: 'Server-sent events', content: { 'text/event-stream': {} } },
      default: { $ref: '#/components/responses/problem' },
    },
  };
}

function severalEvents(): Json {
  const text = (name: string, description: string) => ({
    in: 'query',
    name,
    description,
    schema: { type: 'string' },
  });
  return {
    operationId: 'followSeveral',
    summary: 'Follow several conversations and the conversation list in one stream',
    description: 'Needs the role `read`.',
    parameters: [
      text(
        'follow',
        'Conversations as `ID@INDEX`, separated by commas; INDEX: the first index wanted, by default 0',
      ),
      text('list', 'The `version` of the last `list` event, or `1`: the whole list'),
    ],
    responses: {
      200: { description: 'Server-sent events', content: { 'text/event-stream': {} } },
      default: { $ref: '#/components/responses/problem' },
    },
  };
}

function identityOperation(): Json {
  return {
    operationId: 'get_identity',
    summary: 'The role, the publisher and the name of the token; without tokens, each caller is the operator',
    description: 'Needs the role `read`.',
    responses: {
      200: {
        description: 'Done',
        content: { 'application/json': { schema: jsonSchema(identity, 'output') } },
      },
      default: { $ref: '#/components/responses/problem' },
    },
  };
}

function requestOf(verb: Verb): ObjectSchema {
  return jsonSchema(CONTRACT[verb].request, 'input');
}

function parameter(place: 'path' | 'query', name: string, { properties, required }: ObjectSchema): Json {
  const isRequired = place === 'path' || required?.includes(name) === true;
  const schema = properties?.[name] ?? {};
  const isList = schema.type === 'array';
  return { in: place, name, required: isRequired, ...(isList && { explode: false }), schema }; // values with commas
}

/** The fields of the body: those that are neither in the path nor in the query. */
function bodyOf({ properties = {}, required = [] }: ObjectSchema, elsewhere: readonly string[]): Json {
  const isInBody = (name: string) => !elsewhere.includes(name);
  const inBody = Object.entries(properties).filter(([name]) => isInBody(name));
  const needed = required.filter((name) => isInBody(name) && name !== 'conversation');
  return {
    type: 'object',
    properties: Object.fromEntries(inBody),
    ...(needed.length > 0 && { required: needed }),
    additionalProperties: false,
  };
}

export function pathFields(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => String(match[1]));
}

function operationId({ method, path }: Route): string {
  const words = path.replace(/^\/api\//, '').split(/[/{}]+/);
  return [method, ...words.filter((word) => word !== '')].join('_');
}
