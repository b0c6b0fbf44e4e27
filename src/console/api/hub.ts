import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Entry } from '../../conversation/index.ts';
import type { Chunk } from '../model/thread/live.ts';

/**
 * One event stream (`GET /api/events`) for several tabs: in a SharedWorker, or in the page where there is none.
 *
 * HUB-1 A tab gets each entry of its conversation once, in order, from its index on, over all reconnections. It gets text
 *    after the entries before it.
 * HUB-2 When a tab follows another conversation, the next stream is open before the last one is closed.
 * HUB-3 It reconnects with increasing pauses up to a limit. A connection without data or heartbeat for too long is lost.
 * HUB-4 A tab that is silent for too long is gone. What it wants is sent again while it lives.
 */

export type Connection =
  | { readonly kind: 'connecting' | 'live' | 'lost' }
  | { readonly kind: 'over'; readonly code: string; readonly message: string };

export interface Wanted {
  readonly list: boolean;
  readonly follow: {
    readonly conversation: string;
    /** Tells one following of a conversation from the next. */
    readonly id: number;
    readonly next: number;
  } | null;
}

/** Rows of `GET /api/conversations`. */
type ListRow = { readonly id: string };

export interface ListChange {
  readonly whole: boolean;
  readonly conversations: readonly ListRow[];
  readonly deleted: readonly string[];
}

/** `id`: of the following; null: of the stream. */
export type Sent =
  | { readonly kind: 'connection'; readonly id: number | null; readonly connection: Connection }
  | { readonly kind: 'entry'; readonly id: number; readonly entry: Entry }
  | { readonly kind: 'chunk'; readonly id: number; readonly chunk: Chunk }
  | { readonly kind: 'current'; readonly id: number; readonly length: number }
  | { readonly kind: 'list'; readonly change: ListChange };

export type Client = (batch: readonly Sent[]) => void;

/** What a tab tells its hub; null: the tab is closed. */
export interface Told {
  readonly address: string;
  /** Streams are not shared with another sign-in. */
  readonly session: string;
  readonly wanted: Wanted | null;
}

interface Member {
  wanted: Wanted;
  next: number;
  isOver: boolean;
  /** The state of the stream that the tab knows. */
  told: Connection | null;
  seenAt: number;
  readonly batch: Sent[];
}

interface Stream {
  /** By conversation: the next index that it delivers. */
  positions: Map<string, number>;
  readonly hasList: boolean;
  readonly abort: AbortController;
  state: Connection;
}

const ARRANGE_MS = 10;
/** What the last stream received already is read before it is closed. */
const OVERLAP_MS = 250;
const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5_000;
/** Three heartbeats of the daemon. */
const SILENCE_MS = 45_000;
export const ALIVE_EVERY_MS = 30_000;
/** Timers of hidden tabs run once a minute (HUB-4). */
const GONE_MS = 180_000;

export class Hub {
  readonly #options: Omit<Told, 'wanted'>;
  readonly #members = new Map<Client, Member>();
  readonly #rows = new Map<string, ListRow>();
  /** The version of the list; null: not known. */
  #version: string | null = null;
  #stream: Stream | null = null;
  #arranging: ReturnType<typeof setTimeout> | undefined;

  constructor(options: Omit<Told, 'wanted'>) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  want(client: Client, wanted: Wanted): void {
    const known = this.#members.get(client);
    const isSame = known !== undefined && known.wanted.follow?.id === wanted.follow?.id;
    const member: Member = {
      wanted,
      next: isSame ? known.next : (wanted.follow?.next ?? 0), // it may have more under way
      isOver: isSame && known.isOver,
      told: isSame ? known.told : null,
      seenAt: Date.now(),
      batch: known?.batch ?? [],
    };
    this.#members.set(client, member);
    if (wanted.list && !known?.wanted.list && this.#version !== null) {
      const change = { whole: true, conversations: [...this.#rows.values()], deleted: [] };
      client([{ kind: 'list', change }]);
    }
    this.#plan();
  }

  leave(client: Client): void {
    if (this.#members.delete(client)) this.#plan();
  }

  #plan(): void {
    this.#arranging ??= setTimeout(() => {
      this.#arranging = undefined;
      this.#arrange();
    }, ARRANGE_MS);
  }

  /** Keeps the stream if it delivers exactly what the tabs want; else opens the next one. */
  #arrange(): void {
    for (const [client, { seenAt }] of this.#members)
      if (Date.now() - seenAt > GONE_MS) this.#members.delete(client); // HUB-4
    const positions = this.#positions();
    const hasList = [...this.#members.values()].some(({ wanted }) => wanted.list);
    const before = this.#stream;
    if (positions.size === 0 && !hasList) {
      before?.abort.abort();
      this.#stream = null;
    } else if (before && before.hasList === hasList && covers(before.positions, positions)) {
      this.#tell(before);
    } else {
      const stream: Stream = {
        positions,
        hasList,
        abort: new AbortController(),
        state: { kind: 'connecting' },
      };
      this.#stream = stream;
      void this.#run(stream, () => before?.abort.abort());
    }
  }

  #positions(): Map<string, number> {
    const positions = new Map<string, number>();
    for (const { wanted, next, isOver } of this.#members.values()) {
      if (!wanted.follow || isOver) continue;
      const { conversation } = wanted.follow;
      positions.set(conversation, Math.min(next, positions.get(conversation) ?? next));
    }
    return positions;
  }

