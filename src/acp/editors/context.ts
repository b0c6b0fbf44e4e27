import type { AgentContext } from '@agentclientprotocol/sdk';
import type { ParleyClient } from '../../client/index.ts';
import type { NewId, Refusal } from '../../kernel/index.ts';
import type { Update, Updates } from './updates.ts';

/** For whom an editor speaks, and how the command line puts things to that person. */
export interface Person {
  readonly actor: { readonly publisher: string; readonly author?: { readonly name: string } };
  readonly newId: NewId;
  explain(error: unknown): Refusal;
  /** A command to suggest, with the flags by which the daemon was found. */
  command(words: string): string;
}

/** What the parts of a session share. */
export interface SessionContext extends Person {
  /** The id of the session, and of its conversation. */
  readonly id: string;
  readonly cwd: string;
  readonly editor: AgentContext;
  readonly client: ParleyClient;
  readonly updates: Updates;
  /** The next entry that the client was not sent. */
  next: number;
  send(updates: Iterable<Update>): Promise<void>;
}
