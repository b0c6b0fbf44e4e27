import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { shared } from '../support/lifetime.ts';
import { ask, followUntil } from '../support/log.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { modelAt, startProject } from '../support/project.ts';

/** What a real daemon exports, and what the files in `deploy/` expect of it. */

const otlp = shared(() => startOtlpReceiver());
const price = { inputPerMillion: 1, cachedInputPerMillion: 0.5, outputPerMillion: 10 };
const project = shared(() =>
  startProject(
    {
      model: [
        {
          toolCalls: [{ name: 'fs_list', arguments: '{"path":"@project"}' }],
          usage: { prompt_tokens: 20, completion_tokens: 1 },
        },
        {
          text: 'done',
          usage: { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 40 } },
        },
        { text: 'hello' },
        { toolCalls: [{ name: 'ask', arguments: '{"question":"Which one?"}' }] },
      ],
      settings: (url) => ({
        telemetry: { otlp: { endpoint: otlp.url } },
        models: { default: { ...modelAt(url), price }, unpriced: modelAt(url) },
      }),
      agents: {
        pm: '---\nname: Pam\ntools: [fs_list]\n---\nPERSONA OF PAM',
        dev: '---\nname: Dev\nmodel: unpriced\n---\nPERSONA OF DEV',
        lea: '---\nname: Lea\nmodel: unpriced\ntools: [ask]\n---\nPERSONA OF LEA',
      },
      http: true,
    },
    ...['--http-token', 'none'],
  ),
);
let text: string;
beforeAll(async () => {
  const { client } = project;
  await ask(client, 'demo', 'list the files');
  await ask(client, 'demo', '@dev hello');
  await client.post({ conversation: 'asked', publisher: 'alice', content: '@lea decide' });
  await followUntil(client, 'asked', (entries) =>
    entries.some((entry) => entry.type === 'turn-ended' && entry.outcome === 'waiting'),
  );
  await vi.waitFor(() => expect(otlp.spans.length).toBeGreaterThan(3), { timeout: 15_000, interval: 50 });
  text = await (await fetch(`${project.http}/metrics`)).text();
});

const values = (name: string) =>
  text.split('\n').flatMap((line) => {
    const [, found, labels = '', value] = /^([a-z_]+)(\{.*\})? (\S+)$/.exec(line) ?? [];
    return found === name ? [`${labels} ${value}`] : [];
  });

/** The metrics that an expression of PromQL names. */
function namesIn(expressions: readonly string[]): string[] {
  const found = expressions.flatMap((one) => one.match(/\b(?:parley|process)_[a-z_]+\b/g) ?? []);
  return [...new Set(found)].sort();
}

/** The names of all series, those without samples included. */
function exported(): Set<string> {
  const declared = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Set(
    declared.flatMap(([, name = '', type]) =>
      type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => name + suffix) : [name],
    ),
  );
}

describe('the metrics of a daemon', () => {
  it('each metric of the Grafana dashboard is exported', async () => {
    const dashboard = JSON.parse(await readFile('deploy/grafana/parley.json', 'utf8'));
    const panels: { id: number; title: string; targets: { expr: string }[] }[] = dashboard.panels;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const expressions = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    const names = namesIn(expressions);
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !exported().has(name))).toEqual([]);
  });

  it('each metric of the alert rules is exported', async () => {
    const { groups } = parse(await readFile('deploy/prometheus/alerts.yaml', 'utf8'));
    const rules: { alert: string; expr: string; annotations: { summary: string } }[] = groups[0].rules;
    for (const { alert, annotations } of rules)
      expect([alert, typeof annotations.summary]).toEqual([alert, 'string']);
    const names = namesIn(rules.map(({ expr }) => expr));
    expect(names.length).toBeGreaterThan(8);
    expect(names.filter((name) => !exported().has(name))).toEqual([]);
  });

  it('durations are histograms with observations', () => {
    const counted = ['turn', 'model_call', 'tool_call', 'first_token', 'append'].map((name) =>
      values(`parley_${name}_seconds_count`)
        .map((line) => Number(line.split(' ').at(-1)))
        .reduce((a, b) => a + b, 0),
    );
    expect(counted.every((count) => count > 0)).toBe(true);
    expect(values('parley_view_window_ratio_count')).toEqual([
      '{agent="pm"} 2',
      '{agent="dev"} 1',
      '{agent="lea"} 1',
    ]);
    const [last] = values('parley_turn_seconds_bucket').filter((line) => line.includes('le="+Inf"'));
    expect(last).toBe('{agent="pm",outcome="completed",le="+Inf"} 1');
  });

  it('tokens and money are counted by agent and model, and an unknown price is no $0', () => {
    expect(values('parley_tokens_total')).toContain('{agent="pm",model="default",kind="cached_input"} 40');
    expect(values('parley_usd_total')).toEqual(['{agent="pm",model="default"} 0.00021']);
    expect(values('parley_unpriced_calls_total')).toContain('{agent="dev",model="unpriced"} 1');
  });

  it('open approvals and questions, waiting agents and dead letters are reported', () => {
    expect(values('parley_approvals_open')).toEqual([' 0']);
    expect(values('parley_questions_open')).toEqual([' 1']);
    expect(values('parley_agents_waiting')).toEqual([' 1']);
    expect(values('parley_dead_letters')).toEqual([' 0']);
  });
});
