import type { FollowEvent } from '../src/client/index.ts';
import { anthropicApi } from '../test/support/anthropic-provider.ts';
import type { MessagesBody } from '../test/support/messages-rules.ts';
import { startNatsServer } from '../test/support/nats-server.ts';
import { openProject } from '../test/support/project.ts';
import { report, rounded } from './support/report.ts';

/**
 * What prompt caching saves: turns of a team of three with tools, on a stand-in for Anthropic's API that caches by its documented
 * rules and reports what it read. No time passes between turns, so nothing expires.
 *
 *     npx tsx bench/cache.ts [turns] [contextTokens]
 */

const [turnCount = '200', window = '60000'] = process.argv.slice(2);
const turns = Number(turnCount);

const AGENTS = ['pm', 'dev', 'qa'];
/** USD per million tokens, of Claude Sonnet 4.5: input, read from the cache, written into it, output. */
const PRICE = { input: 3, read: 0.3, write: 3.75, output: 15 };

const WORDS = 'the plan stands as we wrote it down and the next step is to read both files again '.split(' ');
const wordsFrom = (seed: number, count: number) =>
  Array.from({ length: count }, (_, at) => WORDS[(seed * 7 + at * 5) % WORDS.length]).join(' ');
const read = (name: string) =>
  ({ type: 'tool_use', name: 'fs_read', input: { path: `@project/${name}.txt` } }) as const;

/** Every other turn reads two files, and half of these read one more. */
function answerTo({ messages }: MessagesBody, count: number) {
  const last = messages.at(-1)?.content ?? [];
  const results = last.filter(({ type }) => type === 'tool_result').length;
  const thinking = { type: 'thinking', thinking: wordsFrom(count, 40) } as const;
  if (results === 0 && count % 2 === 0) return { blocks: [thinking, read('a'), read('b')] };
  if (results === 2 && count % 4 === 1) return { blocks: [thinking, read('c')] };
  return { blocks: [thinking, { type: 'text', text: `${wordsFrom(count, 120)}.` } as const] };
}

const api = anthropicApi(answerTo, { now: () => 0, window: Number(window) });
const nats = await startNatsServer();
const persona = (name: string) =>
  `---\nname: ${name}\ndescription: works as ${name}\ntools: [fs_read]\n---\nYou are ${name}. ${'Work with care, and say what you have found. '.repeat(120)}`;
const project = await openProject({
  nats: nats.url,
  model: api.answer,
  agents: Object.fromEntries(AGENTS.map((name) => [name, persona(name)])),
  settings: (baseURL) => ({
    models: {
      default: {
        ...{ provider: 'anthropic', baseURL, apiKey: 'sk-ant-x', model: 'claude-sonnet-4-5' },
        ...{ contextTokens: Number(window), maxOutputTokens: 4_000, reasoningTokens: 2_000 },
      },
    },
    tools: { project: 'config/project' },
  }),
  files: Object.fromEntries(
    ['a', 'b', 'c'].map((name) => [`project/${name}.txt`, `line of ${name}\n`.repeat(60)]),
  ),
});

/** Of these requests: the share of input tokens that was read from the cache, and what the input cost against no caching. */
function figuresOf(usages: typeof api.usages) {
  const sum = (value: (usage: (typeof usages)[number]) => number) =>
    usages.reduce((total, usage) => total + value(usage), 0);
  const read = sum((usage) => usage.cache_read_input_tokens);
  const written = sum((usage) => usage.cache_creation_input_tokens);
  const input = read + written + sum((usage) => usage.input_tokens);
  const paid = (input - read - written) * PRICE.input + read * PRICE.read + written * PRICE.write;
  return {
    ...{
      requests: usages.length,
      inputTokens: input,
      usd: rounded(paid / 1e6),
      usdUncached: rounded((input * PRICE.input) / 1e6),
    },
    ...{ share: rounded(read / input), cost: rounded(paid / (input * PRICE.input)) },
  };
}

/** A request whose agent's last reduction is another one than in its request before, or the first of an agent. */
function isAfterReduction(): (usage: { readonly body: MessagesBody }) => boolean {
  const known = new Map<string, string>();
  return ({ body }) => {
    const agent = JSON.stringify(body.system);
    const reduction =
      JSON.stringify(body)
        .match(/=== SUMMARY OF [^=]*===/g)
        ?.join() ?? '';
    const isNew = known.get(agent) !== reduction;
    known.set(agent, reduction);
    return isNew;
  };
}

try {
  await project.up();
  const client = await project.connect();
  let events: AsyncIterator<FollowEvent> | undefined;
  for (let turn = 0; turn < turns; turn++) {
    const to = AGENTS[(turn + Math.floor(turn / 5)) % AGENTS.length] ?? 'pm';
    const content = `${turn}: ${wordsFrom(turn, 30)}`;
    await client.post({ conversation: 'team', publisher: 'alice', to: [to], content });
    events ??= client.follow('team', { from: 0, live: false })[Symbol.asyncIterator]();
    for (;;) {
      const { value, done } = await events.next();
      if (done || (value.kind === 'entry' && value.entry.type === 'turn-ended')) break;
    }
  }
} finally {
  await project.close();
  await nats.stop();
}
if (api.refusals.length > 0) throw new Error(`refused: ${api.refusals[0]}`);
const isNew = isAfterReduction();
const isOfReduction = api.usages.map(isNew);
const between = figuresOf(api.usages.filter((_, at) => !isOfReduction[at]));
const whole = figuresOf(api.usages);
report('cache-read-share', { turns, ...between, ratio: between.share, wanted: '>= 0.9' });
report('cache-read-share-with-reductions', { ...whole, ratio: whole.share });
report('cache-input-cost', { usd: whole.usd, usdUncached: whole.usdUncached, ratio: whole.cost });
