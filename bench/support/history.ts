import { Conversation, type ConversationRules, type Entry, type Post } from '../../src/conversation/index.ts';
import { ANSWER } from './runtime.ts';

/** Conversations as they are: posts of some 350 characters, each answered in a turn of its own. */

const STARTED_AT = Date.UTC(2026, 10, 21, 20, 39);

/** What is said: by the post of a number, and in answer to it. */
export interface Words {
  post(number: number): string;
  answer(number: number): string;
}

const EVERYDAY: Words = {
  post: (number) =>
    `Step ${number}: ${'we read the log once and parse each line — no more than that. '.repeat(5)}`,
  answer: () => ANSWER,
};

/** Every tenth post goes to another agent by name, so that histories hold attributions and unshown entries too. */
export function examplePost(number: number, words = EVERYDAY): Post {
  const addressed = number % 10 === 3 ? '@dev ' : '';
  return {
    id: `post-${String(number).padStart(8, '0')}`,
    content: addressed + words.post(number),
    author: { id: 'alice', name: 'alice' },
    delivery: 'steer',
  };
}

/** A log of exactly `length` entries in which nothing is owed. Decided by the core, so it is a log that can be. */
export function exampleHistory(length: number, rules: ConversationRules, words = EVERYDAY): Entry[] {
  const conversation = new Conversation(rules);
  for (let number = 0; conversation.entries.length < length; number += 1) {
    // What is left over after whole turns: notes between people, shown to no agent and answered by none.
    const aside = length - conversation.entries.length < ENTRIES_OF_A_TURN;
    const post = { ...examplePost(number, words), ...(aside ? { includeInContext: false } : {}) };
    converse(conversation, post, words.answer(number));
  }
  if (conversation.entries.length !== length) throw new Error(`made ${conversation.entries.length} entries`);
  return conversation.entries;
}

/** The post with the start of its turn, the answer with its end. */
export const ENTRIES_OF_A_TURN = 4;

function converse(conversation: Conversation, post: Post, content: string): void {
  const now = STARTED_AT + conversation.entries.length * 1_000;
  const ingressSequence = conversation.entries.length + 1;
  for (const effect of conversation.apply({ type: 'post', post, ingressSequence }, now).effects) {
    const { agent, turnId } = effect;
    const upTo = conversation.entries.length;
    const report = { agent, turnId, duration: 900, requestHash: 'f'.repeat(64), upTo };
    const answer = {
      content,
      toolCalls: [],
      model: 'instant',
      usage: { inputTokens: 1, outputTokens: 1 },
    };
    conversation.apply({ type: 'model-answered', answer, ...report }, now + 900);
  }
}
