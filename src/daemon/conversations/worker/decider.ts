import {
  type Assembled,
  candidatesFor,
  helping,
  type ModelCandidate,
  type ModelRequest,
  type NextRequest,
  overBudget,
  type PlannedReduction,
  type Requests,
  type Reservation,
  reservationFor,
  schemaFor,
  setupFor,
} from '../../../agents/index.ts';
import type { StreamPosition } from '../../../bus/index.ts';
import {
  type AuditedOutcome,
  accountsOf,
  auditedOutcomes,
  type Command,
  type Conversation,
  type Decision,
  type Effect,
  type Entry,
  type FailedAttempt,
  type FilePart,
  filesOf,
  type Part,
  publisherOf,
  type Reply,
  type Turn,
  usedFor,
} from '../../../conversation/index.ts';
import {
  type Clock,
  hasCode,
  type JsonRecord,
  messageOf,
  ParleyError,
  type Refusal,
  refusalOf,
} from '../../../kernel/index.ts';
import type { ConversationStore } from '../../../persistence/index.ts';
import type { ReachCrashPoint } from '../../observe/crash-points.ts';
import type { Definitions } from '../../team/definitions.ts';
import type { ModelHealth } from '../../team/health.ts';
import type { RunningAgent, Team } from '../../team/team.ts';
import { type RoomContext, requireRoom, storedFile } from '../../tools/entry-content.ts';
import type { ConversationOwner, Ownership } from '../ownership.ts';
import type { Ledger } from './ledger.ts';

export interface Item {
  readonly command: Command;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
  /** The place of the post that it is in the ingress stream. */
  readonly position: StreamPosition | undefined;
}

/** For decisions without a sender. */
export const NO_SENDER: Item = {
  command: { type: 'recover' },
  resolve: () => undefined,
  reject: () => undefined,
  position: undefined,
};
const EMPTY_DECISION: Decision = { entries: [], effects: [], reply: { kind: 'done' } };

/** A bug, not retryable. */
function decisionFailure(cause: unknown): ParleyError {
  if (cause instanceof ParleyError) return cause;
  return new ParleyError('DECISION_FAILED', `the daemon failed to decide on it: ${messageOf(cause)}`, {
    hint: 'this is a bug in Parley: report it with the post and the log of the daemon',
    cause,
  });
}

export function isPost({ command }: Item): boolean {
  return command.type === 'post';
}

/** What decisions need of the daemon. */
export interface DeciderContext extends CallContext {
  readonly store: Pick<ConversationStore, 'toolRecords' | 'blobs'>;
  readonly ownership: Pick<Ownership, 'recordsProve'>;
  readonly definitions: Definitions;
  readonly now: Clock;
  readonly reach: ReachCrashPoint;
}

interface DeciderParts {
  readonly id: string;
  readonly daemon: DeciderContext;
  readonly ledger: Pick<Ledger, 'conversation' | 'state' | 'truncate'>;
  readonly owner: ConversationOwner;
  readonly reserved: PrepareContext['reserved'];
}

export interface Decided {
  readonly item: Item;
  readonly decision: Decision;
}

/** Decides the commands of one append, in memory. The worker appends the entries, or undoes them. */
export class Decider {
  readonly #parts: DeciderParts;
  readonly #times: TurnTimes;
  #requests: Requests;

  constructor(parts: DeciderParts) {
    this.#parts = parts;
    this.#times = new TurnTimes(parts.daemon.elapsed);
    this.#requests = this.#newRequests();
  }

  /** The items with what is stored of the files that they name; null: none names any. */
  withFacts(items: readonly Item[]): Promise<Item[]> | null {
    const { conversation } = this.#parts.ledger;
    return items.some((item) => needsFiles(item, conversation)) ? this.#completed(items) : null;
  }

