import { closeStrayCalls, entriesFromMessages, type MessageEntry } from '../../conversation/index.ts';
import { type NewId, ParleyError, type Refusal } from '../../kernel/index.ts';
import type { PublisherLimits } from '../ingress/publisher-limits.ts';

type Message = Readonly<Record<string, unknown>>;

/** The post that follows a history counts as the first of its bytes. */
const FREE_BYTES = 16 * 1_024;

/** The refusal of a history over the rate of its publisher. Histories have a count of their own, apart from posts. */
export function refusalOfHistory(
  messages: readonly Message[],
  limits: PublisherLimits,
  { publisher, now }: { readonly publisher: string; readonly now: number },
): Refusal | null {
  const bytes = Buffer.byteLength(JSON.stringify(messages)) - FREE_BYTES;
  const waitMs = bytes > 0 ? limits.count({ publisher, bytes, takenAt: now }) : 0;
  return waitMs > 0 ? limits.tooFast(publisher, waitMs) : null;
}

/**
 * Messages as entries, in batches for one append each. No batch begins with the result of a call, so that a call and its
 * result are in one batch. Throws the first fault, with its index.
 */
export function seedsOf(
  messages: readonly Message[],
  agent: string,
  { most, newId }: { readonly most: number; readonly newId: NewId },
): MessageEntry[][] {
  const batches: Message[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const [at, message] of messages.entries()) {
    const { role, content = null, tool_calls, function_call, tool_call_id, name } = message;
    const kept = {
      role,
      content,
      tool_calls,
      function_call,
      tool_call_id,
      ...(role === 'function' && { name }),
    };
    const bytes = Buffer.byteLength(JSON.stringify(kept));
    if (bytes > most) throw tooLarge(at, bytes, most);
    const isResult = role === 'tool' || role === 'function';
    if (size + bytes > most && (!isResult || batches.length === 0)) {
      batches.push([]);
      size = 0;
    }
    size += bytes;
    batches.at(-1)?.push(kept);
  }
  return batches.map((batch) => {
    const made = entriesFromMessages(batch, agent);
    if (!made.ok) throw invalid(made.reason);
    return [...made.entries, ...closeStrayCalls(made.entries, { newId, createdAt: '' })];
  });
}

function invalid(reason: string): ParleyError {
  return new ParleyError('BAD_REQUEST', `a message of the history is not understood: ${reason}`, {
    hint: 'send messages in the form of chat completions',
  });
}

function tooLarge(at: number, bytes: number, most: number): ParleyError {
  return new ParleyError(
    'TOO_LARGE',
    `message ${at} of the history has ${bytes} bytes; ${Math.floor(most)} fit`,
    {
      hint: 'leave it out, or raise max_payload of the nats-server',
    },
  );
}
