/** Server-sent events, read from a stream of text that may be cut anywhere. */
export interface ServerEvent {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

export interface EventParser {
  /** Calls back for each event that is whole by now. */
  push(text: string): void;
}

export function createEventParser(onEvent: (event: ServerEvent) => void): EventParser {
  let rest = '';
  return {
    push(text) {
      const blocks = (rest + text).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = eventOf(block);
        if (event) onEvent(event);
      }
    },
  };
}

/** Null: a comment, or a field that says nothing by itself (`retry`). */
function eventOf(block: string): ServerEvent | null {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ''));
  }
  const data = fields.get('data');
  if (data === undefined) return null;
  return { id: fields.get('id') ?? null, event: fields.get('event') ?? 'message', data };
}