  /** One whose files are not all stored, or too large together, is refused. */
  async #completed(items: readonly Item[]): Promise<Item[]> {
    const { id, daemon, ledger } = this.#parts;
    const complete: Item[] = [];
    const accepted: FilePart[] = [];
    for (const item of items) {
      if (!needsFiles(item, ledger.conversation)) complete.push(item);
      else {
        try {
          const command = await withStored(item.command, daemon);
          const files = filesIn(command);
          await requireRoom(id, [...accepted, ...files], daemon);
          accepted.push(...files);
          complete.push({ ...item, command });
        } catch (error) {
          if (!hasCode(error, 'MISSING_BLOB', 'BLOB_QUOTA')) throw error;
          item.resolve({ kind: 'refused', refusal: refusalOf(error) });
        }
      }
    }
    return complete;
  }

  /** WORKER-4: the claim is decided first. Null: none is needed. */
  async takeOver(items: readonly Item[], isLeaving: boolean): Promise<Decision | null> {
    const { id, daemon, ledger, owner } = this.#parts;
    const command = await owner.claim({
      state: ledger.state,
      commands: items.map((item) => item.command),
      audited: () => audited(id, daemon),
      isLeaving,
      reach: daemon.reach,
    });
    if (command === null) return null;
    return ledger.conversation.apply(command, daemon.now());
  }

  /** The commands of one append. `before`: the length of the log before `taking`, which is undone if nothing else needs it. */
  decideBatch(items: readonly Item[], taking: Decision | null, before: number): Decided[] {
    const decided = this.#decideEach(items);
    const isAsked = items.some(({ command }) => command.type === 'claim');
    if (taking && (isAsked || decided.some(({ decision }) => decision.entries.length > 0)))
      decided.unshift({ item: NO_SENDER, decision: taking });
    else if (taking) this.undo(before);
    return decided;
  }

  #decideEach(items: readonly Item[]): Decided[] {
    const { daemon, ledger } = this.#parts;
    const { conversation } = ledger;
    return items.flatMap((item) => {
      const length = conversation.entries.length;
      try {
        if (item.command.type === 'claim') return [{ item, decision: EMPTY_DECISION }]; // decided by `takeOver`
        if (isPost(item)) daemon.reach('before-decision');
        return [{ item, decision: conversation.apply(item.command, daemon.now()) }];
      } catch (error) {
        this.undo(length); // it may be applied in part
        item.reject(decisionFailure(error));
        return [];
      }
    });
  }

  /** Names the definition of each new turn, and builds the requests of the decided model calls. */
  async prepare(entries: readonly Entry[], effects: readonly Effect[]): Promise<Map<Effect, PreparedCall>> {
    const { daemon, ledger, reserved } = this.#parts;
    const { conversation } = ledger;
    try {
      daemon.definitions.name(entries, daemon.team.for(conversation.state));
      const context = { conversation, requests: this.#requests, daemon, times: this.#times, reserved };
      return await prepareCalls(effects, context);
    } catch (error) {
      throw decisionFailure(error);
    }
  }

  /** WORKER-2 */
  undo(length: number): void {
    this.#parts.ledger.truncate(length);
    this.#requests = this.#newRequests();
  }

  #newRequests(): Requests {
    const { id, daemon } = this.#parts;
    return daemon.definitions.requestsOf(id, (state) => daemon.team.for(state));
  }
}

/** A post, a message of a history or a caller's result names files by hash. What they are is what is stored of them (PARTS-3). */
function filesIn(command: Command): readonly FilePart[] {
  if (command.type === 'post') return filesOf(command.post);
  if (command.type === 'seed') return command.messages.flatMap(filesOf);
  return command.type === 'answer-calls' ? command.results.flatMap(({ files = [] }) => files) : [];
}

/** A post that the log has already needs no file. */
function needsFiles({ command }: Item, conversation: Conversation): boolean {
  if (filesIn(command).length === 0) return false;
  if (command.type !== 'post') return true;
  return !conversation.hasPost(publisherOf(command.post.author.id), command.post.id);
}

