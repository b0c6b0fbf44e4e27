import { createParser } from 'eventsource-parser';

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
  const parser = createParser({
    onEvent: ({ id = null, event = 'message', data }) => onEvent({ id, event, data }),
  });
  return { push: (text) => parser.feed(text) };
}
