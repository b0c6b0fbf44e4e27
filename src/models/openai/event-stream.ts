/**
 * Server-sent events, pure: text in, events out, wherever the text was cut.
 *
 * OPENAI-EVENT-STREAM-1 A line ends with LF, CRLF or CR; an event ends with an empty line or with the stream.
 * OPENAI-EVENT-STREAM-2 Comments (keep-alives) and unknown fields are nothing.
 * OPENAI-EVENT-STREAM-3 The events depend on the text alone, never on how it came in pieces.
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

const LINE_END = /\r\n|\n|\r/g;

export function createEventDecoder(): EventDecoder {
  /** The line that has not ended. Only new text is searched: a line of many megabytes comes in many pieces. */
  let line = '';
  /** OPENAI-EVENT-STREAM-3: a CR at the very end waits for what follows, which may be its LF. */
  let heldReturn = '';
  let name = '';
  let data: string[] = [];

  function takeLine(whole: string, events: ServerSentEvent[]): void {
    if (whole === '') {
      if (data.length > 0) events.push({ name, data: data.join('\n') });
      name = '';
      data = [];
      return;
    }
    const colon = whole.indexOf(':');
    const field = colon === -1 ? whole : whole.slice(0, colon);
    const raw = colon === -1 ? '' : whole.slice(colon + 1);
    const value = raw.startsWith(' ') ? raw.slice(1) : raw;
    if (field === 'data') data.push(value);
    else if (field === 'event') name = value; // OPENAI-EVENT-STREAM-2: everything else is nothing
  }

  function takeLines(piece: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    const all = heldReturn + piece;
    heldReturn = all.endsWith('\r') ? '\r' : '';
    const text = heldReturn === '' ? all : all.slice(0, -1);
    let start = 0;
    for (const end of text.matchAll(LINE_END)) {
      takeLine(line + text.slice(start, end.index), events);
      line = '';
      start = end.index + end[0].length;
    }
    line += text.slice(start);
    return events;
  }

  return {
    push: takeLines,
    end: () => takeLines('\n\n'),
  };
}
