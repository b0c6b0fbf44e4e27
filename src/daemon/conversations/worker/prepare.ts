import {
  type Assembled,
  type Budget,
  type ModelRequest,
  overBudget,
  type PlannedReduction,
  type Prepared,
  type Requests,
  type Reservation,
  reservationFor,
} from '../../../agents/index.ts';
import type { Conversation, Effect } from '../../../conversation/index.ts';
import type { Refusal } from '../../../kernel/index.ts';
import type { Runtime } from '../../runtime.ts';
import type { TurnTimes } from './turn-times.ts';

/** Prepares a model call: a request, a reduction that must come first, or the reason why there is none. */

export type PreparedCall =
  | ReadyCall
  /** The view is too large: it is reduced first, then the call is requested again. */
  | ReducingCall
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly upTo: number }
  | { readonly kind: 'limited'; readonly limit: LimitReached; readonly upTo: number };

export interface ReadyCall {
  readonly kind: 'ready';
  readonly request: ModelRequest;
  readonly upTo: number;
  /** The plain estimate, for the record. */
  readonly estimatedTokens: number;
  /** Which model call of its turn, from 1. */
  readonly number: number;
  /** When the turn's time is over, by the monotonic clock. */
  readonly deadline: number;
  /** The maximum that it may use; reserved while it runs. */
  readonly reservation: Reservation;
  /** The reduction after a provider refused the request as too long; null: that was tried already. */
  tooLong(): ReducingCall | null;
}

export interface ReducingCall {
  readonly kind: 'reduce';
  readonly reduction: PlannedReduction;
  readonly upTo: number;
  /** When the turn's time is over, by the monotonic clock. */
  readonly deadline: number;
  /** Whether the limits of the conversation allow this reservation now. */
  allows(reservation: Reservation): boolean;
  /** Set after a provider refused the request as too long. */
  readonly tokenRatio?: number;
}

export interface LimitReached {
  readonly name: string;
  readonly message: string;
}

export interface PreparedRequest {
  readonly assembled: Assembled;
  readonly call: PreparedCall;
}

export type CallEffect = Extract<Effect, { type: 'call-model' }>;

export interface PrepareContext {
  readonly conversation: Conversation;
  readonly requests: Requests;
  readonly runtime: Runtime;
  readonly times: TurnTimes;
  /** Of the running calls. */
  reserved(): readonly Reservation[];
}

/** Runs before the append, so that the entry of a turn's start can contain the hash of its request. */
export function prepareCalls(
  effects: readonly Effect[],
  context: PrepareContext,
): Map<Effect, PreparedRequest> {
  const prepared = new Map<Effect, PreparedRequest>();
  for (const effect of effects) {
    const found = effect.type === 'call-model' && prepareCall(effect, context);
    if (!found) continue;
    prepared.set(effect, found);
    const asking = context.conversation.entries[effect.key];
    const isNamed = asking?.type === 'turn-started' || asking?.type === 'summary';
    if (isNamed && found.call.kind !== 'reduce') asking.requestHash = found.assembled.request.hash;
  }
  return prepared;
}

/** Null: a later command of the same batch ended the turn. */
function prepareCall(effect: CallEffect, context: PrepareContext): PreparedRequest | null {
  const assembled = context.requests.next(context.conversation, effect.agent, effect.turnId);
  return assembled && { assembled, call: callFor(effect, assembled, context) };
}

function callFor(effect: CallEffect, prepared: Prepared, context: PrepareContext): PreparedCall {
  const { conversation, runtime } = context;
  const upTo = conversation.state.agents[effect.agent]?.turn?.askedAt ?? effect.key;
  if (prepared.reduction) return reducing(effect, prepared.reduction, upTo, context);
  if (prepared.fault) return { kind: 'refused', refusal: prepared.fault, upTo };
  const reservation = reserve(effect.agent, prepared, runtime);
  const limit = overBudget(budgetOf(context), [...context.reserved(), reservation]);
  if (limit) return { kind: 'limited', limit, upTo };
  return ready(effect, prepared, upTo, reservation, context);
}

function budgetOf({ conversation: { state }, runtime }: PrepareContext): Budget {
  return { ...runtime.limits, usedTokens: state.tokens, usedUsd: state.usd };
}

function deadlineOf(effect: CallEffect, { conversation, runtime, times }: PrepareContext): number {
  const turn = conversation.state.agents[effect.agent]?.turn;
  const limitMs = runtime.limits.turnSeconds * 1_000;
  return turn ? times.deadline(turn, limitMs) : runtime.elapsed() + limitMs;
}

function reducing(
  effect: CallEffect,
  reduction: PlannedReduction,
  upTo: number,
  context: PrepareContext,
  tokenRatio?: number,
): ReducingCall {
  return {
    ...{ kind: 'reduce', reduction, upTo, tokenRatio },
    deadline: deadlineOf(effect, context),
    allows: (reservation) => overBudget(budgetOf(context), [...context.reserved(), reservation]) === null,
  };
}

function ready(
  effect: CallEffect,
  { request, estimatedTokens }: Prepared,
  upTo: number,
  reservation: Reservation,
  context: PrepareContext,
): ReadyCall {
  const turn = context.conversation.state.agents[effect.agent]?.turn;
  return {
    kind: 'ready',
    request,
    upTo,
    estimatedTokens,
    number: (turn?.modelCalls ?? 0) + 1,
    reservation,
    deadline: deadlineOf(effect, context),
    tooLong: () => (turn?.wasTooLong ? null : reduceFurther(effect, upTo, estimatedTokens, context)),
  };
}

/** The estimate was too low: the refused request was larger than the window. */
function reduceFurther(
  effect: CallEffect,
  upTo: number,
  estimatedTokens: number,
  context: PrepareContext,
): ReducingCall | null {
  const { conversation, requests, runtime } = context;
  const profile = runtime.agents.get(effect.agent)?.profile;
  if (!profile) return null;
  const tokenRatio = (profile.contextTokens - profile.maxOutputTokens) / Math.max(1, estimatedTokens);
  const again = requests.next(conversation, effect.agent, effect.turnId, tokenRatio);
  return again?.reduction ? reducing(effect, again.reduction, upTo, context, tokenRatio) : null;
}

function reserve(agent: string, { tokens }: Prepared, runtime: Runtime): Reservation {
  const profile = runtime.agents.get(agent)?.profile;
  return reservationFor(tokens, profile?.maxOutputTokens ?? 0, profile?.price ?? null);
}
