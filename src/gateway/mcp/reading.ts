import { z } from 'zod';
import { CONTRACT } from '../../bus/contract.ts';
import { ParleyError } from '../../kernel/index.ts';
import { ask } from '../progress/ask.ts';
import { readUntilQuiet } from './log.ts';
import { pageOf } from './page.ts';
import { indented } from './render.ts';
import { type Asked, type Tool, tool } from './tool.ts';
import { approvalsOf, approvalText } from './waiting.ts';

/** The tools that only read. */

export const conversation = z
  .string()
  .max(1_024)
  .describe('Its id: 1 to 128 letters, digits, _ or -; any other text is mapped to one');
export const waitSeconds = z
  .int()
  .min(0)
  .max(600)
  .default(0)
  .describe(
    'Seconds to wait until no agent works any more or a person is needed; 0: no wait. Many clients time out after 60',
  );

const ENTRIES = 50;
/** Limit of one answer of `explain`, in characters of JSON. */
const MOST_EXPLAINED = 200_000;

const read = tool({
  name: 'read',
  role: 'read',
  description:
    'The entries of a conversation. Continue from `next`. With `waitSeconds`, it first waits until the agents are done.',
  input: z.strictObject({
    conversation,
    from: CONTRACT.entries.request.shape.from.describe(
      'The first index wanted; by default the newest entries are read',
    ),
    limit: z.int().min(1).max(200).default(ENTRIES),
    waitSeconds,
  }),
  isReading: true,
  async call(input, asked) {
    const { length, entries, status } = await found(input, asked);
    const approvals = await approvalsOf(asked.daemon, input.conversation);
    const more = { ...(status && { status }), approvals };
    const page = pageOf({ conversation: input.conversation, length }, entries, input.limit, more);
    return { ...page, text: [page.text, ...approvals.map(approvalText)].join('\n') };
  },
});

/** The text of the tool `read`. */
export async function newestEntries(conversation: string, asked: Asked): Promise<string> {
  return (await read.call(read.input.parse({ conversation }), asked)).text;
}

export const READING: readonly Tool[] = [
  tool({
    name: 'agents',
    role: 'read',
    description: 'The agents that take part in conversations: whom a post can be addressed to.',
    input: z.strictObject({}),
    isReading: true,
    async call(_, { daemon }) {
      const data = await ask(daemon, 'agents', {});
      const lines = data.agents.map(
        ({ slug, name, description, status }) => `${slug} (${name}, ${status}): ${description}`,
      );
      return { text: lines.join('\n'), data };
    },
  }),
  tool({
    name: 'list',
    role: 'read',
    description: 'Conversations by id. Where `next` is not null there are more: pass it as `after`.',
    input: z.strictObject({
      after: z.string().optional().describe('Only those after this id'),
      limit: z.int().min(1).max(200).default(50),
    }),
    isReading: true,
    async call(input, { daemon }) {
      const data = await ask(daemon, 'conversations', input);
      const lines = data.conversations.map(
        ({ id, title, phase, length }) =>
          `${id}: ${JSON.stringify(title ?? '')}, phase ${phase}, ${length} entries`,
      );
      const more = data.next === null ? [] : [`(more: after ${data.next})`];
      return { text: [...lines, ...more].join('\n') || '(no conversations)', data };
    },
  }),
  read,
  tool({
    name: 'explain',
    role: 'read',
    description:
      'The exact request that an agent is sent, with a report of what is in it, what was left out, and why.',
    input: z.strictObject({
      conversation,
      agent: z.string().describe('The slug of an agent'),
      at: CONTRACT.view.request.shape.at.describe('As if this entry were the last one'),
    }),
    isReading: true,
    async call(input, { daemon }) {
      const explained = await ask(daemon, 'view', input);
      const { report, messages } = explained;
      const data = { report, messages };
      if (JSON.stringify(data).length > MOST_EXPLAINED) {
        throw new ParleyError('TOO_LARGE', 'this request is too large for one answer of a tool', {
          hint: 'GET /api/conversations/<id>/view, or `parley explain`, gives all of it',
        });
      }
      const said = messages.map(
        ({ role, content }, place) => `[${place}] ${role}: ${indented(contentText(content))}`,
      );
      return { text: [...said, `[report] ${JSON.stringify(report)}`].join('\n'), data };
    },
  }),
  tool({
    name: 'approvals',
    role: 'read',
    description: 'Calls of tools that wait for a person’s word, in one conversation or in all.',
    input: z.strictObject({ conversation: conversation.optional() }),
    isReading: true,
    async call(input, { daemon }) {
      const approvals = await approvalsOf(daemon, input.conversation);
      return { text: approvals.map(approvalText).join('\n') || '(nothing waits)', data: { approvals } };
    },
  }),
];

interface ReadInput {
  readonly conversation: string;
  readonly from?: number | undefined;
  readonly limit: number;
  readonly waitSeconds: number;
}

/** A wait reads the whole log, because it must know which turns are open; otherwise only the shown part is read. */
async function found({ conversation, from, limit, waitSeconds: seconds }: ReadInput, asked: Asked) {
  const { daemon, patiently } = asked;
  if (seconds === 0) {
    const first = from ?? Math.max(0, (await ask(daemon, 'conversation', { conversation })).length - limit);
    const page = await ask(daemon, 'entries', { conversation, from: first, limit });
    return { ...page, status: null };
  }
  await ask(daemon, 'conversation', { conversation }); // an unknown one is not waited for
  const { entries, status } = await patiently(seconds, (enough) =>
    readUntilQuiet(daemon, { conversation, from: 0 }, enough),
  );
  const first = from ?? Math.max(0, entries.length - limit);
  return { length: entries.length, entries: entries.slice(first), status };
}

function contentText(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}
