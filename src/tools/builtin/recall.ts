import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { z } from 'zod';
import { recall } from '../../conversation/index.ts';
import { completed, failed } from '../guarded.ts';
import { QUERY_CHARACTERS, RECALL_TIMEOUT_MS } from './limits.ts';
import { defineTool } from './tool.ts';

const INDEX = z.int().min(0);

const schema = z.strictObject({
  from: INDEX.optional().describe('index of the first entry; 0 unless told'),
  to: INDEX.optional().describe('index of the last entry, itself included; the newest unless told'),
  query: z
    .string()
    .max(QUERY_CHARACTERS)
    .optional()
    .describe('words to look for, in any case; "in quotes" for words that must stand together'),
  offset: INDEX.optional().describe(
    'character of entry from to begin at: how the note of the answer before says to go on',
  ),
});

export const recallTool = defineTool({
  name: 'recall',
  description:
    'Read this conversation back, from the log that nothing is ever lost from. With from and to: those entries in full (the same number twice for a single one), about 16,000 characters at once; if there is more, a note at the end says how to go on. With query: the 20 entries that fit its words best, with their indexes, in the whole log or from from to to. You read what you can be shown: what others say, your own words, calls and results; not the tool calls of other agents.',
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
