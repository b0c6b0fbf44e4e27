import type { z } from 'zod';
import type { Identity, Role } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';

/** A tool that this daemon offers to agents of other programs. */
export interface Tool<Input extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly role: Role;
  readonly description: string;
  readonly input: Input;
  /** Changes nothing. */
  readonly isReading: boolean;
  call(input: z.infer<Input>, asked: Asked): Promise<Told>;
}

/** The caller, and what is needed to answer it. */
export interface Asked {
  readonly daemon: GatewayPort;
  readonly identity: Identity;
  readonly newId: () => string;
  /** A signal that aborts after so many seconds or when the caller disconnects; released after `use`. */
  patiently<T>(seconds: number, use: (enough: AbortSignal) => Promise<T>): Promise<T>;
}

export interface Told {
  readonly text: string;
  /** The same for programs. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** Keeps the types of a tool's input in its own row of the table; the server parses the input by `row` before each call. */
export function tool<Input extends z.ZodObject>(row: Tool<Input>): Tool {
  return row as unknown as Tool;
}
