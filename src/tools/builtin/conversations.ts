import type { Entry, ViewPolicy } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';

/** The conversations whose calls are run, for `recall`. */
export interface Conversations {
  /** What is durable of the log of a conversation; its first `n` entries never change. */
  entriesOf(conversation: string): Promise<readonly Entry[]>;
  /** How this agent is shown it. */
  viewPolicyOf(agent: string): ViewPolicy;
}

/** Where tools are only described and never run. */
export const NO_CONVERSATIONS: Conversations = {
  entriesOf: (conversation) => {
    throw new ParleyError('NOT_FOUND', `the log of ${conversation} is not open here`);
  },
  viewPolicyOf: () => {
    throw new ParleyError('NOT_FOUND', 'no conversation is open here');
  },
};
