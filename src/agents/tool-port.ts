/**
 * What a turn needs of tools that act on the world. The toolbox answers with a value for everything a tool may do
 * wrong (throw, hang, return nothing, vanish): a call always ends in a result.
 */

export type Risk = 'safe' | 'risky';

export interface ToolDefinition {
  /** Wire name: a valid function name, unique in the toolbox. */
  readonly name: string;
  /** What a model reads to decide whether to call it. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly risk: Risk;
}

/** One call, its arguments parsed and checked against the schema. */
export interface ToolRun {
  readonly conversation: string;
  readonly agent: string;
  readonly turnId: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The same whenever this call is run: for services that can tell a repetition. */
  readonly idempotencyKey: string;
}

export type ToolOutcome =
  /** `content`: text for the model; may be empty, may be large. */
  | { readonly kind: 'completed'; readonly content: string }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | { readonly kind: 'aborted' };

/** A server that gives tools, as it is now. */
export interface ToolServer {
  readonly server: string;
  readonly state: 'connecting' | 'ready' | 'failed';
  /** Wire names of its tools, in order. */
  readonly tools: readonly string[];
  /** Why it failed. */
  readonly error?: string;
}

export interface Toolbox {
  /** What can be called now, by name. May change while the daemon runs (a server came or went). */
  definitions(): ReadonlyMap<string, ToolDefinition>;
  /** Null: the arguments fit the tool's schema; else what is wrong, for the model to read. */
  check(name: string, given: unknown): string | null;
  /** Runs one call; never rejects. Ends what it began when the signal aborts, and within its own time limit. */
  run(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome>;
  /** The servers behind it, in the order of the configuration; absent: none. */
  servers?(): readonly ToolServer[];
  close(): Promise<void>;
}