async function withStored(command: Command, daemon: RoomContext): Promise<Command> {
  const stored = (file: FilePart) => storedFile(file, daemon);
  const complete = async <T extends { readonly parts?: readonly Part[] | undefined }>(
    message: T,
  ): Promise<T> => {
    const parts = message.parts?.map((part) => (part.type === 'file' ? stored(part) : part));
    return parts ? { ...message, parts: await Promise.all(parts) } : message;
  };
  if (command.type === 'post') return { ...command, post: await complete(command.post) };
  if (command.type === 'seed')
    return { ...command, messages: await Promise.all(command.messages.map(complete)) };
  if (command.type !== 'answer-calls') return command;
  const results = command.results.map(async ({ files, ...result }) => ({
    ...result,
    ...(files && { files: await Promise.all(files.map(stored)) }),
  }));
  return { ...command, results: await Promise.all(results) };
}

/**
 * The audited outcomes of calls whose result may be missing in the log. A missing record
 * proves nothing where a failed daemon may still write to the audit log. A file that was erased meanwhile is left out: an append
 * that names it would be refused.
 */
export async function audited(
  id: string,
  { store, ownership }: Pick<DeciderContext, 'store' | 'ownership'>,
): Promise<AuditedOutcome[]> {
  const { records, unreadable } = await store.toolRecords.read(id);
  const outcomes = auditedOutcomes(records, ownership.recordsProve && unreadable.length === 0);
  return Promise.all(
    outcomes.map(async ({ files = [], ...outcome }) => {
      const found = await Promise.all(files.map(({ sha256 }) => store.blobs.facts(sha256)));
      return { ...outcome, files: files.filter((_, at) => found[at]) };
    }),
  );
}

/** A model call as it is prepared: a request, a reduction that must come first, or the reason why there is none. */
export type PreparedCall = Plan & { readonly assembled: Assembled };

type Plan =
  | ReadyCall
  /** The view is too large: it is reduced first, then the call is requested again. */
  | ReducingCall
  /** The candidate is not called: the next one is asked. */
  | { readonly kind: 'skipped'; readonly failed: FailedAttempt; readonly upTo: number }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly upTo: number }
  | { readonly kind: 'limited'; readonly limit: LimitReached; readonly upTo: number };

export interface ReadyCall {
  readonly kind: 'ready';
  /** By the definition of the turn (TEAM-2). */
  readonly setup: RunningAgent;
  readonly asked: ModelCandidate;
  /** The candidates after it. */
  readonly others: readonly ModelCandidate[];
  readonly request: ModelRequest;
  /** What the turn's answer has to match; null: any text. */
  readonly schema: JsonRecord | null;
  readonly upTo: number;
  /** The plain estimate, for the record. */
  readonly estimatedTokens: number;
  /** Which model call of its turn, from 1. */
  readonly number: number;
  /** When the turn's time is over, by the monotonic clock. */
  readonly deadline: number;
  /** The maximum that it may use; reserved while it runs. */
  readonly reservation: Reservation;
  /** By the estimate, which may be wrong by half. */
  readonly isNearWindow: boolean;
  /** The reduction after a provider refused the request as too long; null: that was tried already. */
  tooLong(): ReducingCall | null;
  /** The reduction after a provider refused the files of the request; null: it has none. */
  withoutFiles(): ReducingCall | null;
}

