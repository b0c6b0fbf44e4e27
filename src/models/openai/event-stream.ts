import { createParser } from 'eventsource-parser';

/** Server-sent events: text in, events out, wherever the text was cut. */
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

export function createEventDecoder(): EventDecoder {
  let events: ServerSentEvent[] = [];
  const parser = createParser({ onEvent: ({ event = '', data }) => events.push({ name: event, data }) });
  const push = (text: string): ServerSentEvent[] => {
    parser.feed(text);
    const complete = events;
    events = [];
    return complete;
  };
  return { push, end: () => push('\n\n') };
}
