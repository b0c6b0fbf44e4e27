/**
 * An error for a person: a stable code, what happened, and the next step.
 * Thrown for faults of the outside world; expected refusals are values (`Refusal`).
 */
export class ParleyError extends Error {
  /** Upper snake case, stable across versions: `CONFIG_INVALID`, `DATA_DIRECTORY_IN_USE`. */
  readonly code: string;
  /** The next step for the reader. */
  readonly hint: string | undefined;
  /** Seconds until a retry can succeed, if known. */
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

/** An expected refusal, as a value: the sender gets it, and a dead letter records it. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  /** Seconds until a retry can succeed, if known. */
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

/** A refusal that is thrown to its sender. */
export function asError(refused: Refusal): ParleyError {
  return new ParleyError(refused.code, refused.message, refused);
}

/** An error as a value for its sender. */
export function refusalOf({ code, message, hint, retryAfter }: ParleyError): Refusal {
  return refusal(code, message, hint, retryAfter);
}

/** An error for a person, with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): error is ParleyError {
  return error instanceof ParleyError && codes.includes(error.code);
}

/** The message of any thrown value, without a stack. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replaceAll(LOOKED_UP, (_, name: string) => `the name ${name} ${UNRESOLVED}`);
}

const LOOKED_UP = /getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)/g;
/** In a message: the name of a host is unknown, or cannot be looked up. */
export const UNRESOLVED = 'does not resolve';

/** The code of an error of the system (`ENOENT`) or of a library; null: none. */
export function errnoOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
