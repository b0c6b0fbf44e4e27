import type { FilePart, ServerAsks } from '../conversation/index.ts';

/**
 * What a turn needs of tools that have effects. The toolbox returns every failure of a tool (it throws, hangs, returns
 * nothing or disappears) as a value: every call ends with a result.
 */

export type Risk = 'safe' | 'risky';

export interface ToolDefinition {
  /** Wire name: a valid function name, unique in the toolbox. */
  readonly name: string;
  /** Shown to the model. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly risk: Risk;
  /** The argument that policy rules interpret as a path or command; absent: rules compare plain text. */
  readonly subject?: Subject;
  /** Added or changed by its server since a person accepted the server's tools: every call needs approval. */
  readonly unaccepted?: Unaccepted;
}

export interface Unaccepted {
  /** Digest of the tool's current definition. */
  readonly digest: string;
  readonly is: 'new' | 'changed';
}

export type Subject =
  | { readonly kind: 'path'; readonly argument: string; readonly writes: boolean }
  /** For `/bin/sh -c`. */
  | { readonly kind: 'command'; readonly argument: string };

/** The file or folder that a path resolves to. */
export interface ResolvedPath {
  /** `@project/…`, with symbolic links resolved. */
  readonly path: string;
  /** The path components that protect it from this kind of access; empty: not protected. */
  readonly protectedBy: readonly string[];
  /** Reached through a symbolic link. */
  readonly isLinked?: boolean;
  /** Found by a search below the path that was given. */
  readonly isBelow?: boolean;
}

export type Located =
  | { readonly kind: 'place'; readonly place: ResolvedPath }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string };

/** One call, its arguments parsed and checked against the schema. */
export interface ToolRun {
  readonly conversation: string;
  readonly agent: string;
  /** The agent whose policy applies; absent: `agent`. */
  readonly policyAgent?: string | undefined;
  readonly turnId: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Constant for all executions of this call, so that services can detect a repetition. */
  readonly idempotencyKey: string;
  /** The span of this call (W3C Trace Context), for programs that continue the trace. */
  readonly traceparent?: string;
  /** A person approved this call; absent: it needed no approval. */
  readonly isApproved?: boolean;
  /** Called with what a tool that still runs reports about itself; a tool need not report. */
  readonly onProgress?: (text: string) => void;
  /**
   * Asks a person for the server of the call; the time of the call stops meanwhile. Null: declined; undefined: nobody answered.
   * Absent: nobody can be asked.
   */
  readonly ask?: (
    asks: ServerAsks,
    signal: AbortSignal,
  ) => Promise<Readonly<Record<string, unknown>> | null | undefined>;
  /** Called with the real path of an opened file before it is read or written; absent: all are permitted. */
  readonly permits?: (place: ResolvedPath) => boolean;
}

/** A file of a result. The daemon keeps it, and finds its type in the bytes. */
export interface ToolFile {
  readonly bytes: Uint8Array;
  readonly name?: string | undefined;
  /** As the tool declares it. */
  readonly mediaType?: string | undefined;
}

/** Stores files. */
export interface FileKeeper {
  /** Durable when it resolves. Rejects with a refusal (`BLOB_…`). */
  keep(bytes: Uint8Array, about: Omit<ToolFile, 'bytes'>): Promise<FilePart>;
}

export type ToolOutcome =
  /** `content`: text for the model; may be empty, may be large. */
  | { readonly kind: 'completed'; readonly content: string; readonly files?: readonly ToolFile[] | undefined }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
      readonly files?: readonly ToolFile[] | undefined;
    }
  | { readonly kind: 'aborted' };

/** The current status of a server that offers tools. */
export interface ToolServer {
  readonly server: string;
  readonly state: 'connecting' | 'ready' | 'failed';
  /** Wire names of its tools, in order. */
  readonly tools: readonly string[];
  /** Those that are new or changed since they were accepted; absent: none. */
  readonly unaccepted?: readonly string[];
  /** Tools that cannot be offered to models, each with the reason; absent: none. */
  readonly leftOut?: readonly string[];
  /** Why it failed. */
  readonly error?: string;
}

export interface Toolbox {
  /** The tools that can be called now, by name. Changes when a server connects or fails. */
  definitions(): ReadonlyMap<string, ToolDefinition>;
  /** Null: the arguments match the schema; else the error, for the model. */
  check(name: string, given: unknown): string | null;
  /** What the path of this call resolves to now; null: the tool takes no path. `given` matches the schema. */
  locate?(name: string, given: Readonly<Record<string, unknown>>): Located | null;
  /**
   * What this call would change now, for a person who decides about it: `completed` with the difference as text, or `failed` with
   * why there is none. Never rejects; null: the tool shows none.
   */
  change?(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome | null>;
  /** Runs one call; never rejects. Stops on abort and at its own time limit. */
  run(call: ToolRun, signal: AbortSignal): Promise<ToolOutcome>;
  /** A person approved a call of the tool with this digest. */
  accept?(name: string, digest: string): Promise<void>;
  /** The servers that provide its tools, in the order of the configuration; absent: none. */
  servers?(): readonly ToolServer[];
  close(): Promise<void>;
}
