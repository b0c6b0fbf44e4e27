import { z } from 'zod';
import { hasVisible, type JsonRecord, messageOf, readArguments } from '../../kernel/index.ts';
import { hireBudgetSchema } from '../log/entry.ts';
import { type AgentCard, nodeOf, type Workflows } from '../state/roster.ts';
import type { Setting } from '../state/state.ts';
import { PERMITS, sharedTools } from './tool-rules.ts';

/**
 * The tools that act on the conversation itself. They have no effect outside it, so the decision carries them out, in
 * the append that contains what they change. Models read their descriptions.
 */

/** The built-in tool whose files become parts of the agent's next message. */
export const ATTACH = 'attach';

/** Text that others will read. */
const words = z.string().min(1).refine(hasVisible, 'expected at least one visible character');
const slug = z.string().describe('slug of an agent, such as dev');

export const CONVERSATION_TOOLS = {
  handoff: {
    description:
      'Give the floor to another agent: your turn ends, and that agent continues with your summary as its task. Use it when another agent should do the next step. The summary is all that you add: say what the task is, what is known, what is decided, and what is open.',
    schema: z.strictObject({
      to: slug,
      summary: words.describe('what the other agent is to do, with everything it needs to begin'),
      phase: z.string().optional().describe('phase to enter at the same time'),
    }),
  },
  delegate: {
    description:
      'Ask another agent to do something and wait for its answer, which comes back as the result of this call. You keep the floor. Call it several times in one answer to let several agents work side by side.',
    schema: z.strictObject({
      to: slug,
      request: words.describe('the complete task, and what the answer should contain'),
      schema: z
        .record(z.string(), z.unknown())
        .optional()
        .describe('JSON Schema of the answer, if you need a value: the answer is then JSON that matches it'),
    }),
  },
  ask: {
    description:
      'Put a question to the person and wait for the answer, which comes back as the result of this call. It may take hours. Ask one thing, and only what you cannot find out yourself.',
    schema: z.strictObject({
      question: words,
      options: z.array(z.string()).optional().describe('likely answers to choose from'),
    }),
  },
  set_phase: {
    description:
      'Enter another phase of the work. From the next request on, the agent of that phase answers.',
    schema: z.strictObject({
      phase: z.string(),
      reason: words.describe('one sentence that everybody will read'),
    }),
  },
  hire: {
    description:
      'Add an agent of your own to this conversation: it answers when you delegate or hand over to it, or when a person mentions it. It gets no tool that you do not have, and what it uses counts in your budget too. Write its persona as instructions to it.',
    schema: z.strictObject({
      slug: z.string().describe('its slug: lower-case letters, digits and -'),
      name: z.string().optional().describe('its name in the thread; default: from the slug'),
      description: z.string().optional().describe('what it is for, in one line that the other agents read'),
      persona: words.describe('its instructions'),
      tools: z.array(z.string()).optional().describe('names of your own tools that it may use too'),
      model: z.string().optional().describe('name of a configured model; default: yours'),
      budget: hireBudgetSchema.optional(),
    }),
  },
  dismiss: {
    description:
      'Remove an agent that you hired. What it is doing ends, and its slug cannot be used again in this conversation.',
    schema: z.strictObject({
      agent: slug,
      reason: words.optional().describe('one sentence that people will read'),
    }),
  },
  complete_node: {
    description:
      'In a run: declare the current node finished with one of its outcomes. Your turn ends and the workflow moves on.',
    schema: z.strictObject({
      outcome: z.string().describe("one of the node's outcomes"),
      summary: words.describe('what was done and what the next node needs to know'),
      value: z
        .unknown()
        .optional()
        .describe('the value of the node, if its brief gives a JSON Schema for it'),
    }),
  },
} as const;

export type ConversationToolName = keyof typeof CONVERSATION_TOOLS;
export type ToolArguments<N extends ConversationToolName> = z.infer<(typeof CONVERSATION_TOOLS)[N]['schema']>;

export function isConversationTool(name: string): name is ConversationToolName {
  return Object.hasOwn(CONVERSATION_TOOLS, name);
}

/** Calls that stay open until another agent or a person answers: their turn waits. */
export const AWAITED_TOOLS: ReadonlySet<string> = new Set<ConversationToolName>(['delegate', 'ask']);

export type ParsedArguments<N extends ConversationToolName> =
  | { readonly ok: true; readonly value: ToolArguments<N> }
  | { readonly ok: false; readonly message: string };

/** Parses the model's arguments and checks them against the tool's schema. */
export function parseArguments<N extends ConversationToolName>(name: N, text: string): ParsedArguments<N> {
  const read = readArguments(text);
  if (!read.ok) return { ok: false, message: `the arguments of ${name} are not a JSON object: ${read.why}` };
  const parsed = CONVERSATION_TOOLS[name].schema.safeParse(read.value);
  if (parsed.success) return { ok: true, value: parsed.data as ToolArguments<N> };
  const [issue] = parsed.error.issues;
  const where = issue?.path.length ? `${issue.path.join('.')}: ` : '';
  return { ok: false, message: `${name}: ${where}${issue?.message ?? 'wrong arguments'}` };
}

const argumentSchemas = new Map<ConversationToolName, Readonly<Record<string, unknown>>>();

/** JSON Schema of a tool's arguments, cached: every request contains it. */
export function argumentsSchema(name: ConversationToolName): Readonly<Record<string, unknown>> {
  const known = argumentSchemas.get(name);
  if (known) return known;
  const schema = jsonSchemaOf(CONVERSATION_TOOLS[name].schema, 'output');
  argumentSchemas.set(name, schema);
  return schema;
}

/** An error in the form that a model reads. */
export function toolError(code: string, message: string): string {
  return JSON.stringify({ error: { code, message } });
}

/**
 * The tools of an agent in a setting, as names and patterns: the tools in its file that the node allows, and the permissions that a
 * coding agent may ask for. Both the request and the execution of calls use this list.
 */
export function availableTools(card: AgentCard, setting: Setting, workflows: Workflows): readonly string[] {
  const own = card.tools.filter((name) => name !== 'complete_node');
  const { mode, run } = setting;
  if (mode !== 'run' || run?.agent !== card.slug) return own;
  const allowed = nodeOf(workflows, run.workflowId, run.node)?.tools;
  const within = allowed ? sharedTools(own, [...allowed, ...PERMITS]) : own;
  return [...within, 'complete_node'];
}

/** `io`: whether keys with a default are required (`output`) or not (`input`). Throws for a type without a JSON Schema. */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonRecord {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}

/** Null: the value matches the schema. Never throws: a schema may have code of a program. */
export function faultBySchema(name: string, schema: z.ZodType, given: unknown): string | null {
  try {
    const parsed = schema.safeParse(given);
    return parsed.success ? null : `${name}: ${parsed.error.issues.map(problem).join('; ')}`;
  } catch (error) {
    return `${name}: ${messageOf(error)}`;
  }
}

function problem(issue: z.core.$ZodIssue): string {
  const where = issue.path.length > 0 ? `${issue.path.join('.')}: ` : '';
  return `${where}${issue.message}`;
}
