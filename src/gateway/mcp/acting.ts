import { z } from 'zod';
import { CONTRACT } from '../../bus/contract.ts';
import { agentNamed, type OwnPublisher, unknownMentionsText } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { actingAs } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';
import { ask, orElse, stoppedOf } from '../progress/ask.ts';
import { readUntilQuiet } from './log.ts';
import { pageOf } from './page.ts';
import { conversation, waitSeconds } from './reading.ts';
import { type Tool, tool } from './tool.ts';
import { approvalsOf, approvalText } from './waiting.ts';

/** The tools that post, steer and answer. */

/** The publisher of a caller without a name. */
const ANONYMOUS: OwnPublisher = 'mcp';

const post = tool({
  name: 'post',
  role: 'post',
  description:
    'Says something in a conversation, which begins with it if there is none of that id. Answers once the message is durable; with `waitSeconds`, with what the agents did about it. The same `id` again posts nothing and waits again.',
  input: z.strictObject({
    conversation: conversation.optional().describe('Its id; made if there is none'),
    content: z.string().min(1).describe('The message. `@slug` addresses an agent'),
    to: z
      .array(z.string())
      .optional()
      .describe('Agents, by slug or name; by default the conversation decides who answers'),
    name: z.string().optional().describe('Who says it, where the token does not say so'),
    id: z.string().optional().describe('Makes it safe to try again'),
    replyTo: z.string().optional().describe('The id of the message that this one answers'),
    delivery: CONTRACT.post.request.shape.delivery,
    sessionId: CONTRACT.post.request.shape.sessionId.describe(
      'The session of the agents that it wakes, if the publisher may set it',
    ),
    waitSeconds,
  }),
  isReading: false,
  async call({ waitSeconds: seconds, name, ...given }, { daemon, identity, newId, patiently }) {
    const message = {
      ...given,
      conversation: given.conversation ?? newId(),
      ...(given.to && { to: await slugsOf(daemon, given.to, given.conversation) }),
      ...(name !== undefined && { author: { name } }),
    };
    const body = actingAs(identity, message, ANONYMOUS);
    const posted = await ask(daemon, 'post', body, identity);
    const { index, agents } = posted;
    const stopped = await stoppedOf(daemon, posted.conversation, agents);
    const noEffect = (posted.ignored ?? []).map((field) => `${field} has no effect: no right to it`);
    const notes = [unknownMentionsText(posted.unknownMentions), ...noEffect].filter((note) => note !== '');
    const answering = `${agents.join(', ') || 'no agent'} will answer`;
    const where = [`posted as [${index}] in ${posted.conversation}`, answering, ...notes].join('; ');
    if (seconds === 0) return { text: where, data: { ...posted, next: index + 1 } };
    const progress = await patiently(seconds, (enough) =>
      readUntilQuiet(
        daemon,
        { conversation: posted.conversation, from: index, agents, stopped: stopped.agents },
        enough,
      ),
    );
    const { entries, status, paused } = progress;
    const approvals = status === 'done' ? [] : await approvalsOf(daemon, posted.conversation);
    const facts = { conversation: posted.conversation, length: index + entries.length };
    const page = pageOf(facts, entries.slice(1), entries.length, { ...posted, status, approvals });
    const last =
      status === 'running' ? ['(not done yet: read with waitSeconds)'] : approvals.map(approvalText);
    const waiting = paused.length > 0 ? [`(${stopped.refusal.message})`] : [];
    return { ...page, text: [where, page.text, ...last, ...waiting].join('\n') };
  },
});

/** As `delegate` takes them. */
async function slugsOf(
  daemon: GatewayPort,
  named: readonly string[],
  conversation: string | undefined,
): Promise<readonly string[]> {
  const { agents } = await ask(daemon, 'agents', {});
  const known = new Map(agents.map(({ slug, name }) => [slug, { slug, name }]));
  for (const [slug, hired] of await hiredIn(daemon, conversation)) known.set(slug, { slug, name: hired });
  return named.map((text) => {
    const slug = agentNamed(text, known);
    if (slug !== undefined) return slug;
    throw new ParleyError('UNKNOWN_AGENT', `there is no agent ${JSON.stringify(text)}`, {
      hint: `known agents: ${[...known.keys()].join(', ')}`,
    });
  });
}

/** Slugs and names of the agents that were hired in a conversation, if it exists. */
async function hiredIn(daemon: GatewayPort, conversation: string | undefined): Promise<[string, string][]> {
  if (conversation === undefined) return [];
  const found = await orElse(ask(daemon, 'conversation', { conversation }), null);
  return Object.entries(found?.agents ?? {}).flatMap(([slug, { hired }]) =>
    hired && !hired.dismissed ? [[slug, hired.name]] : [],
  );
}

const { shape: word } = CONTRACT.answer.request;

const answer = tool({
  name: 'answer',
  role: 'approve',
  description:
    'Answers an approval: approve or deny; of a call that may have run already: rerun, failed, or result with what it gave.',
  input: z.strictObject({
    approvalId: word.approvalId,
    answer: word.answer,
    reason: word.reason.describe('The reason that the agent receives'),
    result: word.result.describe('With `result`: text or JSON'),
  }),
  isReading: false,
  async call(given, { daemon, identity }) {
    const body = actingAs(identity, given, ANONYMOUS);
    const data = await ask(daemon, 'answer', body, identity);
    return {
      text: `${given.approvalId}: ${given.answer}. Read the conversation with waitSeconds for what follows.`,
      data,
    };
  },
});

const STEERING = {
  stop: 'Aborts what agents are doing in a conversation; nothing starts until it is resumed.',
  resume: 'Continues the work that waits since a stop.',
};

const steering = (['stop', 'resume'] as const).map((name) =>
  tool({
    name,
    role: 'operate',
    description: STEERING[name],
    input: z.strictObject({
      conversation,
      agent: z.string().optional().describe('The slug of one agent; by default all'),
    }),
    isReading: false,
    async call(given, { daemon, identity }) {
      const body = actingAs(identity, given, ANONYMOUS);
      const data = await ask(daemon, name, body, identity);
      return { text: `${name}: ${given.agent ?? 'everybody'} in ${given.conversation}`, data };
    },
  }),
);

export const ACTING: readonly Tool[] = [post, answer, ...steering];
