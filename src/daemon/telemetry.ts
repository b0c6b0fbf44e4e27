import type { Assembled } from '../agents/index.ts';
import type { CallOutcome, CallPlace, Decision, Entry, TurnOutcome, Usage } from '../conversation/index.ts';
import type { Clock } from '../kernel/index.ts';

/**
 * What a daemon does, told to a program that watches.
 *
 * DAEMON-TELEMETRY-1 Every event is made here: those about entries from what was appended, once it is durable.
 * DAEMON-TELEMETRY-2 An event holds names, numbers, hashes and codes; never the text of anybody, nor what a tool was given or gave.
 * DAEMON-TELEMETRY-3 Watching changes nothing: a sink that throws is not heard of, and without one nothing is made.
 */

interface Base {
  /** ISO 8601, UTC, milliseconds. */
  readonly ts: string;
  readonly conversation: string;
}

interface OfTurn extends Base {
  readonly agent: string;
  readonly turnId: string;
}

export type TelemetryEvent =
  | (OfTurn & {
      readonly type: 'turn_started';
      /** Of the entry. */
      readonly index: number;
      /** Indexes of what the turn is to answer. */
      readonly trigger: readonly number[];
      /** It goes on after a crash or a wait. */
      readonly resumed: boolean;
      readonly requestHash?: string;
    })
  | (OfTurn & {
      readonly type: 'turn_ended';
      readonly index: number;
      readonly outcome: TurnOutcome;
      readonly lastProcessedMessageIndex: number;
    })
  | (OfTurn & {
      readonly type: 'tool_result_persisted';
      readonly index: number;
      readonly tool?: string;
      readonly call?: CallPlace;
      /** Of what stands in the log, in UTF-8. */
      readonly bytes: number;
      /** The whole result is a file; the log has a preview. */
      readonly isPreview: boolean;
      readonly durationMs: number;
    })
  | (OfTurn & {
      readonly type: 'view_built';
      readonly requestHash: string;
      readonly messages: number;
      readonly tools: number;
      /** Estimated, of the whole request. */
      readonly tokens: number;
      /** Of the request's body. */
      readonly bytes: number;
      /** Why the guard stopped it. */
      readonly refused?: string;
    })
  | (OfTurn & {
      readonly type: 'model_call';
      /** Its configured name. */
      readonly model: string;
      /** Which one of the turn, from 1; absent where it was to write a summary. */
      readonly call?: number;
      readonly outcome: 'answered' | 'failed' | 'aborted';
      /** Of a failure. */
      readonly code?: string;
      /** Of an answer: why the model ended it. */
      readonly finishReason?: string;
      readonly usage?: Usage;
      readonly requestHash: string;
      /** Retries included. */
      readonly durationMs: number;
    })
  | (Base & {
      readonly type: 'conversation_repair_applied';
      /** Turns that go on. */
      readonly resumed: number;
      /** Results that the tool's runner had seen and the log lacked. */
      readonly repaired: number;
      /** Calls that are run once more. */
      readonly retried: number;
      /** Calls of which nobody knows whether they took effect. */
      readonly unknown: number;
    });

/** Where events go. Called at once and in order: it must not take long. */
export type TelemetrySink = (event: TelemetryEvent) => void;

export interface Telemetry {
  /** What was decided is durable. */
  applied(conversation: string, decision: Decision): void;
  viewBuilt(assembled: Assembled): void;
  modelCalled(conversation: string, model: string, call: number | undefined, outcome: CallOutcome): void;
}

export const NO_TELEMETRY: Telemetry = {
  applied: () => undefined,
  viewBuilt: () => undefined,
  modelCalled: () => undefined,
};

/** Without a sink: nothing is made of anything (DAEMON-TELEMETRY-3). */
export function createTelemetry(sink: TelemetrySink | undefined, now: Clock): Telemetry {
  if (!sink) return NO_TELEMETRY;
  const tell = (event: TelemetryEvent) => {
    try {
      sink(event);
    } catch {
      // DAEMON-TELEMETRY-3: what is durable must not be undone because nobody could be told of it
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
    viewBuilt: (assembled) => tell({ ts: time(), ...viewOf(assembled) }),
    modelCalled: (conversation, model, call, outcome) =>
      tell({ ts: time(), ...callOf(conversation, model, call, outcome) }),
  };
}

/** E1. Null: nobody is told of such an entry. */
function eventOf(conversation: string, entry: Entry): TelemetryEvent | null {
  const { createdAt: ts, index } = entry;
  if (entry.type === 'turn-started') {
    const { agent, turnId, trigger, resumed = false, requestHash } = entry;
    return { ts, type: 'turn_started', conversation, agent, turnId, index, trigger, resumed, requestHash };
  }
  if (entry.type === 'turn-ended') {
    const { agent, turnId, outcome, lastProcessedMessageIndex } = entry;
    const place = { conversation, agent, turnId, index };
    return { ts, type: 'turn_ended', ...place, outcome, lastProcessedMessageIndex };
  }
  if (entry.type !== 'message' || entry.role !== 'tool' || entry.turnId === undefined) return null;
  return {
    ts,
    type: 'tool_result_persisted',
    conversation,
    agent: entry.agentId ?? entry.author.id,
    turnId: entry.turnId,
    index,
    tool: plainName(entry.toolName),
    call: entry.call,
    bytes: Buffer.byteLength(entry.content ?? ''),
    isPreview: entry.fullOutputPath !== undefined,
    durationMs: entry.duration ?? 0,
  };
}

/** Null: nothing was owed but a beginning, as at any start with posts that wait. */
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
    bytes: request.body.length,
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
  model: string,
  call: number | undefined,
  outcome: CallOutcome,
): Untimed<'model_call'> {
  return {
    type: 'model_call',
    conversation,
    agent: outcome.agent,
    turnId: outcome.turnId,
    model,
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

/** DAEMON-TELEMETRY-2: a model may write anything where a tool's name stands, and an agent elsewhere where a code does. */
function plainName(text: string | undefined): string | undefined {
  return text !== undefined && PLAIN_NAME.test(text) ? text : undefined;
}
