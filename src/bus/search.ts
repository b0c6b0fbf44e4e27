import { z } from 'zod';
import { NAME_PATTERN } from '../conversation/index.ts';
import { hasVisible } from '../kernel/index.ts';
import { count, fields, index, list } from './answers.ts';

/** The verb `search`: words in the messages of all conversations. */

/** Messages of one answer, by default and at most. */
export const FOUND = 20;
const MOST_FOUND = 100;

const time = z.union([z.iso.datetime({ offset: true }), z.iso.date()], {
  error: 'expected a time in ISO 8601, such as 2026-01-31 or 2026-01-31T12:00:00Z',
});

export const searchRequest = z.strictObject({
  q: z.string().max(1_000).refine(hasVisible, { error: 'expected at least one word' }),
  conversation: z.string().regex(NAME_PATTERN).optional(),
  /** Author of the message: the slug of an agent; the id or the name of a person. */
  agent: z.string().optional(),
  person: z.string().optional(),
  /** The phase at the message. */
  phase: z.string().optional(),
  /** Messages from `after` on and before `before`. */
  after: time.optional(),
  before: time.optional(),
  limit: z.int().positive().max(MOST_FOUND).optional(),
});

export const searchAnswer = fields({
  /** Best first. */
  hits: list(
    fields({
      conversation: z.string(),
      title: z.string().nullable(),
      index,
      at: z.string().describe('ISO 8601'),
      author: fields({ kind: z.enum(['person', 'agent', 'system']), id: z.string(), name: z.string() }),
      phase: z.string().nullable(),
      score: z.number().describe('Higher is better'),
      snippet: z.string(),
      marks: list(z.tuple([z.int(), z.int()])).describe('Start and end of each found word in `snippet`'),
    }),
  ),
  pending: count.describe('Conversations whose newest messages are not in the index yet; search again soon'),
  incomplete: list(z.string()).optional().describe('Daemons that did not answer'),
});
