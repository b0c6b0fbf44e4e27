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
  /** The argument that rules of the policy read by its meaning; absent: they compare texts. */
  readonly subject?: Subject;
  /** Its server added or changed it since a person accepted the server's tools: every call is asked for. */
  readonly unaccepted?: Unaccepted;
}

export interface Unaccepted {
  /** Of the tool as it is now. */
  readonly digest: string;
  readonly is: 'new' | 'changed';
}

export type Subject =
  | { readonly kind: 'path'; readonly argument: string; readonly writes: boolean }
  /** For `/bin/sh -c`. */
  | { readonly kind: 'command'; readonly argument: string };

/** Where a path leads. */
export interface Place {
  /** `@project/…`, with links resolved. */
  readonly path: string;
  /** The names on the way that make it a protected path; empty: it is not protected. */
  readonly protectedBy: readonly string[];
  /** True if links lead there. */
  readonly isLinked?: boolean;
  /** True for a file that a search found below the path it was given. */
  readonly isBelow?: boolean;
}

export type Located =
  | { readonly kind: 'place'; readonly place: Place }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string };

/** One call, its arguments parsed and checked against the schema. */
export interface ToolRun {
  readonly conversation: string;
  readonly agent: string;
  readonly turnId: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The same whenever this call is run: for services that can tell a repetition. */
  readonly idempotencyKey: string;
  /** A person approved this call; absent: it was released without. */
  readonly isApproved?: boolean;
  /** Asked with the real place of what was opened, before it is read or written; absent: every place is permitted. */
  readonly permits?: (place: Place) => boolean;
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
  /** Of these, the ones that are new or changed since they were accepted; absent: none. */
  readonly unaccepted?: readonly string[];
  /** Why it failed. */
  readonly error?: string;
}

export interface Toolbox {
  /** What can be called now, by name. May change while the daemon runs (a server came or went). */
  definitions(): ReadonlyMap<string, ToolDefinition>;
  /** Null: the arguments fit the tool's schema; else what is wrong, for the model to read. */
  check(name: string, given: unknown): string | null;
  /** Where the path of this call leads now; null: the tool takes no path. `given` fits the schema. */
  locate?(name: string, given: Readonly<Record<string, unknown>>): Located | null;
  /** Runs one call; never rejects. Ends what it began when the signal aborts, and within its own time limit. */
  run(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome>;
  /** A person approved a call of the tool as it was when it had this digest. */
  accept?(name: string, digest: string): Promise<void>;
  /** The servers behind it, in the order of the configuration; absent: none. */
  servers?(): readonly ToolServer[];
  close(): Promise<void>;
}
