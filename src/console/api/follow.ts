import type { Entry } from '../../conversation/index.ts';
import { createEventParser, type ServerEvent } from '../model/event-stream.ts';
import type { Chunk } from '../model/live.ts';
import { headers, type RequestError, refusalOf } from './requests.ts';

/**
 * Follows one conversation with `fetch`, which can send a token (an EventSource cannot).
 *
 * API-FOLLOW-1 After a lost connection it continues after the last delivered entry: none is missing and none is repeated.
 * API-FOLLOW-2 It reconnects with increasing pauses up to a limit, until it is stopped or the conversation is over.
 * API-FOLLOW-3 A connection without data or heartbeat for too long counts as lost.
 */

export type Connection =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'over'; readonly code: string; readonly message: string };

export interface Following {
  readonly conversation: string;
  /** The next index to request. */
  readonly next: () => number;
  readonly onEntry: (entry: Entry) => void;
  readonly onChunk: (chunk: Chunk) => void;
  readonly onConnection: (connection: Connection) => void;
  readonly signal: AbortSignal;
}

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5_000;
/** Three heartbeats of the daemon. */
const SILENCE_MS = 45_000;

export async function follow(following: Following): Promise<void> {
  let wait = FIRST_WAIT_MS;
  while (!following.signal.aborted) {
    const outcome = await readOnce(following);
    if (outcome.kind === 'over') {
      following.onConnection(outcome);
      return;
    }
    if (following.signal.aborted) return;
    following.onConnection({ kind: 'lost' });
    wait = outcome.kind === 'live' ? FIRST_WAIT_MS : Math.min(LONGEST_WAIT_MS, wait * 2); // API-FOLLOW-2
    await pause(wait, following.signal);
  }
}

async function readOnce(following: Following): Promise<Connection> {
  const silence = new AbortController();
  const leave = () => silence.abort();
  following.signal.addEventListener('abort', leave, { once: true });
  let timer = setTimeout(leave, SILENCE_MS);
  let outcome: Connection = { kind: 'lost' };
  try {
    const path = `api/conversations/${encodeURIComponent(following.conversation)}/events?from=${following.next()}`; // API-FOLLOW-1
    const response = await fetch(path, { headers: headers(), signal: silence.signal, cache: 'no-store' });
    if (!response.ok || !response.body) return await refused(response);
    outcome = { kind: 'live' };
    following.onConnection(outcome);
    const parser = createEventParser((event) => {
      outcome = take(event, following) ?? outcome;
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      clearTimeout(timer);
      timer = setTimeout(leave, SILENCE_MS); // API-FOLLOW-3
      parser.push(part.value);
    }
    return outcome;
  } catch {
    return outcome; // the connection was lost: reconnect
  } finally {
    clearTimeout(timer);
    following.signal.removeEventListener('abort', leave);
  }
}

/** `lost` is retryable, `over` is not. */
async function refused(response: Response): Promise<Connection> {
  const error: RequestError = await refusalOf(response);
  if (error.status >= 500 || error.status === 429) return { kind: 'lost' };
  return { kind: 'over', code: error.code, message: error.message };
}

function take({ event, data }: ServerEvent, following: Following): Connection | null {
  if (event === 'entry') following.onEntry(JSON.parse(data) as Entry);
  else if (event === 'live') following.onChunk(JSON.parse(data) as Chunk);
  else if (event === 'end') {
    const { code, message } = JSON.parse(data) as { code: string; message: string };
    return code === 'STOPPING' ? { kind: 'lost' } : { kind: 'over', code, message };
  }
  return null;
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done, { once: true });
  });
}
