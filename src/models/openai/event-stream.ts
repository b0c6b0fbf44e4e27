import { createParser } from 'eventsource-parser';

/** Decodes server-sent events from text that may be split anywhere. */
export interface ServerSentEvent {
  /** The field `event`; empty if absent. */
  readonly name: string;
  readonly data: string;
}

export interface EventDecoder {
  push(text: string): ServerSentEvent[];
  /** The last event, if the stream ended without an empty line. */
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
