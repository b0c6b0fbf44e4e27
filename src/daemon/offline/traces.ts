import type { Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { LogTraces, openSender, type Span } from '../../traces/index.ts';
import { composeLogReader } from '../compose/archives.ts';

export interface ExportTracesOptions {
  readonly conversation: string;
  /** The log, or the data directory that has it. */
  readonly log: readonly Entry[] | { readonly dataDirectory: string };
  /** The address of the collector; null: nothing is sent. */
  readonly url: string | null;
  readonly service: string;
  /** Spans contain texts. */
  readonly content: boolean;
}

const BATCH = 512;

/** The spans of a whole log, sent to a collector. A repetition sends the same ids. */
export async function exportTraces(options: ExportTracesOptions): Promise<readonly Span[]> {
  const { conversation, log, url, service, content } = options;
  const entries = 'dataDirectory' in log ? await composeLogReader(log.dataDirectory, conversation) : log;
  const spans = new LogTraces(conversation, entries, content).spans();
  if (url === null) return spans;
  const sender = await openSender({ url, service, headers: {} });
  try {
    for (let at = 0; at < spans.length; at += BATCH) {
      const outcome = await sender.send(spans.slice(at, at + BATCH));
      if (outcome.kind === 'sent') continue;
      throw new ParleyError('TRACES_NOT_SENT', `${url} did not accept the spans: ${outcome.reason}`, {
        hint: 'check the address, and OTEL_EXPORTER_OTLP_HEADERS; the same command again sends the same ids',
      });
    }
  } finally {
    await sender.close();
  }
  return spans;
}
