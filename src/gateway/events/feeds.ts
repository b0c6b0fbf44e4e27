import type { AnswerOf } from '../../bus/contract.ts';
import { Follower } from '../../bus/follower.ts';
import type { Entry, LiveChunk, Received } from '../../conversation/index.ts';
import { monotonicClock, ParleyError } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { publicErrorOf } from '../problem.ts';
import { sourceOf } from '../progress/arrivals.ts';
import { ask, type Row } from '../progress/ask.ts';

/** What readers of event streams get, as frames: one conversation from an index on, and the list of conversations. */

/** The frames of one conversation or of the list. */
export interface Feed {
  /** The next frames; null: nothing more comes. `too-slow`: frames were lost, and a client can reconnect and read the log. */
  take(): Promise<readonly Uint8Array[] | 'too-slow' | null>;
  /** Idempotent. */
  close(): void;
}

/** JSON has no line break, so one `data:` line is enough. */
export function frame(event: string, data: object, id?: number): Uint8Array {
  const name = id === undefined ? '' : `id: ${id}\n`;
  return Buffer.from(`${name}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Encodes a value once for all readers: the daemon gives them the same objects. */
function once<Value extends object, More extends unknown[]>(
  encode: (value: Value, ...more: More) => Uint8Array,
): typeof encode {
  const known = new WeakMap<Value, Uint8Array>();
  return (value, ...more) => {
    const encoded = known.get(value) ?? encode(value, ...more);
    known.set(value, encoded);
    return encoded;
  };
}

/** How a stream encodes what a conversation publishes. */
interface Framing {
  entry(entry: Entry, conversation: string): Uint8Array;
  /** Without an id: live text is not stored and cannot be requested again. */
  live(chunk: LiveChunk, agent: string, conversation: string): Uint8Array;
  /** After the first read of the log up to its end. */
  current(length: number, conversation: string): readonly Uint8Array[];
  /** Nothing more comes of the conversation. */
  over(error: { readonly code: string; readonly message: string }, conversation: string): Uint8Array;
}

/** The stream of one conversation. The id is the entry's index, returned by clients in `Last-Event-ID`. */
export const ONE_CONVERSATION: Framing = {
  entry: once((entry) => frame('entry', entry, entry.index)),
  live: once((chunk, agent) => frame('live', { agent, ...chunk })),
  current: () => [],
  over: ({ code, message }) => frame('end', { code, message }),
};

/** The stream of several conversations: each event names its conversation. */
export const SEVERAL_CONVERSATIONS: Framing = {
  entry: once((entry, conversation) => frame('entry', { conversation, entry })),
  live: once((chunk, agent, conversation) => frame('live', { conversation, agent, ...chunk })),
  current: (length, conversation) => [frame('current', { conversation, length })],
  over: ({ code, message }, conversation) => frame('over', { conversation, code, message }),
};

interface FeedOptions {
  readonly daemon: GatewayPort;
  readonly framing: Framing;
  readonly conversation: string;
  /** The first index wanted. */
  readonly from: number;
  /** Called with bugs; the client sees only that there was one. */
  readonly onFault: (error: unknown) => void;
  readonly onEntries?: () => void;
}

/** One conversation from an index on. It begins with the text so far of messages that are being written. */
export function conversationFeed(options: FeedOptions): Feed {
  const { daemon, framing, conversation, from, onFault, onEntries } = options;
  const source = sourceOf(daemon, conversation, (onArrival) => {
    for (const arrival of daemon.liveSoFar(conversation)) onArrival(arrival);
    return daemon.subscribe(conversation, onArrival);
  });
  const follower = new Follower(source, { whenFull: 'end' });
  follower.begin(from, from); // a client that reconnects has seen the entries before
  let next = from;
  let isCurrent = false;
  let isOver = false;

  const framesOf = (received: Received): readonly Uint8Array[] => {
    if (received.kind === 'live') return [framing.live(received.chunk, received.agent, conversation)];
    onEntries?.();
    const frames = received.entries.map((entry) => framing.entry(entry, conversation));
    next = (received.entries.at(-1)?.index ?? next - 1) + 1;
    if (!received.isCurrent || isCurrent) return frames;
    isCurrent = true;
    return [...frames, ...framing.current(next, conversation)];
  };
  return {
    async take() {
      if (isOver) return null;
      try {
        let received = await follower.take();
        if (!received) return null;
        const frames: Uint8Array[] = [];
        for (; received; received = follower.takeQueued()) frames.push(...framesOf(received));
        return frames;
      } catch (error) {
        isOver = true;
        const shown = publicErrorOf(error, onFault);
        return shown.code === 'TOO_SLOW' ? 'too-slow' : [framing.over(shown, conversation)];
      }
    },
    close: () => follower.close(),
  };
}

interface Known {
  /** Null: the conversation was deleted. */
  readonly row: Row | null;
  readonly json: string;
  /** The version of its last change. */
  readonly version: number;
}

interface ListFeedOptions {
  readonly daemon: () => GatewayPort;
  readonly newId: () => string;
  /** Called with bugs. The read is repeated. */
  readonly onFault: (error: unknown) => void;
}

const READ_EVERY_MS = 1_000;
const READ_SOON_MS = 50;
const IDLE_FACTOR = 19;
/** A reader that reconnects within this time gets only changes. */
const KEEP_MS = 60_000;

/**
 * The conversation list for all readers of a daemon.
 *
 * LIST-FEED-1 It reads the list while it has readers, once for all of them, and sends the rows that changed.
 * LIST-FEED-2 Reading takes at most 1/20 of the processor time: a long list is read less often.
 * LIST-FEED-3 A reader names the version that it got last, and gets what changed since; else it gets the whole list.
 */
export class ListFeed {
  readonly #options: ListFeedOptions;
  /** By reader: wakes it. */
  readonly #readers = new Set<() => void>();
  readonly #rows = new Map<string, Known>();
  /** Names the state of `#rows`, whose versions count from 1. */
  #epoch = '';
  #version = 0;
  #reading: Promise<void> | null = null;
  /** Processor time of the last read, in milliseconds; at most its duration. */
  #cost = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The next read is brought forward; further news do not delay it. */
  #isHurried = false;

  constructor(options: ListFeedOptions) {
    this.#options = options;
  }

  /** `since`: the `version` of the last `list` event (LIST-FEED-3). */
  join(since: string): Feed {
    const reader = { position: since, isClosed: false, wake: () => {} };
    const wake = () => reader.wake();
    this.#readers.add(wake);
    const first = this.#read();
    return {
      take: async () => {
        await first;
        for (;;) {
          if (reader.isClosed) return null;
          const now = `${this.#epoch}-${this.#version}`;
          if (this.#version > 0 && reader.position !== now) {
            const frame = this.#since(reader.position);
            reader.position = now;
            return [frame];
          }
          await new Promise<void>((woken) => {
            reader.wake = woken;
          });
        }
      },
      close: () => {
        reader.isClosed = true;
        this.#readers.delete(wake);
        wake();
        if (this.#readers.size === 0) this.#plan();
      },
    };
  }

  /** Something has probably changed. */
  hurry(): void {
    if (this.#readers.size === 0 || this.#reading || this.#isHurried) return;
    this.#isHurried = true;
    this.#plan(READ_SOON_MS);
  }

  #plan(wanted = READ_EVERY_MS): void {
    clearTimeout(this.#timer);
    const isRead = this.#readers.size > 0;
    const next = isRead ? () => void this.#read() : () => this.#forget();
    const wait = isRead ? Math.max(wanted, this.#cost * IDLE_FACTOR) : KEEP_MS;
    this.#timer = setTimeout(next, wait).unref();
  }

  #forget(): void {
    this.#rows.clear();
    this.#version = 0;
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readOnce()
      .catch((error: unknown) => {
        if (!(error instanceof ParleyError)) this.#options.onFault(error); // a refusal passes
      })
      .finally(() => {
        this.#reading = null;
        this.#isHurried = false;
        this.#plan();
      });
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const begun = monotonicClock();
    const before = process.cpuUsage();
    const rows = new Map<string, Row>();
    let isWhole = true;
    for (let after: string | null = ''; after !== null; ) {
      const page: AnswerOf<'conversations'> = await ask(
        this.#options.daemon(),
        'conversations',
        after === '' ? {} : { after },
      );
      for (const row of page.conversations) rows.set(row.id, row);
      isWhole &&= page.incomplete === undefined;
      after = page.next;
    }
    if (this.#update(rows, isWhole)) for (const wake of this.#readers) wake();
    const { user, system } = process.cpuUsage(before);
    this.#cost = Math.min((user + system) / 1_000, monotonicClock() - begun);
  }

  /** Whether anything changed. */
  #update(rows: ReadonlyMap<string, Row>, isWhole: boolean): boolean {
    const isFirst = this.#version === 0;
    if (isFirst) this.#epoch = this.#options.newId();
    const version = this.#version + 1;
    let hasChanged = isFirst;
    const set = (id: string, row: Row | null) => {
      const before = this.#rows.get(id);
      if (before !== undefined && before.row === row) return; // rows at rest are the same objects
      const json = row === null ? '' : JSON.stringify(row);
      if ((before?.json ?? '') === json) return;
      this.#rows.set(id, { row, json, version });
      hasChanged = true;
    };
    for (const [id, row] of rows) set(id, row);
    for (const id of isWhole ? this.#rows.keys() : []) if (!rows.has(id)) set(id, null);
    if (hasChanged) this.#version = version;
    return hasChanged;
  }

  #since(position: string): Uint8Array {
    const [epoch, version = ''] = position.split('-');
    const known = epoch === this.#epoch ? Number(version) : 0;
    const changed = [...this.#rows].filter(([, one]) => one.version > known);
    return frame('list', {
      version: `${this.#epoch}-${this.#version}`,
      whole: known === 0,
      conversations: changed.flatMap(([, { row }]) => row ?? []),
      deleted: known === 0 ? [] : changed.flatMap(([id, { row }]) => (row ? [] : [id])),
    });
  }
}
