import type { Spent } from '../../../conversation/index.ts';

/** The answers about the daemons and the team, as far as the console reads them. */

export interface Status {
  /** ISO 8601, by the clock of the daemon. */
  readonly at: string;
  /** Null in these: the server did not answer. */
  readonly deadLetters: number | null;
  readonly queue: { readonly posts: number; readonly oldestAt: string | null } | null;
  readonly daemons: readonly DaemonStatus[];
  /** Agents in other processes. */
  readonly agents: readonly {
    readonly agent: string;
    readonly connected: boolean;
    readonly absent: 'fail' | 'wait';
  }[];
  /** With `days`. */
  readonly spent?: readonly Spent[];
}

export interface DaemonStatus {
  /** Null: it shares its logs with no other. */
  readonly daemon: string | null;
  readonly version?: string;
  readonly startedAt?: string;
  readonly store?: string;
  readonly data?: string;
  readonly nats?: string;
  readonly http?: string | null;
  readonly servers?: readonly { readonly server: string; readonly state: string; readonly error?: string }[];
  readonly models?: readonly ModelStatus[];
  /** Its calls of agents in other processes. */
  readonly programs?: readonly ProgramStatus[];
  readonly owns?: { readonly count: number; readonly first: readonly string[] };
  /** Why the other fields are missing. */
  readonly error?: string;
}

interface Calls {
  readonly calls: number;
  readonly failed: number;
  readonly answeredAt?: string;
  readonly failure?: { readonly at: string; readonly code: string };
}

export interface ModelStatus extends Calls {
  readonly model: string;
  readonly seconds?: { readonly mean: number; readonly p95: number };
  readonly firstTokenSeconds?: number;
}

export interface ProgramStatus extends Calls {
  readonly agent: string;
}

export interface TeamAgent {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly runtime: string;
  readonly status: string;
  /** Absent from an older daemon. */
  readonly tools?: readonly string[];
  readonly model?: string;
  /** Of an agent in another process. */
  readonly connected?: boolean;
}

export interface McpServer {
  readonly server: string;
  readonly state: string;
  readonly tools: readonly string[];
  readonly error?: string;
}

export interface DeadLetter {
  readonly sequence: number;
  readonly at: string;
  readonly publisher: string;
  readonly conversation: string;
  readonly code: string;
  readonly reason: string;
  readonly hint?: string;
  /** Of the post. */
  readonly id?: string;
  /** It has only the beginning of the post. */
  readonly truncated?: boolean;
}
