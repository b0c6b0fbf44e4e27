import type { z } from 'zod';
import type {
  Risk,
  Toolbox,
  ToolDefinition,
  ToolFile,
  ToolOutcome,
  ToolRun,
} from '../../agents/tool-port.ts';
import { faultBySchema, isConversationTool, jsonSchemaOf } from '../../conversation/index.ts';
import { messageOf, ParleyError } from '../../kernel/index.ts';
import { completed, LONGEST_CALL_MS, type OwnTool, runGuarded, toolboxOf } from '../toolbox.ts';

/** What `run` knows of its call besides the input. */
export interface ToolCall extends Pick<ToolRun, 'conversation' | 'agent' | 'turnId' | 'idempotencyKey'> {
  /** Aborted at a stop of the turn or the daemon, and at the time limit. */
  readonly signal: AbortSignal;
}

export interface ToolSpec<Input extends z.ZodObject> {
  /** 1 to 64 letters, digits, `_` or `-`. */
  readonly name: string;
  /** For the model. */
  readonly description: string;
  readonly input: Input;
  /**
   * Default `risky`: needs an approval, unless the policy allows it, and is never repeated without a person's decision after
   * a crash. `safe`: runs at once, and again after a crash.
   */
  readonly risk?: Risk;
  /** Default: 15 minutes. */
  readonly timeoutMs?: number;
  /**
   * Returns text, or a value that becomes JSON; with files, `{ content?, files: [{ bytes, name? }] }`. An error that it throws
   * goes to the model.
   */
  run(input: z.output<Input>, call: ToolCall): unknown;
}

export type InProcessTool = OwnTool;

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Throws `TOOL_INVALID` if the schema has no JSON Schema, or the name is no function name. */
export function tool<Input extends z.ZodObject>(spec: ToolSpec<Input>): InProcessTool {
  const { name, description, input, risk = 'risky', timeoutMs = LONGEST_CALL_MS } = spec;
  if (!NAME.test(name)) throw invalid(name, 'a name is 1 to 64 letters, digits, _ or -');
  const fault = faultOf({ ...spec, risk });
  if (fault) throw invalid(name, fault);
  const check = (given: unknown) => faultBySchema(name, input, given);
  return {
    definition: { name, description, risk, parameters: parametersFor(name, input) },
    check,
    run: (call, outer) =>
      runGuarded(
        async (signal) => {
          const { conversation, agent, turnId, idempotencyKey } = call;
          const context = { conversation, agent, turnId, idempotencyKey, signal };
          return outcomeOf(await spec.run(input.parse(call.arguments), context));
        },
        outer,
        { name, timeoutMs },
      ),
  };
}

/** What the types of a program refuse, and nothing refuses in a file whose types are removed. */
function faultOf({ description, input, risk, run }: Partial<ToolSpec<z.ZodObject>>): string | null {
  if (typeof description !== 'string') return 'it has no description';
  if (typeof input !== 'object' || !('_zod' in input))
    return 'its input is no z.object() of zod 4; without arguments it is z.object({})';
  if (risk !== 'safe' && risk !== 'risky') return `its risk is ${JSON.stringify(risk)}, not safe or risky`;
  return typeof run === 'function' ? null : 'it has no function run';
}

function parametersFor(name: string, input: z.ZodObject): ToolDefinition['parameters'] {
  try {
    const parameters = jsonSchemaOf(input, 'input');
    if (parameters.type === 'object') return parameters;
  } catch (error) {
    throw invalid(name, messageOf(error));
  }
  throw invalid(name, 'it is not an object');
}

export function outcomeOf(result: unknown): ToolOutcome {
  const { content, files } = Object(result) as { readonly content?: unknown; readonly files?: unknown };
  if (Array.isArray(files) && files.length > 0 && files.every(isFile))
    return completed(textOf(content), files);
  return completed(textOf(result));
}

/** No JSON value is one. */
function isFile(value: unknown): value is ToolFile {
  const { bytes, name = '', mediaType = '' } = Object(value) as Partial<Record<keyof ToolFile, unknown>>;
  return bytes instanceof Uint8Array && typeof name === 'string' && typeof mediaType === 'string';
}

/** As the model reads it. */
function textOf(result: unknown): string {
  if (typeof result === 'string') return result;
  return result === undefined ? '' : (JSON.stringify(result) ?? String(result));
}

function invalid(name: string, why: string): ParleyError {
  return new ParleyError('TOOL_INVALID', `the tool ${name} cannot be offered: ${why}`, {
    hint: 'give tool() a function name, and as input a z.object() that JSON Schema can express',
  });
}

/** `isTaken`: names of other tools. Throws `TOOL_NAME_TAKEN`. */
export function createInProcessTools(
  tools: readonly InProcessTool[],
  isTaken: (name: string) => boolean,
): Toolbox {
  const names = new Set<string>();
  for (const { definition } of tools) {
    const { name } = definition;
    if (isTaken(name) || isConversationTool(name) || names.has(name)) throw taken(name);
    names.add(name);
  }
  return toolboxOf(tools);
}

function taken(name: string): ParleyError {
  return new ParleyError('TOOL_NAME_TAKEN', `another tool has the name ${name}`, {
    hint: 'rename the tool that createDaemon or a file in config/tools gives; names of built-in tools and of MCP servers (mcp__…) are taken',
  });
}
