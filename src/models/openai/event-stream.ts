/**
 * Server-sent events, pure: text in, events out, wherever the text was cut.
 *
 * E1 A line ends with LF, CRLF or CR; an event ends with an empty line or with the stream.
 * E2 Comments (keep-alives) and unknown fields are nothing.
 * E3 The events depend on the text alone, never on how it came in pieces.
 */
export interface ServerSentEvent {
  /** The field `event`, empty if there was none. */
  readonly name: string;
  readonly data: string;
}

export interface EventDecoder {
  push(text: string): ServerSentEvent[];
  /** The last event, if the stream ended without its empty line. */
  end(): ServerSentEvent[];
}

/** E3: a CR at the very end waits for what follows, which may be its LF. */
const LINE_END = /\r\n|\n|\r(?!$)/g;

export function createEventDecoder(): EventDecoder {
  let rest = '';
  let name = '';
  let data: string[] = [];

  function takeLine(line: string, events: ServerSentEvent[]): void {
    if (line === '') {
      if (data.length > 0) events.push({ name, data: data.join('\n') });
      name = '';
      data = [];
      return;
    }
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const raw = colon === -1 ? '' : line.slice(colon + 1);
    const value = raw.startsWith(' ') ? raw.slice(1) : raw;
    if (field === 'data') data.push(value);
    else if (field === 'event') name = value; // E2: everything else is nothing
  }

  function takeLines(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    const buffer = rest + text;
    let start = 0;
    for (const end of buffer.matchAll(LINE_END)) {
      takeLine(buffer.slice(start, end.index), events);
      start = end.index + end[0].length;
    }
    rest = buffer.slice(start);
    return events;
  }

  return {
    push: takeLines,
    end: () => takeLines('\n\n'),
  };
}
