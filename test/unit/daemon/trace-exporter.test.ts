import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { TraceExporter } from '../../../src/daemon/observe/trace-exporter.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import type { Sent } from '../../../src/traces/otlp.ts';

const NOW = Date.parse('2026-11-01T12:00:00Z');
const DOWN: Sent = { kind: 'failed', isRefused: false, reason: 'down' };

const postAt = (index: number, time: number): Entry =>
  ({
    ...{ type: 'message', role: 'user', content: 'hi', index, id: `p${index}` },
    ...{ createdAt: new Date(time).toISOString(), author: { kind: 'person', id: 'alice', name: 'alice' } },
  }) as Entry;

function createExporter(answers: Sent[] = [], logs: Record<string, Entry[]> = {}, faults: Error[] = []) {
  const sent: string[][] = [];
  const lines: string[] = [];
  const write = (_: object, message: string) => void lines.push(message);
  const exporter = new TraceExporter({
    sender: {
      async send(spans) {
        sent.push(
          spans.map(
            ({ attributes }) => `${attributes['gen_ai.conversation.id']} ${attributes['parley.entry.index']}`,
          ),
        );
        return answers.shift() ?? { kind: 'sent' };
      },
      close: async () => undefined,
    },
    content: false,
    log: { info: write, warn: write, error: write },
    read: async (id) => {
      const fault = faults.shift();
      if (fault) throw fault;
      return logs[id] ?? null;
    },
  });
  const append = (id: string, log: Entry[], from: number) =>
    exporter.appended(id, log.slice(from), () => log);
  return { exporter, sent, lines, append };
}

describe('the exporter of traces', () => {
  it('sends the spans of what was appended', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { exporter, sent, append } = createExporter();
    const log = [postAt(0, NOW), postAt(1, NOW)];
    append('demo', log, 1);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(exporter.counts.sent).toBe(1);
    expect(sent).toEqual([['demo 1']]);
    await exporter.stop();
  });

  it('a collector that is down costs no span of a running daemon, and one warning (EXPORTER-1)', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { exporter, sent, lines, append } = createExporter([DOWN, DOWN]);
    append('demo', [postAt(0, NOW)], 0);
    await vi.advanceTimersByTimeAsync(2_000);
    expect([sent.length, exporter.counts]).toEqual([1, { sent: 0, dropped: 0, waiting: 1 }]);
    append('other', [postAt(0, NOW)], 0);
    exporter.readNoMore();
    await exporter.stop();
    expect(sent).toHaveLength(2);
    expect(exporter.counts.waiting).toBe(2);
    expect(lines).toEqual(['traces cannot be sent: trying again; the conversations are not affected']);
  });

  it('a collector that is back gets what it missed, from the log', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const log = [postAt(0, NOW), postAt(1, NOW)];
    const { exporter, sent, lines, append } = createExporter([DOWN], { demo: log });
    append('demo', log, 1);
    await vi.advanceTimersByTimeAsync(2_000);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(sent).toEqual([['demo 1'], ['demo 1']]);
    expect(exporter.counts).toEqual({ sent: 1, dropped: 0, waiting: 0 });
    expect(lines.at(-1)).toBe('traces are sent again; none is lost');
    await exporter.stop();
  });

  it.each([
    ['later, if it could not be read for a moment', new Error('no connection'), { sent: 1, waiting: 0 }],
    ['never, if it is damaged', new ParleyError('LOG_CORRUPT', 'line 3 is damaged'), { sent: 0, waiting: 0 }],
  ])('the spans of a log that is read for them are sent %s (EXPORTER-3)', async (_, fault, counts) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const log = [postAt(0, NOW)];
    const { exporter, append } = createExporter([DOWN], { demo: log }, [fault]);
    append('demo', log, 0);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(exporter.counts).toMatchObject(counts);
    await exporter.stop();
  });

  it('a claim sends again what ended in the minute before it (EXPORTER-2)', async () => {
    const { exporter, sent, append } = createExporter();
    const claim = { ...postAt(2, NOW), type: 'claim', daemon: 'd', epoch: 2 } as Entry;
    append('demo', [postAt(0, NOW - 120_000), postAt(1, NOW - 5_000), claim], 2);
    await exporter.stop();
    expect(sent).toEqual([['demo 1']]);
  });

  it('spans that the collector refuses are dropped, counted, and reported once (EXPORTER-3)', async () => {
    const refused: Sent = { kind: 'failed', isRefused: true, reason: 'Bad Request' };
    const { exporter, lines, append } = createExporter([refused, refused]);
    append(
      'demo',
      Array.from({ length: 600 }, (_, index) => postAt(index, NOW)),
      0,
    );
    await exporter.stop();
    expect(exporter.counts).toEqual({ sent: 0, dropped: 600, waiting: 0 });
    expect(lines).toEqual(['the collector refuses spans: they are dropped']);
  });

  it('a log that cannot be read does not hold back the others', async () => {
    const { exporter, sent, lines, append } = createExporter();
    exporter.appended('bad', [postAt(0, NOW)], () => {
      throw new Error('damaged');
    });
    append('demo', [postAt(0, NOW)], 0);
    await exporter.stop();
    expect(sent).toEqual([['demo 0']]);
    expect(lines).toEqual(['the traces of a log cannot be computed']);
  });
});
