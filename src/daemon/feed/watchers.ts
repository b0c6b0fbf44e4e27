import {
  type Entry,
  type LiveArrival,
  type LiveText,
  liveTextWith,
  saidBy,
} from '../../conversation/index.ts';
import type { Arrival } from '../../gateway/index.ts';
import { remember } from '../../kernel/index.ts';

type Watcher = (arrival: Arrival) => void;

/** Subscribes to what a conversation publishes, where another process may publish it. */
export type Follow = (conversation: string, tell: Watcher) => { readonly ready: Promise<void>; stop(): void };

/** The other daemons, where some share the work. */
export interface Elsewhere {
  readonly follow: Follow;
  /** The text so far of the model calls of this conversation that another daemon runs. */
  textsOf(conversation: string): Promise<readonly LiveArrival[]>;
}

interface Watched {
  readonly watchers: Set<Watcher>;
  /** The running texts of calls of other daemons. */
  readonly texts: RunningTexts;
  readonly ready: Promise<void>;
  stop(): void;
}

/**
 * Passes on what a conversation publishes to watchers in this process, in the order of the bus. A watcher is called
 * synchronously, takes no time and does not throw.
 *
 * WATCHED-TEXT-1 The first watcher of a conversation gets the text so far of calls of another daemon, then what continues it: live
 *    text waits until that daemon has answered, entries do not.
 */
export class Watchers {
  readonly #of = new Map<string, Watched>();
  readonly #elsewhere: Elsewhere | undefined;
  /** The running texts of calls of this daemon. */
  readonly #texts = new RunningTexts();

  constructor(elsewhere?: Elsewhere) {
    this.#elsewhere = elsewhere;
  }

  /** Publishes to watchers. Where daemons share the work, watchers get it from the bus. */
  tell(conversation: string, arrival: Arrival): void {
    this.#texts.take(conversation, arrival);
    if (this.#elsewhere === undefined) this.#spread(conversation, arrival);
  }

  /** The text so far of running model calls, as far as this daemon knows it. Later chunks continue it. */
  textsOf(conversation: string): readonly LiveArrival[] {
    const own = this.#texts.of(conversation);
    return own.length > 0 ? own : (this.#of.get(conversation)?.texts.of(conversation) ?? []);
  }

  /** Returns a function that ends it, and may be called twice. */
  watch(conversation: string, watcher: Watcher): () => void {
    const watched = this.#of.get(conversation) ?? this.#begin(conversation);
    watched.watchers.add(watcher);
    return () => {
      watched.watchers.delete(watcher);
      if (watched.watchers.size > 0 || this.#of.get(conversation) !== watched) return;
      this.#of.delete(conversation);
      watched.stop();
    };
  }

  /** Resolves when watchers of this conversation miss nothing from now on: a read of the log then leaves no gap. */
  async ready(conversation: string): Promise<void> {
    await this.#of.get(conversation)?.ready;
  }

  #begin(conversation: string): Watched {
    const texts = new RunningTexts();
    const { ready, stop } = this.#followElsewhere(conversation, texts);
    const watched = { watchers: new Set<Watcher>(), texts, ready, stop };
    this.#of.set(conversation, watched);
    return watched;
  }

  /** WATCHED-TEXT-1 */
  #followElsewhere(conversation: string, texts: RunningTexts): ReturnType<Follow> {
    const elsewhere = this.#elsewhere;
    if (!elsewhere) return { ready: Promise.resolve(), stop: () => undefined };
    let held: LiveArrival[] | null = [];
    const said = new Set<string | null>();
    const pass = (arrival: Arrival) => {
      texts.take(conversation, arrival);
      this.#spread(conversation, arrival);
    };
    const followed = elsewhere.follow(conversation, (arrival) => {
      if (held && arrival.kind === 'live') return void held.push(arrival);
      if (held && arrival.kind === 'entries') {
        for (const entry of arrival.entries) said.add(saidBy(entry));
        held = held.filter(({ chunk }) => !said.has(chunk.turnId));
      }
      pass(arrival);
    });
    let isOver = false;
    const release = (before: readonly LiveArrival[]) => {
      if (isOver) return;
      const late = held ?? [];
      held = null;
      const isNew = (arrival: LiveArrival, at: number) =>
        !before.some((one) => contains(one, arrival)) &&
        !late.slice(at).some((one) => replaces(one, arrival));
      const unsaid = before.filter(({ chunk }) => !said.has(chunk.turnId));
      for (const arrival of [...unsaid, ...late.filter(isNew)]) pass(arrival);
    };
    const asked = followed.ready.then(() => elsewhere.textsOf(conversation));
    asked.then(release, () => release([])); // the text is best effort: the log has it soon
    const stop = () => {
      isOver = true;
      followed.stop();
    };
    return { ready: followed.ready, stop };
  }

  #spread(conversation: string, arrival: Arrival): void {
    for (const watcher of this.#of.get(conversation)?.watchers ?? []) watcher(arrival);
  }
}

function contains({ chunk: { call, n } }: LiveArrival, { chunk }: LiveArrival): boolean {
  return call === chunk.call && n >= chunk.n;
}

/** Each attempt of a turn is a call of its own; the newest one counts (DRAFT-TEXT-1). */
function replaces(later: LiveArrival, earlier: LiveArrival): boolean {
  return later.chunk.turnId === earlier.chunk.turnId && later.chunk.call !== earlier.chunk.call;
}

/** A turn that another daemon took over is never ended here. */
const MOST_TURNS = 1_000;

/** The live text of running model calls, for those who follow a conversation while an agent writes (DRAFT-TEXT-1). */
class RunningTexts {
  readonly #turns = new Map<string, LiveText & { readonly conversation: string }>();

  take(conversation: string, arrival: Arrival): void {
    if (arrival.kind === 'live') this.#add(conversation, arrival);
    else for (const entry of arrival.entries) this.#end(entry);
  }

  of(conversation: string): readonly LiveArrival[] {
    const here = [...this.#turns.values()].filter((turn) => turn.conversation === conversation);
    return here.flatMap(({ agent, chunks }) =>
      chunks.map((chunk) => ({ kind: 'live', agent, chunk }) as const),
    );
  }

  #add(conversation: string, { agent, chunk }: LiveArrival): void {
    const known = this.#turns.get(chunk.turnId);
    const text = liveTextWith(known, agent, chunk);
    if (text === known) return;
    remember(this.#turns, chunk.turnId, { ...text, conversation }, MOST_TURNS);
  }

  #end(entry: Entry): void {
    const turnId = saidBy(entry);
    if (turnId !== null) this.#turns.delete(turnId);
  }
}