  async #run(stream: Stream, closeLast: () => void): Promise<void> {
    for (let wait = FIRST_WAIT_MS; this.#stream === stream; ) {
      const state = await this.#read(stream, () => setTimeout(closeLast, OVERLAP_MS)); // HUB-2
      closeLast();
      if (this.#stream !== stream) return;
      const wasLive = stream.state.kind === 'live';
      stream.state = state;
      this.#tell(stream);
      if (state.kind === 'over') return;
      wait = wasLive ? FIRST_WAIT_MS : Math.min(LONGEST_WAIT_MS, wait * 2); // HUB-3
      await new Promise((resolve) => setTimeout(resolve, wait));
      stream.positions = this.#positions();
    }
  }

  /** Reads until the connection is lost, or over. */
  async #read(stream: Stream, onOpen: () => void): Promise<Connection> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const response = await fetch(this.#addressOf(stream), {
        signal: AbortSignal.any([silence.signal, stream.abort.signal]),
      });
      if (!response.ok || !response.body) return await refusedBy(response);
      onOpen();
      stream.state = { kind: 'live' };
      if (this.#stream === stream) this.#tell(stream);
      const parser = createParser({ onEvent: (event) => this.#take(event, stream) });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        parser.feed(part.value);
        this.#flush();
      }
    } catch {
      // The connection was lost, or the stream was replaced.
    } finally {
      clearTimeout(timer);
    }
    return { kind: 'lost' };
  }

  #addressOf({ positions, hasList }: Stream): string {
    const query = new URLSearchParams();
    if (positions.size > 0) query.set('follow', [...positions].map((one) => one.join('@')).join());
    if (hasList) query.set('list', this.#version ?? '1');
    return `${this.#options.address}?${query}`;
  }

  #take({ event, data }: EventSourceMessage, stream: Stream): void {
    const sent = JSON.parse(data);
    if (event === 'list') this.#takeList(sent, stream);
    else if (event === 'entry') this.#takeEntry(sent, stream);
    else if (event === 'live') this.#takeChunk(sent, stream);
    else if (event === 'current')
      this.#send(sent.conversation, (_, id) => ({ kind: 'current', id, length: sent.length }));
    else if (event === 'over') {
      const { conversation, code, message } = sent as Record<'conversation' | 'code' | 'message', string>;
      stream.positions.delete(conversation);
      this.#send(conversation, (member, id) => {
        member.isOver = true;
        return { kind: 'connection', id, connection: { kind: 'over', code, message } };
      });
    }
  }

  #takeEntry({ conversation, entry }: { conversation: string; entry: Entry }, { positions }: Stream): void {
    positions.set(conversation, entry.index + 1);
    this.#send(conversation, (member, id) => {
      if (member.next !== entry.index) return null; // HUB-1
      member.next++;
      return { kind: 'entry', id, entry };
    });
  }

  /** A stream begins with the text so far, so the last one is not needed when it is open. */
  #takeChunk({ conversation, ...chunk }: Chunk & { readonly conversation: string }, stream: Stream): void {
    if (stream !== this.#stream && this.#stream?.state.kind === 'live') return;
    const position = stream.positions.get(conversation) ?? 0;
    this.#send(conversation, (member, id) => (member.next < position ? null : { kind: 'chunk', id, chunk })); // HUB-1
  }

  #takeList({ version, ...change }: ListChange & { readonly version: string }, stream: Stream): void {
    if (stream !== this.#stream) return;
    this.#version = version;
    if (change.whole) this.#rows.clear();
    for (const row of change.conversations) this.#rows.set(row.id, row);
    for (const id of change.deleted) this.#rows.delete(id);
    for (const { wanted, batch } of this.#members.values())
      if (wanted.list) batch.push({ kind: 'list', change });
  }

  #send(conversation: string, sent: (member: Member, id: number) => Sent | null): void {
    for (const member of this.#members.values()) {
      const { follow } = member.wanted;
      const one = follow?.conversation === conversation && !member.isOver ? sent(member, follow.id) : null;
      if (one) member.batch.push(one);
    }
  }

  #tell({ state }: Stream): void {
    for (const member of this.#members.values()) {
      if (member.told?.kind === state.kind) continue;
      member.told = state;
      member.batch.push({ kind: 'connection', id: null, connection: state });
    }
    this.#flush();
  }

  #flush(): void {
    for (const [client, { batch }] of this.#members) if (batch.length > 0) client(batch.splice(0));
  }
}

/** The stream has these conversations and no others, each from its index or an earlier one on. */
function covers(stream: ReadonlyMap<string, number>, wanted: ReadonlyMap<string, number>): boolean {
  const has = ([conversation, next]: [string, number]) => (stream.get(conversation) ?? Infinity) <= next;
  return stream.size === wanted.size && [...wanted].every(has);
}

/** `lost` is retryable, `over` is not. */
async function refusedBy(response: Response): Promise<Connection> {
  if (response.status >= 500 || response.status === 429) return { kind: 'lost' };
  const said = (await response.json().catch(() => ({}))) as { code?: string; detail?: string };
  const { code = `HTTP_${response.status}`, detail: message = response.statusText } = said;
  return { kind: 'over', code, message };
}

/** By address and sign-in. */
const hubs = new Map<string, Hub>();

/** Passes what a tab wants to the hub of its sign-in, which may change. */
export function joinHubs(client: Client): (told: Told) => void {
  let joined: Hub | undefined;
  return ({ wanted, ...options }) => {
    const key = JSON.stringify(options);
    const hub = hubs.get(key) ?? new Hub(options);
    hubs.set(key, hub);
    if (joined !== hub) joined?.leave(client);
    joined = hub;
    if (wanted) hub.want(client, wanted);
    else hub.leave(client);
    for (const [name, { isEmpty }] of hubs) if (isEmpty) hubs.delete(name);
  };
}
