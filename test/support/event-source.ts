/** A reader of server-sent events that keeps every event as it was received. */

interface ServerEvent {
  readonly id: string | null;
  readonly event: string;
  readonly data: unknown;
}

export interface EventReader {
  readonly events: ServerEvent[];
  readonly comments: string[];
  /** Resolves when the stream ends, or after `close`. */
  readonly ended: Promise<void>;
  /** Indexes of the entries, in the order of their arrival. */
  indexes(): number[];
  lastId(): string | null;
  close(): void;
}

export async function readEvents(url: string, headers: Record<string, string> = {}): Promise<EventReader> {
  const abort = new AbortController();
  const response = await fetch(url, { headers, signal: abort.signal });
  if (response.status !== 200 || !response.body) {
    throw new Error(`no events: ${response.status} ${await response.text()}`);
  }
  const events: ServerEvent[] = [];
  const comments: string[] = [];
  const ended = consume(response.body, events, comments).catch(() => undefined);
  return {
    events,
    comments,
    ended,
    indexes: () => events.filter(({ event }) => event === 'entry').map(({ id }) => Number(id)),
    lastId: () => events.findLast(({ id }) => id !== null)?.id ?? null,
    close: () => abort.abort(),
  };
}

async function consume(body: ReadableStream<Uint8Array>, events: ServerEvent[], comments: string[]) {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      take(text.slice(0, end), events, comments);
      text = text.slice(end + 2);
    }
  }
}

function take(block: string, events: ServerEvent[], comments: string[]): void {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
    if (name === '') comments.push(value);
    else fields.set(name, value);
  }
  const data = fields.get('data');
  if (data === undefined) return;
  events.push({
    id: fields.get('id') ?? null,
    event: fields.get('event') ?? 'message',
    data: JSON.parse(data),
  });
}
