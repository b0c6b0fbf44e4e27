import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { z } from 'zod';
import { recall } from '../../conversation/index.ts';
import { completed, failed } from '../toolbox.ts';
import { defineTool } from './tool.ts';

const QUERY_CHARACTERS = 400;
/** For reading a whole log, interrupted by other work. */
const RECALL_TIMEOUT_MS = 60_000;

const INDEX = z.int().min(0);

const schema = z.strictObject({
  from: INDEX.optional().describe('index of the first entry; default 0'),
  to: INDEX.optional().describe('index of the last entry, included; default: the newest'),
  query: z
    .string()
    .max(QUERY_CHARACTERS)
    .optional()
    .describe('words to look for, in upper or lower case; "in quotes" for an exact phrase'),
  offset: INDEX.optional().describe(
    'character of entry `from` to start at; the note at the end of the previous result gives it',
  ),
});

export const recallTool = defineTool({
  name: 'recall',
  description:
    'Read earlier parts of this conversation from its complete log. With from and to: those entries in full (the same number twice for a single entry), about 16,000 characters per call; if there is more, a note at the end says how to continue. With query: the 20 entries that match its words best, with their indexes, in the whole log or between from and to. You can read messages of others and your own messages, calls and results, but not the tool calls of other agents.',
  risk: 'safe',
  timeoutMs: RECALL_TIMEOUT_MS,
  schema,
  run: async (given, { conversation, agent, conversations, signal }) => {
    const entries = await conversations.entriesOf(conversation);
    const answer = await inSlices(recall(entries, agent, conversations.viewPolicyOf(agent), given), signal);
    return answer.ok ? completed(answer.text) : failed(answer.refusal.code, answer.refusal.message);
  },
});

/** Maximum time between two yields to the event loop, if the steps are short. */
const SLICE_MS = 5;

/** Runs a generator to its end and yields to the event loop in between. Throws on abort. */
export async function inSlices<T>(work: Generator<void, T>, signal: AbortSignal): Promise<T> {
  let since = performance.now();
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value;
    if (performance.now() - since < SLICE_MS) continue;
    await yieldToEventLoop();
    signal.throwIfAborted();
    since = performance.now();
  }
}
