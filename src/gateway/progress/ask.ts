import type { AnswerOf, Verb } from '../../bus/contract.ts';
import type { ApiRequest } from '../../bus/port.ts';
import {
  type Entry,
  type OwnPublisher,
  revertibleStop,
  type Stopped,
  stoppedAmong,
} from '../../conversation/index.ts';
import { asError, hasCode } from '../../kernel/index.ts';
import { actingAs, type Identity } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';

/** The caller's fields of an `ApiRequest`. */
export function callerOf({
  publisher,
  name,
  role,
  traceparent,
}: Identity): Omit<ApiRequest, 'endpoint' | 'body'> {
  return {
    publisher,
    mayOperate: role === 'operate',
    ...(publisher !== null && { name: name ?? null }),
    ...(traceparent !== undefined && { traceparent }),
  };
}

/** One verb of the request API; a refusal is thrown. Without a caller: as the daemon. */
export async function ask<V extends Verb>(
  daemon: GatewayPort,
  verb: V,
  body: object,
  caller?: Identity,
): Promise<AnswerOf<V>> {
  const by = caller ? callerOf(caller) : { publisher: null };
  const answer = await daemon.request({ endpoint: verb, ...by, body });
  if (answer.ok) return answer.body as AnswerOf<V>;
  throw asError(answer.refusal);
}

/** The requests of a caller that name their author. `anonymous`: the publisher of a caller without one. */
export function actingFor(daemon: GatewayPort, caller: Identity, anonymous: OwnPublisher) {
  return <V extends Verb>(verb: V, body: object): Promise<AnswerOf<V>> =>
    ask(daemon, verb, actingAs(caller, { ...body }, anonymous), caller);
}
export type Act = ReturnType<typeof actingFor>;

/** The answer, or this if there is no such thing. */
export async function orElse<T, U>(answer: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await answer;
  } catch (error) {
    if (hasCode(error, 'NOT_FOUND')) return otherwise;
    throw error;
  }
}

/** The result of a post, here or of an earlier one. */
export type Posted = Pick<AnswerOf<'post'>, 'index' | 'agents' | 'duplicate' | 'unknownMentions' | 'ignored'>;

/** Agents of a post that a person has stopped. */
export async function stoppedOf(
  daemon: GatewayPort,
  conversation: string,
  routed: readonly string[],
): Promise<Stopped> {
  const found = routed.length === 0 ? null : await ask(daemon, 'conversation', { conversation });
  return stoppedAmong(conversation, routed, found?.agents ?? {});
}

export type Row = AnswerOf<'conversations'>['conversations'][number];

/** All conversations with a later id, in the order of their ids. */
export async function* conversationRows(daemon: GatewayPort, after?: string): AsyncGenerator<Row, void> {
  for (let next: string | null | undefined = after; next !== null; ) {
    const page: AnswerOf<'conversations'> = await ask(daemon, 'conversations', { after: next, limit: 1_000 });
    yield* page.conversations;
    next = page.next;
  }
}

/** Entries from an index on, up to another or to the end. */
export async function readLog(
  daemon: GatewayPort,
  conversation: string,
  from: number,
  to = Number.POSITIVE_INFINITY,
): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let next = from; next < to; next = from + entries.length) {
    const limit = Math.min(1_000, to - next);
    const page = await ask(daemon, 'entries', { conversation, from: next, limit });
    entries.push(...page.entries);
    if (page.entries.length === 0 || next + page.entries.length >= page.length) break;
  }
  return entries;
}

const STRIDE = 200;
/** Characters at the end of a log that are enough to find what is open there. */
const TAIL = 524_288;

/** The newest entries below an index, in order, of about this many characters. */
export async function readTail(
  daemon: GatewayPort,
  conversation: string,
  to: number,
  characters: number = TAIL,
): Promise<Entry[]> {
  let entries: Entry[] = [];
  for (let from = to, size = 0; from > 0 && size < characters; ) {
    const before = Math.max(0, from - STRIDE);
    const page = await readLog(daemon, conversation, before, from);
    entries = [...page, ...entries];
    size += JSON.stringify(page).length;
    from = before;
  }
  return entries;
}

interface Cancellation {
  readonly conversation: string;
  readonly index: number;
  /** Agents whose turns for the post are open, by the log as it is now; empty: there is nothing to end. */
  readonly busy: () => Promise<readonly string[]>;
  /** Resolves when those turns have ended. */
  readonly ended: () => Promise<void>;
}

/** Those that run, by conversation and agent (CANCEL-2). */
const cancellations = new WeakMap<GatewayPort, Map<string, Promise<void>>>();

/**
 * Ends the turns of a post. `daemon`: not that of the request, which refuses once its client is gone.
 *
 * CANCEL-1 The agents are stopped until `ended` settles, then resumed. If another caller has stopped one of them meanwhile, it stays
 *    stopped: the resume names the stop that it reverts.
 * CANCEL-2 One cancellation at a time stops an agent of a conversation: each of two would take the other's stop for that of a person.
 */
export async function cancelTurns(daemon: GatewayPort, act: Act, cancellation: Cancellation): Promise<void> {
  const { conversation, index, busy } = cancellation;
  const running = cancellations.get(daemon) ?? new Map<string, Promise<void>>();
  cancellations.set(daemon, running);
  for (;;) {
    const { length } = await readLog(daemon, conversation, index);
    const agents = await busy();
    if (agents.length === 0) return;
    const keys = agents.map((agent) => `${conversation} ${agent}`);
    const others = keys.flatMap((key) => running.get(key) ?? []);
    if (others.length > 0) {
      await Promise.allSettled(others);
      continue;
    }
    const mine = stopUntilEnded(daemon, act, cancellation, { agents, from: index + length });
    for (const key of keys) running.set(key, mine);
    return mine.finally(() => {
      for (const key of keys) running.delete(key);
    });
  }
}

/** CANCEL-1. `from`: the log before the stops. */
async function stopUntilEnded(
  daemon: GatewayPort,
  act: Act,
  { conversation, ended }: Cancellation,
  { agents, from }: { readonly agents: readonly string[]; readonly from: number },
): Promise<void> {
  try {
    for (const agent of agents) await act('stop', { conversation, agent });
    await ended();
  } finally {
    const since = await readLog(daemon, conversation, from);
    for (const agent of agents) {
      const stop = revertibleStop(since, agent);
      if (stop !== null) await act('resume', { conversation, agent, stop });
    }
  }
}
