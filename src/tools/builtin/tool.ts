import { z } from 'zod';
import type { Risk, Subject, ToolDefinition, ToolOutcome } from '../../agents/tool-port.ts';
import type { Entry, ViewPolicy } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { Enclose } from '../hide-folder.ts';
import type { ToolLog } from '../log.ts';
import { pathFault } from './files/names.ts';
import type { Access } from './files/sandbox.ts';

/** What a built-in tool is given. */
export interface ToolContext extends Access {
  readonly conversation: string;
  /** Who calls. */
  readonly agent: string;
  readonly conversations: Conversations;
  /** Folder that `@project` means. */
  readonly project: string;
  /** Folders that no tool that takes paths may enter, wherever they lie. */
  readonly closed: readonly string[];
  /** The file of a stored output. */
  readonly outputs: (conversation: string, entry: string) => string;
  /** Where outputs are no files of this machine: the text of one; null: there is none. */
  readonly storedOutput?: ((conversation: string, entry: string) => Promise<string | null>) | undefined;
  /** What commands get besides what is always set. */
  readonly environment: Readonly<Record<string, string>>;
  readonly shellTimeoutMs: number;
  /** How commands are started. */
  readonly enclose: Enclose;
  readonly signal: AbortSignal;
  readonly log: ToolLog;
}

export interface BuiltInTool {
  readonly definition: ToolDefinition;
  /** Absent for what keeps its own deadline. */
  readonly timeoutMs?: number;
  /** Null when the arguments fit. */
  check(given: unknown): string | null;
  /** Throws what went wrong; the toolbox makes a failure of it. `given` fits. */
  run(given: unknown, context: ToolContext): Promise<ToolOutcome>;
}

export function defineTool<S extends z.ZodType>(tool: {
  readonly name: string;
  readonly description: string;
  readonly risk: Risk;
  readonly subject?: Subject;
  readonly schema: S;
  readonly timeoutMs?: number;
  readonly run: (given: z.infer<S>, context: ToolContext) => Promise<ToolOutcome>;
}): BuiltInTool {
  const { name, description, risk, subject, schema, timeoutMs } = tool;
  const { $schema, ...parameters } = z.toJSONSchema(schema);
  return {
    definition: { name, description, risk, parameters, ...(subject && { subject }) },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    check: (given) => {
      const parsed = schema.safeParse(given);
      return parsed.success ? null : `${name}: ${parsed.error.issues.map(problem).join('; ')}`;
    },
    run: (given, context) => tool.run(schema.parse(given), context),
  };
}

function problem(issue: z.core.$ZodIssue): string {
  const where = issue.path.length > 0 ? `${issue.path.join('.')}: ` : '';
  return `${where}${issue.message}`;
}

/** A path in its one form: what a rule of the policy compares. */
export const PATH = z
  .string()
  .min(1)
  .superRefine((path, context) => {
    const fault = pathFault(path);
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  });

export const READS: Subject = { kind: 'path', argument: 'path', writes: false };
export const WRITES: Subject = { kind: 'path', argument: 'path', writes: true };

export const PROJECT_PATH = PATH.describe('@project/ and the way from there, such as @project/src/main.ts');

/** The conversations whose calls are run, for `recall`. */
export interface Conversations {
  /** What is durable of the log of a conversation; its first `n` entries never change. */
  entriesOf(conversation: string): Promise<readonly Entry[]>;
  /** How this agent is shown it. */
  viewPolicyOf(agent: string): ViewPolicy;
}

/** Where tools are only described and never run. */
export const NO_CONVERSATIONS: Conversations = {
  entriesOf: (conversation) => {
    throw new ParleyError('NOT_FOUND', `the log of ${conversation} is not open here`);
  },
  viewPolicyOf: () => {
    throw new ParleyError('NOT_FOUND', 'no conversation is open here');
  },
};
