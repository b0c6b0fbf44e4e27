import { type PostedFile, partOf } from '../../bus/index.ts';
import {
  type Author,
  filesOf,
  partsOf,
  quotedHistory,
  type SeededMessage,
} from '../../conversation/index.ts';
import { batchesOf, hasVisible, ParleyError, type Refusal, sizeOf } from '../../kernel/index.ts';
import { BYTES_OF_ONE, type PublisherLimits } from '../ingress/publisher-limits.ts';

type Message = Readonly<Record<string, unknown>> & { readonly files?: readonly PostedFile[] | undefined };

/** The refusal of a history over the rate of its publisher. Histories have a count of their own, apart from posts. */
export function refusalOfHistory(
  messages: readonly Message[],
  limits: PublisherLimits,
  { publisher, now }: { readonly publisher: string; readonly now: number },
): Refusal | null {
  const bytes = sizeOf(messages) - BYTES_OF_ONE; // the post that follows counts as the first of them
  const waitMs = bytes > 0 ? limits.count({ publisher, bytes, takenAt: now }) : 0;
  return waitMs > 0 ? limits.tooFast(publisher, waitMs) : null;
}

/** A history as messages of its sender, in batches for one append each. Throws the first fault, with its index. */
export function seedsOf(messages: readonly Message[], by: Author, most: number): SeededMessage[][] {
  const made = quotedHistory(messages, by);
  if (!made.ok) throw invalid(`message ${made.at}: ${made.reason}`);
  const seeds = made.texts.map((content, at): SeededMessage => {
    const parts = partsOf(content, filesOf({ parts: messages[at]?.files?.map(partOf) }));
    return { content, ...(parts && { parts }) };
  });
  const isSaid = ({ content, parts }: SeededMessage) => hasVisible(content) || parts !== undefined;
  for (const [at, seed] of seeds.entries())
    if (isSaid(seed) && sizeOf(seed) > most) throw tooLarge(at, sizeOf(seed), most);
  return batchesOf(seeds.filter(isSaid), most);
}

function invalid(reason: string): ParleyError {
  return new ParleyError('BAD_REQUEST', `the history is not understood: ${reason}`, {
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
