import { z } from 'zod';
import type { Risk, Subject, ToolDefinition, ToolOutcome } from '../../agents/tool-port.ts';
import { type Entry, faultBySchema, jsonSchemaOf, type ViewPolicy } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { Enclose } from '../processes.ts';
import type { ToolLog } from '../toolbox.ts';
import { pathFault } from './files/names.ts';
import type { Access } from './files/sandbox.ts';

/** For each tool that touches files. */
export const FILES_TIMEOUT_MS = 30_000;

export interface ToolContext extends Access {
  readonly conversation: string;
  readonly agent: string;
  readonly conversations: Conversations;
  /** The text of a stored output; null: not found. */
  readonly outputs: StoredOutputs;
  readonly blobs: StoredBlobs;
  /** Limit of a file in a result. */
  readonly maxFileBytes: number;
  /** Additional environment of commands. */
  readonly environment: Readonly<Record<string, string>>;
  readonly shellTimeoutMs: number;
  /** Wraps the start of commands. */
  readonly enclose: Enclose;
  readonly signal: AbortSignal;
  readonly log: ToolLog;
}

export interface BuiltInTool {
  readonly definition: ToolDefinition;
  /** Absent if the tool enforces its own deadline. */
  readonly timeoutMs?: number;
  /** Null: the arguments match the schema. */
  check(given: unknown): string | null;
  /** Throws errors; the toolbox turns them into failures. `given` matches the schema. */
  run(given: unknown, context: ToolContext): Promise<ToolOutcome>;
  /** The difference that a run would make now. It changes nothing, and reads no protected file. */
  change?(given: unknown, context: ToolContext): Promise<ToolOutcome>;
}

export function defineTool<S extends z.ZodType>(tool: {
  readonly name: string;
  readonly description: string;
  readonly risk: Risk;
  readonly subject?: Subject;
  readonly schema: S;
  readonly timeoutMs?: number;
  readonly run: (given: z.infer<S>, context: ToolContext) => Promise<ToolOutcome>;
  readonly change?: (given: z.infer<S>, context: ToolContext) => Promise<ToolOutcome>;
}): BuiltInTool {
  const { name, description, risk, subject, schema, timeoutMs, change } = tool;
  const parameters = jsonSchemaOf(schema, 'output');
  return {
    definition: { name, description, risk, parameters, ...(subject && { subject }) },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    check: (given) => faultBySchema(name, schema, given),
    run: (given, context) => tool.run(schema.parse(given), context),
    ...(change && { change: (given: unknown, context: ToolContext) => change(schema.parse(given), context) }),
  };
}

/** A path in its canonical form, which policy rules compare. */
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

export type StoredOutputs = (conversation: string, entry: string) => Promise<string | null>;

/** The bytes with this SHA-256; null: not stored. */
export type StoredBlobs = (sha256: string) => Promise<Uint8Array | null>;

/** Access of `recall` and of `@blob/…` to conversations. */
export interface Conversations {
  /** The durable entries of a log. Entries never change. */
  entriesOf(conversation: string): Promise<readonly Entry[]>;
  viewPolicyOf(agent: string): ViewPolicy;
}

/** For uses that describe tools without running them. */
export const NO_CONVERSATIONS: Conversations = {
  entriesOf: (conversation) => {
    throw new ParleyError('NOT_FOUND', `the log of ${conversation} is not open here`);
  },
  viewPolicyOf: () => {
    throw new ParleyError('NOT_FOUND', 'no conversation is open here');
  },
};
