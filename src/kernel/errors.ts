/**
 * What went wrong, for a person: a stable code, what happened, and what to do about it.
 * Thrown for the outside world's faults; expected refusals are values (see `Refusal`).
 */
export class ParleyError extends Error {
  /** Upper snake case, stable across versions: `CONFIG_INVALID`, `DATA_DIRECTORY_IN_USE`. */
  readonly code: string;
  /** The next step for whoever reads this. */
  readonly hint: string | undefined;
  /** Seconds until another attempt can succeed, where they are known. */
  readonly retryAfter: number | undefined;

  constructor(
    code: string,
    message: string,
    options: { hint?: string | undefined; cause?: unknown; retryAfter?: number | undefined } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ParleyError';
    this.code = code;
    this.hint = options.hint;
    this.retryAfter = options.retryAfter;
  }
}

/** An expected "no", as a value: what the sender is told and what a dead letter records. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  /** Seconds until another attempt can succeed, where they are known. */
  readonly retryAfter?: number;
}

export function refusal(code: string, message: string, hint?: string, retryAfter?: number): Refusal {
  return {
    code,
    message,
    ...(hint !== undefined && { hint }),
    ...(retryAfter !== undefined && { retryAfter }),
  };
}

/** The message of anything that was thrown, without a stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
