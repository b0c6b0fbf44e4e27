import { randomUUID } from 'node:crypto';
import {
  type ApiAnswer,
  type ApiHandler,
  type ApiRequest,
  type Bus,
  type DeadLetter,
  type DeadLetters,
  type Delivery,
  decodeDeadLetter,
  type Eraser,
  encodeDeadLetter,
} from '../bus/index.ts';
import { ParleyError, type Timers } from '../kernel/index.ts';

/** What a team in memory has in place of real time and of a nats-server. */

interface Timer {
  readonly due: number;
  readonly run: () => void;
}

/**
 * A clock that only a test moves.
 *
 * SIMULATED-TIME-1  A sleep, such as the wait before another attempt, moves the clock itself: no test waits for it.
 * SIMULATED-TIME-2  Timers run in the order of their times, each at its time.
 */
export class SimulatedTime {
  readonly #start: number;
  #passed = 0;
  readonly #timers = new Set<Timer>();

  constructor(start: number) {
    this.#start = start;
  }

  /** The wall clock. */
  readonly now = (): number => this.#start + this.#passed;
  readonly elapsed = (): number => this.#passed;

  readonly timers: Timers = {
    after: (ms, run) => {
      const timer = { due: this.#passed + Math.max(0, ms), run };
      this.#timers.add(timer);
      return () => void this.#timers.delete(timer);
    },
    sleep: async (ms, signal) => {
      if (!signal?.aborted) await this.advance(ms, async () => undefined);
    },
  };

  /** `settle`: called before the first timer and after each, until what it began has ended. */
  async advance(ms: number, settle: () => Promise<void>): Promise<void> {
    await settle();
    const end = this.#passed + ms;
    for (let timer = this.#next(end); timer; timer = this.#next(end)) {
      this.#timers.delete(timer);
      this.#passed = Math.max(this.#passed, timer.due);
      timer.run();
      await settle();
    }
    this.#passed = Math.max(this.#passed, end);
  }

  #next(end: number): Timer | undefined {
    const [first] = [...this.#timers].filter(({ due }) => due <= end).sort((a, b) => a.due - b.due);
    return first;
  }
}

/**
 * The bus in memory: posts, dead letters and requests of one process, without a server.
 *
 * It reads no stream: its user gives each delivery to the daemon (`delivery`). No agent in another process can connect.
 */

interface MemoryBusOptions {
  /** The wall clock. */
  readonly now: () => number;
  readonly maxPayload?: number;
  /** Gets what followers of a conversation get. */
  readonly onEntries?: Bus['publishEntries'];
  /** Identifies the ingress stream; default: a new one. */
  readonly stream?: string;
}

export interface MemoryBus {
  readonly bus: Bus;
  /** Calls the request API. */
  request(request: ApiRequest): Promise<ApiAnswer>;
  /** The next message of the ingress stream, which is not delivered. */
  delivery(publisher: string, conversation: string, body: Uint8Array, more?: Partial<Delivery>): Delivery;
  readonly letters: Map<number, DeadLetter>;
}

/** As the server's default. */
const MAX_PAYLOAD = 1_048_576;

/** The stream keeps no post after its delivery. */
const ERASER: Eraser = {
  leftOf: async () => [],
  erase: async (deleted, isSettled) => ({ posts: 0, deadLetters: 0, isWhole: isSettled(deleted) }),
  expireDeadLetters: async () => 0,
};

export function createMemoryBus({
  now,
  maxPayload = MAX_PAYLOAD,
  onEntries = () => undefined,
  stream = randomUUID(),
}: MemoryBusOptions): MemoryBus {
  let handler: ApiHandler | null = null;
  let sequence = 0;
  let lastLetter = 0;
  const newest = new Map<string, number>();
  const letters = new Map<number, DeadLetter>();

  const delivery: MemoryBus['delivery'] = (publisher, conversation, body, more = {}) => {
    sequence += 1;
    newest.set(conversation, sequence);
    const position = { stream, sequence };
    const fallbackId = `in-${sequence}`;
    return { position, takenAt: now(), fallbackId, publisher, conversation, body, messageId: null, ...more };
  };

  const bus: Bus = {
    url: 'memory:',
    maxPayload,
    isConnected: true,
    ingressStart: async () => ({ after: { stream, sequence: 0 }, old: null }),
    startIngress: async (options) => options.onBegin?.(),
    stopIngress: async () => undefined,
    ingressLag: async () => null,
    unsettledUntil: async () => null,
    lastPost: async (conversation) => ({ stream, sequence: newest.get(conversation) ?? 0 }),
    ingressEnd: async () => ({ stream, sequence }),
    share: () => unsupported('other daemons'),
    publishEntries: onEntries,
    publishLive: () => undefined,
    publishAudit: () => undefined,
    async publishDead({ publisher, conversation, position, body, fallbackId }, refused, id, mayStore) {
      await mayStore?.();
      const at = ++lastLetter;
      const place = { sequence: at, at: new Date(now()).toISOString(), publisher, conversation };
      const origin = { id: id || fallbackId, ingress: position };
      letters.set(at, decodeDeadLetter(place, encodeDeadLetter(refused, body, origin, maxPayload)));
      return at;
    },
    publishRefusedRuns: async () => undefined,
    deadLetters: deadLettersOf(letters, stream),
    eraser: ERASER,
    register: async () => undefined,
    async serve(_, requestHandler) {
      handler = requestHandler;
    },
    openTurn: () => unsupported('agents in other processes'),
    isAgentConnected: async () => true,
    close: async () => undefined,
  };
  const request = (asked: ApiRequest) =>
    handler
      ? handler(asked)
      : Promise.reject(new ParleyError('NOT_READY', 'the daemon is starting or stopping'));
  return { bus, request, delivery, letters };
}

function deadLettersOf(letters: Map<number, DeadLetter>, ingressStream: string): DeadLetters {
  return {
    ingressStream,
    async page({ before = Number.POSITIVE_INFINITY, limit, code }) {
      const older = [...letters.values()].reverse().filter(({ sequence }) => sequence < before);
      const found = older.filter((letter) => code === undefined || letter.code === code);
      const page = found.slice(0, limit);
      return { letters: page, next: found.length > limit ? (page.at(-1)?.sequence ?? null) : null };
    },
    count: async () => letters.size,
    get: async (at) => letters.get(at) ?? null,
    async remove(at) {
      letters.delete(at);
    },
  };
}

function unsupported(what: string): never {
  throw new ParleyError('INTERNAL', `the bus in memory has no ${what}`);
}