export interface ReducingCall {
  readonly kind: 'reduce';
  readonly setup: RunningAgent;
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

/** The maximum that a running call of an agent may use. */
export interface ReservedCall extends Reservation {
  readonly agent: string;
}

export type CallEffect = Extract<Effect, { type: 'call-model' }>;

/** What a model call needs of the daemon. */
interface CallContext {
  readonly team: Team;
  readonly definitions: Pick<Definitions, 'agentOf'>;
  readonly health: ModelHealth;
  /** The monotonic clock: for durations and deadlines. */
  readonly elapsed: Clock;
}

interface PrepareContext {
  readonly conversation: Conversation;
  readonly requests: Requests;
  readonly daemon: CallContext;
  readonly times: TurnTimes;
  /** What the running calls may use. */
  reserved(): readonly ReservedCall[];
}

/** Runs before the append, so that the entry of a turn's start can contain the hash of its request. */
async function prepareCalls(
  effects: readonly Effect[],
  context: PrepareContext,
): Promise<Map<Effect, PreparedCall>> {
  const prepared = new Map<Effect, PreparedCall>();
  const planned: ReservedCall[] = []; // they start together
  for (const effect of effects) {
    const found = effect.type === 'call-model' && (await prepareCall(effect, context, planned));
    if (!found) continue;
    prepared.set(effect, found);
    if (found.kind === 'ready') planned.push({ agent: effect.agent, ...found.reservation });
    const asking = context.conversation.entries[effect.key];
    const isNamed = asking?.type === 'turn-started' || asking?.type === 'summary';
    const { kind } = found;
    if (isNamed && kind !== 'reduce' && kind !== 'skipped') asking.requestHash = found.assembled.request.hash;
  }
  return prepared;
}

/** Null: a later command of the same batch ended the turn. */
async function prepareCall(
  effect: CallEffect,
  context: PrepareContext,
  planned: readonly ReservedCall[],
): Promise<PreparedCall | null> {
  const { conversation, requests, daemon } = context;
  const assembled = await requests.next(conversation, effect.agent, effect.turnId);
  const turn = conversation.state.agents[effect.agent]?.turn;
  const own = turn && daemon.definitions.agentOf(conversation, turn, (state) => daemon.team.for(state));
  if (!assembled || !turn || !own) return null;
  const preparation = new CallPreparation(context, effect, turn, own);
  return { assembled, ...preparation.plan(assembled, planned) };
}

/** A model call of one turn, by the definition of that turn. */
class CallPreparation {
  readonly #context: PrepareContext;
  readonly #effect: CallEffect;
  readonly #turn: Turn;
  readonly #setup: RunningAgent;
  readonly #candidates: ReturnType<typeof candidatesFor>;

  constructor(context: PrepareContext, effect: CallEffect, turn: Turn, own: RunningAgent) {
    this.#context = context;
    this.#effect = effect;
    this.#turn = turn;
    this.#setup = setupFor(own, turn);
    this.#candidates = candidatesFor(own, turn);
  }

  /** `planned`: what the calls may use that start before it. */
  plan(prepared: NextRequest, planned: readonly ReservedCall[]): Plan {
    const { upTo } = this.#turn;
    const failed = this.#skipped(prepared);
    if (failed) return { kind: 'skipped', failed, upTo };
    if (prepared.reduction) return this.#reducing(prepared.reduction);
    if (prepared.fault) return { kind: 'refused', refusal: prepared.fault, upTo };
    const { maxOutputTokens, price } = this.#setup.profile;
    const reservation = reservationFor(prepared.tokens, maxOutputTokens, price);
    const limit = this.#limitReached(reservation, planned);
    return limit ? { kind: 'limited', limit, upTo } : this.#ready(prepared, reservation);
  }

  /** Why the candidate is not called although another is left; null: it is called. */
  #skipped({ fault, reduction }: NextRequest): FailedAttempt | null {
    const { asked, others } = this.#candidates;
    const { health } = this.#context.daemon;
    const since = health.backingOff(asked.client);
    const healthy = since ? helping(since.code, asked, others) : [];
    if (since && healthy.some(({ client }) => health.backingOff(client) === null)) {
      const failed = since.failures === 1 ? 'it failed' : `it failed ${since.failures} times in a row`;
      return failedAttempt(asked, healthy, since.code, `It was not called: ${failed} a short time ago.`);
    }
    // A fallback may have less room than the agent's own model.
    if (!fault || reduction || this.#turn.candidate === null) return null;
    return failedAttempt(asked, helping(fault.code, asked, others), fault.code, fault.message);
  }

  /** The limit of the conversation, or the budget of a hired agent (HIRING-5), that this call could exceed; null: none. */
  #limitReached(call: Reservation, planned: readonly ReservedCall[] = []): LimitReached | null {
    const { conversation, daemon } = this.#context;
    const { state, roster } = conversation;
    const { agent: slug } = this.#effect;
    const reserved = [...this.#context.reserved(), ...planned, { agent: slug, ...call }];
    const { tokens: usedTokens, usd: usedUsd } = usedFor(state, slug);
    const reached = overBudget({ ...daemon.team.limits, usedTokens, usedUsd }, reserved);
    if (reached) return reached;
    for (const { agent, budget, members, ...used } of accountsOf(state, roster, slug)) {
      const { tokens: tokensPerConversation = null, usd: usdPerConversation = null } = budget;
      const ofMembers = reserved.filter((one) => members.includes(one.agent));
      const over = overBudget({ tokensPerConversation, usdPerConversation, ...used }, ofMembers);
      if (over) return { name: 'hireBudget', message: `the budget of ${agent}: ${over.message}` };
    }
    return null;
  }

