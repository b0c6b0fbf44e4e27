import { LONGEST_CALL_MS } from '../guarded.ts';

/** The configuration of a server in `parley.yaml`. A secret is revealed only to its own server. */

export interface SecretValue {
  reveal(): string;
}

export type McpServerSettings = {
  /** Trust the server's `readOnlyHint`. Default: false. */
  readonly trustReadOnlyHint?: boolean;
} & (
  | {
      readonly transport: 'command';
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, SecretValue>>;
    }
  | {
      readonly transport: 'http';
      readonly url: string;
      readonly headers: Readonly<Record<string, SecretValue>>;
    }
);

/** The logger; pino implements it. */
export interface McpLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Timeouts and intervals in milliseconds. */
export interface McpTimes {
  /** For a server to start and list its tools: `npx` may have to fetch it first. */
  readonly connectMs: number;
  /** For a call without a message from the server; progress restarts it. */
  readonly callMs: number;
  /** For a call in all. */
  readonly callInAllMs: number;
  /** For a server to answer whether it is still there. */
  readonly probeMs: number;
  /** For an answer that is still being read when its stream has ended. */
  readonly answerGraceMs: number;
  /** For a server to end by itself, and again after SIGTERM. */
  readonly endMs: number;
  /** Before a server is started again: doubles with each failure in a row, up to `restartMaxMs`. */
  readonly restartMs: number;
  readonly restartMaxMs: number;
  /** After this uptime the count of consecutive failures is reset. */
  readonly stableMs: number;
}

export const DEFAULT_TIMES: McpTimes = {
  connectMs: 60_000,
  callMs: 300_000,
  callInAllMs: LONGEST_CALL_MS,
  probeMs: 5000,
  answerGraceMs: 1000,
  endMs: 2000,
  restartMs: 500,
  restartMaxMs: 60_000,
  stableMs: 30_000,
};
