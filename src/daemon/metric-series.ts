import type { Measurement } from '../gateway/index.ts';

/**
 * Counters and histograms by their labels.
 *
 * METRIC-SERIES-1  A metric has at most `MOST_SERIES` sets of labels: hired agents and tools of MCP servers have any names. Further
 *                  ones are counted together, with `other` in each label.
 */
export type Labels = Readonly<Record<string, string>>;

const MOST_SERIES = 500;
const OTHER = 'other';

/** Upper bounds. */
export const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];
export const SHARES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

interface Series {
  readonly labels: Labels;
  value: number;
  count: number;
  /** Observations up to each bound; empty for a counter. */
  readonly buckets: number[];
}

export type Observed = Readonly<Omit<Series, 'labels'>>;

/** The value below which this share of the observations is: interpolated between bounds, at most the last one. */
export function quantile({ count, buckets }: Observed, bounds: readonly number[], share: number): number {
  const wanted = count * share;
  const place = buckets.findIndex((observed) => observed >= wanted);
  if (place < 0) return bounds.at(-1) ?? 0;
  const [low, below] = place === 0 ? [0, 0] : [bounds[place - 1] ?? 0, buckets[place - 1] ?? 0];
  const inside = (wanted - below) / ((buckets[place] ?? 0) - below || 1);
  return low + inside * ((bounds[place] ?? 0) - low);
}

export class Metric {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[] | null;
  readonly #series = new Map<string, Series>();

  /** `bounds`: of a histogram; absent: a counter. */
  constructor(name: string, help: string, bounds?: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds ?? null;
  }

  /** Counts, or observes a value. */
  add(labels: Labels, value = 1): void {
    const series = this.#of(labels);
    series.value += value;
    series.count += 1;
    for (const [place, bound] of (this.#bounds ?? []).entries())
      if (value <= bound) series.buckets[place] = (series.buckets[place] ?? 0) + 1;
  }

  /** The sum of all series with these labels. */
  sum(labels: Labels): Observed {
    const isWanted = ({ labels: given }: Series) =>
      Object.entries(labels).every(([name, value]) => given[name] === value);
    const found = [...this.#series.values()].filter(isWanted);
    const total = (of: (series: Series) => number) => found.reduce((sum, series) => sum + of(series), 0);
    const buckets = (this.#bounds ?? []).map((_, place) => total((series) => series.buckets[place] ?? 0));
    return { value: total(({ value }) => value), count: total(({ count }) => count), buckets };
  }

  measure(): Measurement {
    const [name, help] = [this.#name, this.#help];
    const all = [...this.#series.values()];
    const bounds = this.#bounds;
    if (bounds === null)
      return { name, help, type: 'counter', samples: all.map(({ labels, value }) => ({ labels, value })) };
    return {
      name,
      help,
      type: 'histogram',
      samples: all.flatMap((series) => histogramSamples(series, bounds)),
    };
  }

  #of(labels: Labels): Series {
    const known = this.#series.get(JSON.stringify(labels));
    if (known) return known;
    const isFull = this.#series.size >= MOST_SERIES; // METRIC-SERIES-1
    const kept = isFull ? Object.fromEntries(Object.keys(labels).map((name) => [name, OTHER])) : labels;
    const key = JSON.stringify(kept);
    const series = this.#series.get(key) ?? {
      ...{ labels: kept, value: 0, count: 0 },
      buckets: (this.#bounds ?? []).map(() => 0),
    };
    this.#series.set(key, series);
    return series;
  }
}

function histogramSamples(
  { labels, value, count, buckets }: Series,
  bounds: readonly number[],
): Measurement['samples'] {
  const bucket = (le: string, observed = 0) => ({
    suffix: '_bucket',
    labels: { ...labels, le },
    value: observed,
  });
  return [
    ...bounds.map((bound, place) => bucket(String(bound), buckets[place])),
    bucket('+Inf', count),
    { suffix: '_sum', labels, value },
    { suffix: '_count', labels, value: count },
  ];
}