  #deadline(): number {
    const { conversation, daemon, times } = this.#context;
    const turn = conversation.state.agents[this.#effect.agent]?.turn;
    const limitMs = daemon.team.limits.turnSeconds * 1_000;
    return turn ? times.deadline(turn, limitMs) : daemon.elapsed() + limitMs;
  }

  #reducing(reduction: PlannedReduction, tokenRatio?: number): ReducingCall {
    return {
      kind: 'reduce',
      setup: this.#setup,
      reduction,
      upTo: this.#turn.upTo,
      tokenRatio,
      deadline: this.#deadline(),
      allows: (reservation) => this.#limitReached(reservation) === null,
    };
  }

  #ready({ request, estimatedTokens }: NextRequest, reservation: Reservation): ReadyCall {
    const { entries } = this.#context.conversation;
    const [turn, setup] = [this.#turn, this.#setup];
    const asking = entries[turn.upTo];
    const { contextTokens, maxOutputTokens } = setup.profile;
    const room = contextTokens - maxOutputTokens;
    // The estimate was too low if the provider refuses the request: it was larger than the window.
    const tokenRatio = room / Math.max(1, estimatedTokens);
    return {
      kind: 'ready',
      setup,
      ...this.#candidates,
      request: asking ? { ...request, askedAt: Date.parse(asking.createdAt) } : request,
      schema: schemaFor(setup, entries, turn),
      upTo: turn.upTo,
      estimatedTokens,
      number: turn.modelCalls + 1,
      reservation,
      deadline: this.#deadline(),
      isNearWindow: 2 * estimatedTokens >= room,
      tooLong: () => (turn.wasTooLong ? null : this.#reducedBy({ tokenRatio })),
      withoutFiles: () => this.#reducedBy({ maxFiles: 0 }),
    };
  }

  #reducedBy(refused: { readonly tokenRatio?: number; readonly maxFiles?: number }): ReducingCall | null {
    const { requests, conversation } = this.#context;
    const again = requests.draft(conversation, this.#effect.agent, this.#effect.turnId, refused);
    return again?.reduction ? this.#reducing(again.reduction, refused.tokenRatio) : null;
  }
}

/** Null: no other candidate is left. */
export function failedAttempt(
  { model, key }: ModelCandidate,
  [next]: readonly ModelCandidate[],
  code: string,
  message: string,
): FailedAttempt | null {
  if (!next) return null;
  return { candidate: { model, key }, next: { model: next.model, key: next.key }, code, message };
}

/**
 * The working time of the turns of one conversation.
 *
 * TURN-TIME-1  The time of a turn is measured by the monotonic clock while this daemon works on it. Setting the wall clock
 *              has no effect.
 * TURN-TIME-2  The time that an earlier daemon spent is the sum of the durations in the log. Time without a daemon does
 *              not count, nor does a call that ran when its daemon was killed: its duration is in no log.
 * TURN-TIME-3  Waiting for an answer does not count: after it the full time is available again.
 */
class TurnTimes {
  /** By agent, which has one turn at a time. */
  readonly #begun = new Map<
    string,
    { readonly turnId: string; readonly since: number; readonly at: number }
  >();
  readonly #elapsed: Clock;

  constructor(elapsed: Clock) {
    this.#elapsed = elapsed;
  }

  /** When the turn has worked for `limitMs`, by the monotonic clock. */
  deadline({ agent, turnId, workingSince: since, workedMs }: Turn, limitMs: number): number {
    let begun = this.#begun.get(agent);
    if (begun?.turnId !== turnId || begun.since !== since) {
      begun = { turnId, since, at: this.#elapsed() - workedMs };
      this.#begun.set(agent, begun);
    }
    return begun.at + limitMs;
  }
}
