import { z } from 'zod';
import { CONTRACT } from '../../bus/contract.ts';
import { OTHER_ROUTES, type OtherRoute, pathFields, queryFields, ROUTES, type Route } from './routes.ts';

/** The OpenAPI document: the rows of `routes.ts`, with the schemas of the contract and of the protocols. */

export type Json = Readonly<Record<string, unknown>>;

export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}

const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  hint: z.string().optional(),
});

const CONVERSATION = jsonSchema(CONTRACT.entries.request.shape.conversation, 'input');
const PROBLEM = { $ref: '#/components/responses/problem' };

export function openApiDocument(version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  const add = ({ path, method }: Route | OtherRoute, operation: Json) => {
    paths[path] = { ...paths[path], [method]: operation };
  };
  for (const route of ROUTES) add(route, operation(route));
  for (const route of OTHER_ROUTES) add(route, otherOperation(route));
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

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

function operation(route: Route): Json {
  const { verb, path, method, summary, role, status } = route;
  const fields: ObjectSchema = jsonSchema(CONTRACT[verb].request, 'input');
  const [inPath, query] = [pathFields(route), queryFields(route)];
  const body = bodyOf(fields, [...inPath, ...query]);
  const words = path.replace(/^\/api\//, '').split(/[/{}]+/);
  return {
    operationId: [method, ...words.filter((word) => word !== '')].join('_'),
    summary,
    description: `Needs the role \`${role}\`.`,
    parameters: [
      ...inPath.map((name) => parameter('path', name, fields)),
      ...query.map((name) => parameter('query', name, fields)),
    ],
    ...(method === 'post' && { requestBody: { content: { 'application/json': { schema: body } } } }),
    responses: {
      [status ?? 200]: {
        description: 'Done',
        content: { 'application/json': { schema: jsonSchema(CONTRACT[verb].answer, 'output') } },
      },
      default: PROBLEM,
    },
  };
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

function otherOperation({ path, operationId, summary, role, docs, query = {}, ...route }: OtherRoute): Json {
  const { answers, answer, body, takesFile, needsMore, status = 200 } = route;
  const more = needsMore ? '; a request may also need `post`, `approve` or `operate`' : '';
  const content = answer ? { schema: jsonSchema(answer, 'output') } : {};
  return {
    operationId,
    summary,
    description: role === null ? 'Needs no token.' : `Needs the role \`${role}\`${more}.`,
    ...(docs && { externalDocs: docs }),
    parameters: [
      ...pathFields({ path }).map((name) => ({
        in: 'path',
        name,
        required: true,
        schema: name === 'conversation' ? CONVERSATION : { type: 'string' },
      })),
      ...Object.entries(query).map(([name, field]) => ({
        in: 'query',
        name,
        required: false,
        ...(typeof field === 'string'
          ? { description: field, schema: { type: 'string' } }
          : { schema: jsonSchema(field, 'input') }),
      })),
    ],
    ...(body && { requestBody: { content: { 'application/json': { schema: jsonSchema(body, 'input') } } } }),
    ...(takesFile && { requestBody: { required: true, content: { '*/*': {} } } }),
    responses: {
      [status]: { description: 'Done', content: Object.fromEntries(answers.map((type) => [type, content])) },
      default: docs ? { description: 'Refused, in the form of the protocol' } : PROBLEM,
    },
  };
}
