import type { Entry } from '../src/conversation/index.ts';

/** An entry of everyday size: some 600 bytes, a few of them not ASCII. */
export function sampleEntry(index: number): Entry {
  return {
    index,
    id: `01JD8Q${String(index).padStart(20, '0')}`,
    createdAt: '2026-11-21T20:39:00.000Z',
    type: 'message',
    role: index % 2 === 0 ? 'user' : 'assistant',
    author: { kind: 'person', id: 'alice', name: 'Alice' },
    content: `Message ${index}: ${'the plan is to read the log once and to parse each line — no more. '.repeat(5)}`,
    to: ['planner'],
    phase: 'plan',
    mode: 'agent',
    ingressSequence: index + 1,
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** `share` is 0 to 1: 0.99 is the 99th percentile. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
}
