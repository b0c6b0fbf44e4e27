import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { explain, reductionEntry, reductionFor, shownExplanation } from '../../../src/agents/index.ts';
import { assembleOnce } from '../../../src/agents/requests/requests.ts';
import { createPalette } from '../../../src/cli/render/text.ts';
import { renderDiff, renderView } from '../../../src/cli/render/view.ts';
import { EMPTY_STATE, type Entry, evolve, summaryEntry } from '../../../src/conversation/index.ts';
import { diffViews } from '../../../src/conversation/view/view-diff.ts';
import { Log, sourcesOf } from '../agents/support.ts';

/** The worked example of docs/guides/explain.md: the page shows what this prints, to the letter. */

const WINDOW = { contextTokens: 1_200, maxOutputTokens: 100 };

function smallSources() {
  const sources = sourcesOf('pm', 'dev');
  const agents = [...sources.agents].map(
    ([slug, setup]) => [slug, { ...setup, profile: { ...setup.profile, ...WINDOW } }] as const,
  );
  return { ...sources, agents: new Map(agents) };
}

/** Ann asks, two agents answer at length, and then the view no longer fits. */
function story() {
  const sources = smallSources();
  const log = new Log();
  const tell = (agent: string, asked: number, words: string) =>
    log.answer(agent, log.start(agent, asked), words);
  const steps = (count: number) =>
    Array.from(
      { length: count },
      (_, at) => `Step ${at + 1}: rename the photos of one more month, then look.`,
    ).join('\n');
  tell('pm', log.person('We want to rename 4,000 photos by date.'), `The plan.\n${steps(50)}`);
  const first = log.person('Dev, please begin.', ['dev']);
  tell('dev', first, `Done with the first year.\n${steps(2)}`);
  const asked = log.person('Is anything lost?');
  const turnId = log.start('pm', asked);
  const before = [...log.entries];
  const state = before.reduce(evolve, EMPTY_STATE);
  const setup = sources.agents.get('pm');
  if (!setup) throw new Error('no agent');
  const reduction = reductionFor(assembleOnce(sources, setup, before, state, 'photos').reducible);
  if (!reduction) throw new Error('the example needs no reduction');
  const written = reductionEntry(reduction, { content: reduction.write(null), writtenBy: 'extract' });
  const summary = summaryEntry(before.length, turnId, 'pm', written);
  log.entries.push(summary);
  const { requestHash } = viewOf([...log.entries], summary.index).report;
  const answer = log.answer('pm', turnId, 'Nothing: the first year is done, and I looked.');
  const usage = { inputTokens: 371, cachedInputTokens: 0, outputTokens: 12, usd: 0.0001 };
  log.entries[answer] = { ...log.entries[answer], requestHash, usage } as Entry; // as the daemon records it
  return { sources, entries: log.entries, answer, summary };
}

const plain = createPalette(false);

function viewOf(entries: readonly Entry[], at: number) {
  const outcome = explain(entries, { conversation: 'photos', agent: 'pm', at }, { live: smallSources() });
  if (!outcome.ok) throw new Error(outcome.refusal.message);
  return shownExplanation(outcome.explanation, false);
}

const block = (text: string) =>
  text
    .split('\n')
    .map((line) => (line === '' ? '' : `    ${line}`))
    .join('\n');

describe('docs/guides/explain.md', () => {
  const page = readFile(new URL('../../../docs/guides/explain.md', import.meta.url), 'utf8');

  it('docs/guides/explain.md shows the real log of its example', async () => {
    const lines = story().entries.map((entry) => {
      const said = entry.type === 'message' ? `${entry.author.name}: ${entry.content?.split('\n')[0]}` : '';
      const lines = entry.type === 'message' ? (entry.content?.split('\n').length ?? 1) : 1;
      const more = lines > 1 ? ` … (${lines} lines)` : '';
      const { agent, trigger } = entry as { agent?: string; trigger?: number[] };
      const what =
        entry.type === 'turn-started' ? `${agent} begins a turn for ${trigger}` : `${agent}: ${entry.type}`;
      return `${String(entry.index).padStart(2)}  ${said === '' ? what : said + more}`;
    });
    expect(await page).toContain(block(lines.join('\n')));
  });

  it('docs/guides/explain.md shows the whole explanation of the last answer', async () => {
    const { entries, answer } = story();
    expect(await page).toContain(block(renderView(viewOf(entries, answer), plain)));
  });

  it('docs/guides/explain.md shows the difference between two requests', async () => {
    const { entries, answer } = story();
    const views = [viewOf(entries, 2), viewOf(entries, answer)] as const;
    const text = renderDiff(diffViews(...views), views, ['pm at 2', `pm at ${answer}`], plain);
    expect(await page).toContain(block(text));
  });
});
