import { z } from 'zod';
import type { AgentCard, ViewPolicy, Workflow } from '../../conversation/index.ts';
import type { ModelProfile } from '../requests/assemble.ts';
import type { HistoryLimits } from '../requests/reduce.ts';
import type { ToolAvailability } from '../tool-availability.ts';
import type { ToolDefinition } from '../tool-port.ts';

/** The form of each part of a stored definition. Unknown fields are kept: a newer version may have written them. */

const texts = z.array(z.string());
const anyRecord = z.record(z.string(), z.unknown());
const count = z.number().nonnegative();

export const agentSchema = z.looseObject({
  slug: z.string(),
  name: z.string(),
  description: z.string(),
  phases: texts,
  modes: texts,
  runtime: z.enum(['local', 'bus']),
  tools: texts,
}) as unknown as z.ZodType<AgentCard>;

/** `headers`: their names only. */
export const modelSchema = z.looseObject({
  name: z.string(),
  contextTokens: count,
  maxOutputTokens: count,
  fields: anyRecord,
  headers: texts,
  session: z
    .looseObject({
      kind: z.enum(['header', 'field']),
      name: z.string(),
      by: z.enum(['agent', 'daemon']),
    })
    .nullable(),
  price: anyRecord.nullable(),
  form: z.looseObject({ instructionsAs: z.string(), sendReasoning: z.string(), callIds: z.string() }),
  toolFields: anyRecord,
  strictTools: z.boolean(),
}) as unknown as z.ZodType<Omit<ModelProfile, 'headers'> & { readonly headers: readonly string[] }>;

export const viewSchema = z.looseObject({
  viewPolicy: anyRecord,
  historyLimits: z.looseObject({ maxMessages: count.nullable(), maxChars: count.nullable() }),
}) as unknown as z.ZodType<{ readonly viewPolicy: ViewPolicy; readonly historyLimits: HistoryLimits }>;

const ruling = z.enum(['runs', 'asks', 'forbidden']);
const subject = z.looseObject({ kind: z.enum(['path', 'command']), argument: z.string() });
const availability = z.looseObject({
  rules: z.array(z.looseObject({ match: z.record(z.string(), z.string()), ruling })),
  otherwise: ruling,
  subject: subject.optional(),
});

export const partSchemas = {
  roster: z.array(z.looseObject({ slug: z.string(), name: z.string(), description: z.string() })),
  tool: z.looseObject({
    name: z.string(),
    description: z.string(),
    parameters: anyRecord,
    risk: z.enum(['safe', 'risky']),
    subject: subject.optional(),
  }) as unknown as z.ZodType<ToolDefinition>,
  policy: z.record(z.string(), availability) as unknown as z.ZodType<
    Readonly<Record<string, ToolAvailability>>
  >,
  workflow: z.looseObject({
    id: z.string(),
    start: z.string(),
    nodes: z.record(
      z.string(),
      z.looseObject({
        agent: z.string(),
        brief: z.string(),
        tools: texts.optional(),
        outcomes: z.record(z.string(), z.string()),
      }),
    ),
  }) as unknown as z.ZodType<Workflow>,
};
