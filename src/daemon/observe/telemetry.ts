import { type Assembled, bodyLength } from '../../agents/index.ts';
import type {
  CallOutcome,
  CallPlace,
  Decision,
  Entry,
  MessageEntry,
  TurnOutcome,
  Usage,
} from '../../conversation/index.ts';
import type { Clock } from '../../kernel/index.ts';

/**
 * The telemetry events of the daemon.
 *
 * DAEMON-TELEMETRY-1  All events are made here; those about entries only after the entries are durable.
 * DAEMON-TELEMETRY-2  An event contains names, numbers, hashes and codes; never message texts, tool arguments or results.
 * DAEMON-TELEMETRY-3  Telemetry has no side effects: an exception of the sink is ignored, and without a sink no event is
 *                     made.
 */

interface EventBase {
  /** ISO 8601, UTC, milliseconds. */
  readonly ts: string;
  readonly conversation: string;
}

interface TurnEvent extends EventBase {
  readonly agent: string;
  readonly turnId: string;
}

export type TelemetryEvent =
  | (TurnEvent & {
      readonly type: 'turn_started';
      readonly index: number;
      /** Indexes of the entries that the turn answers. */
      readonly trigger: readonly number[];
      /** It continues after a crash or a wait. */
      readonly resumed: boolean;
      readonly requestHash?: string;
    })
  | (TurnEvent & {
      readonly type: 'turn_ended';
      readonly index: number;
      readonly outcome: TurnOutcome;
      readonly lastProcessedMessageIndex: number;
    })
  | (TurnEvent & {
      readonly type: 'tool_result_persisted';
      readonly index: number;
      readonly tool?: string;
      readonly call?: CallPlace;
      /** Bytes of the text in the log, in UTF-8. */
      readonly bytes: number;
      /** The whole result is a file; the log has a preview. */
      readonly isPreview: boolean;
      readonly durationMs: number;
    })
  | (TurnEvent & {
      readonly type: 'view_built';
      readonly requestHash: string;
      readonly messages: number;
      readonly tools: number;
      /** Estimated, of the whole request. */
      readonly tokens: number;
      /** Bytes of the request's body. */
      readonly bytes: number;
      /** The window of the model. */
      readonly contextTokens?: number;
      /** Why the guard stopped it. */
      readonly refused?: string;
    })
  | (TurnEvent & {
      readonly type: 'model_call';
      /** Its configured name; absent: an agent in another process was called. */
      readonly model?: string;
      /** Ordinal within the turn, from 1; absent for a summary. */
      readonly call?: number;
      readonly outcome: 'answered' | 'failed' | 'aborted';
      readonly code?: string;
      /** Why the model ended its answer. */
      readonly finishReason?: string;
      readonly usage?: Usage;
      readonly requestHash: string;
      /** Retries included. */
      readonly durationMs: number;
      /** Until the first part of the answer; absent: there was none. */
      readonly firstTokenMs?: number;
    })
  /** Another model or key is asked (`attempt-failed`). */
  | (TurnEvent & {
      readonly type: 'model_attempt_failed';
      readonly index: number;
      readonly model: string;
      /** From 1; absent: the model has at most one. */
      readonly key?: number;
      readonly code?: string;
      readonly next: string;
      /** 0: it was not called. */
      readonly durationMs: number;
    })
  | (EventBase & {
      readonly type: 'conversation_repair_applied';
      /** Turns that continue. */
      readonly resumed: number;
      /** Results from the audit log that were missing in the log. */
      readonly repaired: number;
      /** Calls that run again. */
      readonly retried: number;
      /** Calls whose effect is unknown. */
      readonly unknown: number;
    });

/** Called synchronously and in order: it must be fast. */
export type TelemetrySink = (event: TelemetryEvent) => void;

export interface Telemetry {
  /** What was decided is durable. */
  applied(conversation: string, decision: Decision): void;
  viewBuilt(assembled: Assembled, contextTokens?: number): void;
  modelCalled(
    conversation: string,
    /** Null: an agent in another process was called. */
    model: string | null,
    call: number | undefined,
    outcome: CallOutcome,
    firstTokenMs?: number,
  ): void;
  /** An append was durable after so many milliseconds. Not an event: there are many. */
  appended(durationMs: number): void;
}

export const NO_TELEMETRY: Telemetry = {
  applied: () => undefined,
  viewBuilt: () => undefined,
  modelCalled: () => undefined,
  appended: () => undefined,
};

/** DAEMON-TELEMETRY-3 */
export function createTelemetry(
  sink: TelemetrySink | undefined,
  now: Clock,
  appended: Telemetry['appended'] = NO_TELEMETRY.appended,
): Telemetry {
  if (!sink) return NO_TELEMETRY;
  const tell = (event: TelemetryEvent) => {
    try {
      sink(event);
    } catch {
      // DAEMON-TELEMETRY-3: a durable append must not fail because of telemetry
    }
  };
  const time = () => new Date(now()).toISOString();
  return {
    applied(conversation, decision) {
      for (const entry of decision.entries) {
        const event = eventOf(conversation, entry);
        if (event) tell(event);
      }
      const repair = repairOf(conversation, decision, time());
      if (repair) tell(repair);
    },
    viewBuilt: (assembled, contextTokens) =>
      tell({ ts: time(), ...viewOf(assembled), ...(contextTokens !== undefined && { contextTokens }) }),
    modelCalled: (conversation, model, call, outcome, firstTokenMs) =>
      tell({
        ts: time(),
        ...callOf(conversation, model, call, outcome),
        ...(firstTokenMs !== undefined && { firstTokenMs }),
      }),
    appended,
  };
}

