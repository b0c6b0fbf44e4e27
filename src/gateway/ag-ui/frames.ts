import { type AGUIEvent, EventType, PROTOCOL_VERSION } from '@ag-ui/core';
import { EventEncoder } from '@ag-ui/encoder';
import { type Ending, OpenCalls, Roots, unknownMentionsText } from '../../conversation/index.ts';
import type { GatewayPort } from '../port.ts';
import { publicErrorOf } from '../problem.ts';
import { ask, orElse } from '../progress/ask.ts';
import { readTail } from '../progress/log.ts';
import type { Begun } from './begin.ts';
import { RunEvents } from './events.ts';
import { messagesOf } from './history.ts';
import type { RunInput } from './input.ts';

/**
 * Sends one run as frames.
 *
 * AG-UI-RUN-1 It starts with the conversation's status and, if the application has other messages than the log, with the
 *    newest messages of the log, as many as the application can send back.
 * AG-UI-RUN-2 The status is sent again after each change.
 * AG-UI-RUN-3 Unused fields and mentions of no agent are named in an event that applications may show, and in a header of the answer.
 */

/** Half of the limit of a request: the rest is for the JSON encoding and for new messages. */
const MOST_HISTORY = 524_288;

const encoder = new EventEncoder();

export interface RunContext {
  /** Aborted when the daemon stops. */
  readonly closing: AbortSignal;
  /** Called with bugs. */
  readonly onFault: (error: unknown) => void;
}

export async function* runFrames(
  daemon: GatewayPort,
  input: RunInput,
  begun: Begun,
  context: RunContext,
): AsyncGenerator<string> {
  for await (const event of runEvents(daemon, input, begun, context)) yield encoder.encodeSSE(event);
}

async function* runEvents(
  daemon: GatewayPort,
  input: RunInput,
  begun: Begun,
  { closing, onFault }: RunContext,
): AsyncGenerator<AGUIEvent> {
  const { threadId, conversation, runId, parentRunId } = input;
  const unused = [...input.unused, ...begun.unused];
  const events = new RunEvents(threadId, runId);
  yield {
    type: EventType.RUN_STARTED,
    threadId,
    runId,
    protocolVersion: PROTOCOL_VERSION,
    ...(parentRunId !== undefined && { parentRunId }),
  };
  if (unused.length > 0) yield warning(unused);
  if (begun.unknownMentions.length > 0) yield unknown(begun.unknownMentions);
  try {
    const before = await readTail(daemon, conversation, begun.before, MOST_HISTORY);
    yield* snapshot(input, before);
    yield* stateSnapshot(daemon, conversation);
    if (begun.progress === null) {
      yield* events.of({ kind: 'over', ending: leftOpen(before) });
      return;
    }
    yield* follow(daemon, input, begun, events);
    if (!begun.progress.isOver) {
      const why = closing.aborted ? 'the daemon stops' : 'the reading was ended';
      yield* events.error('STOPPING', `${why}; the log will have the answer`);
    }
  } catch (error) {
    const { code, message } = publicErrorOf(error, onFault);
    yield* events.error(code, message);
  } finally {
    begun.arrivals.close();
  }
}

function warning(unused: readonly string[]): AGUIEvent {
  const message = `not used here: ${unused.join(', ')} (agents have their own tools and instructions)`;
  return { type: EventType.CUSTOM, name: 'parley.unused', value: { fields: [...unused], message } };
}

function unknown(mentions: readonly string[]): AGUIEvent {
  const value = { mentions: [...mentions], message: unknownMentionsText(mentions) };
  return { type: EventType.CUSTOM, name: 'parley.unknownMentions', value };
}

async function* follow(
  daemon: GatewayPort,
  { conversation }: RunInput,
  { arrivals, progress, from }: Begun,
  events: RunEvents,
): AsyncGenerator<AGUIEvent> {
  if (progress === null) return;
  for await (const received of arrivals.from(from)) {
    let hasChanged = false;
    for (const step of progress.accept(received)) {
      if (step.kind === 'over' && hasChanged) yield* stateSnapshot(daemon, conversation);
      if (step.kind === 'over') hasChanged = false;
      hasChanged ||= step.kind === 'status';
      yield* events.of(step);
    }
    if (hasChanged) yield* stateSnapshot(daemon, conversation);
    if (progress.isOver) return;
  }
}

function* snapshot(
  { known, posts }: RunInput,
  before: Parameters<typeof messagesOf>[0],
): Generator<AGUIEvent> {
  const logged = messagesOf(before);
  const has = new Set(logged.map(({ id }) => id));
  const posted = posts.filter(({ id }) => !has.has(id));
  const messages = [...logged, ...posted.map((post) => ({ ...post, role: 'user' as const }))];
  const isSame = messages.length === known.length && messages.every(({ id }, place) => id === known[place]);
  if (!isSame) yield { type: EventType.MESSAGES_SNAPSHOT, messages };
}

async function* stateSnapshot(daemon: GatewayPort, conversation: string): AsyncGenerator<AGUIEvent> {
  const found = await orElse(ask(daemon, 'conversation', { conversation }), null);
  if (!found) return; // it does not exist yet
  const { phase, mode, activeAgent, agents } = found;
  yield { type: EventType.STATE_SNAPSHOT, snapshot: { phase, mode, activeAgent, agents } };
}

function leftOpen(entries: Parameters<typeof messagesOf>[0]): Ending {
  const calls = new OpenCalls();
  const roots = new Roots();
  for (const entry of entries) {
    calls.observe(entry);
    roots.observe(entry);
  }
  const open = calls.of(() => true);
  return { kind: 'waits', open: open.map((call) => ({ ...call, root: roots.of(call.turnId)[0] ?? null })) };
}
