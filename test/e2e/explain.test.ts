import { describe, expect, it } from 'vitest';
import { ask, entriesOf } from '../support/log.ts';
import { modelAt, sharedProject } from '../support/project.ts';

/** A conversation that exceeds its model's window, explained at a terminal with its cost. */
describe('explaining a view that was reduced', () => {
  const window = { contextTokens: 4_000, maxOutputTokens: 500 };
  const price = { inputPerMillion: 10, cachedInputPerMillion: 1, outputPerMillion: 100 };
  const usage = {
    prompt_tokens: 1_000,
    completion_tokens: 10,
    prompt_tokens_details: { cached_tokens: 400 },
  };
  const project = sharedProject({
    model: () => ({ text: 'word '.repeat(300), usage }),
    settings: (url) => ({ models: { default: { ...modelAt(url), ...window, price } } }),
  });
  const { nats, provider, client } = project;

  it('explain shows the bytes that were sent, what was left out, what differs, and the cost', async () => {
    const posts = 8;
    for (let count = 1; count <= posts; count++)
      await ask(client, 'c', `question ${count} ${'words '.repeat(80)}`);
    const entries = await entriesOf(client, 'c');
    const answers = entries.filter((entry) => entry.type === 'message' && entry.role === 'assistant');
    const summaries = entries.filter((entry) => entry.type === 'summary');
    expect(summaries.length).toBeGreaterThan(0);
    const at = (place: number) => String(answers.at(place)?.index);

    const online = ['--nats', nats.url];
    const explain = ['explain', 'c', '--agent', 'pm', '--at', at(-1)];
    const exact = await project.parley(...explain, '--json', ...online);
    const [{ messages, report }] = exact.json();
    expect(messages).toEqual(provider.requests.at(-1)?.json.messages);
    expect(report).toMatchObject({ status: 'reduced', sent: true, fault: null });
    expect(report.left_out.length).toBeGreaterThan(0);
    const offline = await project.parley(...explain, '--json', '--config', project.config);
    expect(offline.stdout).toBe(exact.stdout);

    const shown = (await project.parley(...explain, ...online)).stdout;
    expect(shown).toMatch(/^not in it {3}entries 0 to \d+: summed up in entry \d+; recall/m);
    expect(shown).toMatch(/^this call {3}1,000 tokens in \(400 cached\), 10 out, \$0\.0074$/m);

    const diff = await project.parley(...explain, '--diff', at(0), '--config', project.config);
    expect(diff.stdout).toMatch(/^= 1 message the same$/m);
    expect(diff.stdout).toMatch(/^- \d+ system · summary/m);
    const data = await project.parley(
      ...explain,
      '--diff-agent',
      'dev',
      '--json',
      '--config',
      project.config,
    );
    expect(data.json()).toMatchObject([{ before: { agent: 'pm' }, after: { agent: 'dev' } }]);

    const { metadata } = await client.request('conversation', { conversation: 'c' });
    expect(metadata.usage.pm).toMatchObject({
      ...{
        calls: posts,
        inputTokens: 1_000 * posts,
        cachedInputTokens: 400 * posts,
        outputTokens: 10 * posts,
      },
      usd: expect.closeTo(0.0074 * posts, 6),
    });
    expect(metadata.summary).toBe((summaries.at(-1) as { content: string }).content);
    expect((await project.parley('show', 'c', '--cost', ...online)).stdout).toMatch(
      /AGENT +CALLS .*\npm +8 +8,000 +3,200 +80 +\$0\.0592\nall/,
    );
  });
});
