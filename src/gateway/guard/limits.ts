import type { Verb } from '../../bus/contract.ts';
import { type Clock, ParleyError, tally } from '../../kernel/index.ts';
import type { Application, Request, RouteContext } from '../context.ts';
import type { GatewayPort } from '../port.ts';
import { OTHER_ROUTES, ROUTES, routerPath } from '../rest/routes.ts';

/**
 * Limits the requests that stay open: event streams, and requests that wait for agents.
 *
 * SEATS-1 At most `readersPerCaller` per caller and `readers` in all are open. One more is refused before any work.
 * SEATS-2 Of the requests that a daemon computes from a log, at most two of one caller run at a time; more wait, and posts and
 *         other callers come between them.
 */

/** SEATS-2 */
const COMPUTED: ReadonlySet<string> = new Set<Verb>(['view', 'entries', 'search', 'turns']);
const MOST_COMPUTED = 2;

export function addSeats(app: Application, { readers, readersPerCaller }: RouteContext): void {
  const taken = new Map<string, number>();
  let all = 0;
  const take = (caller: string) => {
    const own = taken.get(caller) ?? 0;
    if (own >= readersPerCaller) {
      throw new ParleyError('TOO_MANY_READERS', `${own} of your requests are open`, {
        hint: 'close some, or raise http.readersPerCaller',
      });
    }
    if (all >= readers) {
      throw new ParleyError('READERS_FULL', `${all} requests are open, and more are not taken`, {
        hint: 'try again later, or raise http.readers',
      });
    }
    all += 1;
    taken.set(caller, own + 1);
  };
  const leave = (caller: string) => {
    all -= 1;
    tally(taken, caller, -1);
  };
  for (const route of [...ROUTES, ...OTHER_ROUTES].filter(({ stays }) => stays)) {
    app.on(route.method.toUpperCase(), routerPath(route), (context, next) => {
      const caller = callerOf(context);
      take(caller);
      context.env.outgoing.once('close', () => leave(caller));
      return next();
    });
  }
}

/** SEATS-2, BODY-5 */
export class Turns {
  readonly #most: number;
  /** By caller: how many run, and those that wait for one of them to end. */
  readonly #callers = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

  constructor(most = MOST_COMPUTED) {
    this.#most = most;
  }

  /** The daemon for one request, which waits for its turn where that computes. A client that is gone gets none. */
  daemonFor(daemon: GatewayPort, context: Request): GatewayPort {
    const request: GatewayPort['request'] = async (asked) => {
      if (!COMPUTED.has(asked.endpoint)) return daemon.request(asked);
      const release = await this.take(context);
      try {
        if (!context.env.outgoing.destroyed) return await daemon.request(asked);
        throw new ParleyError('REQUEST_INCOMPLETE', 'the client is gone', { hint: 'send the request again' });
      } finally {
        release();
      }
    };
    return Object.assign(Object.create(daemon) as GatewayPort, { request });
  }

  async take(context: Request): Promise<() => void> {
    const caller = callerOf(context);
    const own = this.#callers.get(caller) ?? { running: 0, waiting: [] };
    this.#callers.set(caller, own);
    if (own.running < this.#most) own.running++;
    else await new Promise<void>((resolve) => own.waiting.push(resolve));
    return () => {
      const next = own.waiting.shift();
      if (next)
        setImmediate(next); // what has arrived meanwhile comes first
      else if (--own.running === 0) this.#callers.delete(caller);
    };
  }
}

/** Token owner and address: people behind one proxy are distinguished by their tokens. */
function callerOf(context: Request): string {
  const { role, publisher, name } = context.var.identity;
  return JSON.stringify([context.env.incoming.socket.remoteAddress, role, publisher, name]);
}

const SECONDS_HELD = 10;
const MOST_REMEMBERED = 10_000;

/**
 * Rate limit per caller: a token bucket that holds a few seconds' worth of requests.
 *
 * Callers with a full bucket are forgotten, which bounds the memory.
 */
export function createRateLimit(perSecond: number, elapsed: Clock) {
  const most = perSecond * SECONDS_HELD;
  const buckets = new Map<string, { left: number; at: number }>();
  const filled = ({ left, at }: { left: number; at: number }, time: number) =>
    Math.min(most, left + ((time - at) / 1_000) * perSecond);

  function forgetTheIdle(time: number): void {
    for (const [caller, bucket] of buckets) if (filled(bucket, time) >= most) buckets.delete(caller);
  }

  return {
    /** False: over the limit. */
    take(caller: string): boolean {
      const time = elapsed();
      const bucket = buckets.get(caller);
      if (!bucket && buckets.size >= MOST_REMEMBERED) forgetTheIdle(time);
      const left = bucket ? filled(bucket, time) : most;
      buckets.set(caller, { left: left < 1 ? left : left - 1, at: time });
      return left >= 1;
    },
  };
}