/** DAEMON-TELEMETRY-1. Null: the entry has no event. */
function eventOf(conversation: string, entry: Entry): TelemetryEvent | null {
  const { createdAt: ts, index } = entry;
  switch (entry.type) {
    case 'turn-started': {
      const { agent, turnId, trigger, resumed = false, requestHash } = entry;
      return { ts, type: 'turn_started', conversation, agent, turnId, index, trigger, resumed, requestHash };
    }
    case 'turn-ended': {
      const { agent, turnId, outcome, lastProcessedMessageIndex } = entry;
      const place = { conversation, agent, turnId, index };
      return { ts, type: 'turn_ended', ...place, outcome, lastProcessedMessageIndex };
    }
    case 'attempt-failed': {
      const { agent, turnId, model, key, duration: durationMs, next } = entry;
      const place = { conversation, agent, turnId, index, model, key, next: next.model };
      return { ts, type: 'model_attempt_failed', ...place, code: plainName(entry.code), durationMs };
    }
    case 'message':
      return resultOf(conversation, entry);
    case 'phase-entered':
    case 'mode-entered':
    case 'handoff':
    case 'delegation-requested':
    case 'delegation-answered':
    case 'message-delivered':
    case 'tool-started':
    case 'approval-requested':
    case 'approval-answered':
    case 'summary':
    case 'run-started':
    case 'node-entered':
    case 'run-ended':
    case 'agent-stopped':
    case 'agent-resumed':
    case 'title-set':
    case 'feedback':
    case 'session-set':
    case 'limit-reached':
    case 'claim':
    case 'forked':
    case 'agent-hired':
    case 'agent-dismissed':
    case 'team-changed':
    case 'note':
      return null;
    default:
      entry satisfies never; // of a newer version
      return null;
  }
}

/** Null: the message is not the result of a call. */
function resultOf(conversation: string, entry: MessageEntry): TelemetryEvent | null {
  if (entry.role !== 'tool' || entry.turnId === undefined) return null;
  return {
    ts: entry.createdAt,
    type: 'tool_result_persisted',
    conversation,
    agent: entry.agentId ?? entry.author.id,
    turnId: entry.turnId,
    index: entry.index,
    tool: plainName(entry.toolName),
    call: entry.call,
    bytes: Buffer.byteLength(entry.content ?? ''),
    isPreview: entry.fullOutputPath !== undefined,
    durationMs: entry.duration ?? 0,
  };
}

/** Null: nothing was repaired; for example, only waiting posts were started. */
function repairOf(conversation: string, { entries, reply }: Decision, ts: string): TelemetryEvent | null {
  if (reply.kind !== 'recovered') return null;
  const { repaired, retried, unknown } = reply.count;
  const resumed = entries.filter((entry) => entry.type === 'turn-started' && entry.resumed === true).length;
  if (resumed + repaired + retried + unknown === 0) return null;
  return { ts, type: 'conversation_repair_applied', conversation, resumed, repaired, retried, unknown };
}

type Untimed<T extends TelemetryEvent['type']> = Omit<Extract<TelemetryEvent, { type: T }>, 'ts'>;

function viewOf({ request, tokens, fault }: Assembled): Untimed<'view_built'> {
  return {
    type: 'view_built',
    conversation: request.conversation,
    agent: request.agent,
    turnId: request.turnId,
    requestHash: request.hash,
    messages: request.messages.length,
    tools: request.tools.length,
    tokens,
    bytes: bodyLength(request.body),
    refused: fault?.code,
  };
}

const OUTCOME = {
  'model-answered': 'answered',
  'model-failed': 'failed',
  'model-aborted': 'aborted',
} as const;

function callOf(
  conversation: string,
  model: string | null,
  call: number | undefined,
  outcome: CallOutcome,
): Untimed<'model_call'> {
  return {
    type: 'model_call',
    conversation,
    agent: outcome.agent,
    turnId: outcome.turnId,
    model: model ?? undefined,
    call,
    outcome: OUTCOME[outcome.type],
    code: outcome.type === 'model-failed' ? plainName(outcome.code) : undefined,
    finishReason: outcome.type === 'model-answered' ? plainName(outcome.answer.finishReason) : undefined,
    usage: outcome.type === 'model-answered' ? outcome.answer.usage : undefined,
    requestHash: outcome.requestHash,
    durationMs: outcome.duration,
  };
}

const PLAIN_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** DAEMON-TELEMETRY-2: a model may invent a tool name, and a remote agent an error code. */
function plainName(text: string | undefined): string | undefined {
  return text !== undefined && PLAIN_NAME.test(text) ? text : undefined;
}
