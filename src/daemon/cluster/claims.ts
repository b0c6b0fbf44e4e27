import {
  type ClaimCommand,
  type ConversationState,
  type Decision,
  hasOutstandingWork,
} from '../../conversation/index.ts';
import { sleep } from '../../kernel/index.ts';
import type { SharedLogs, WorkStatus } from '../../persistence/index.ts';
import {
  type ClaimRequest,
  type ConversationOwner,
  type LogAsked,
  moved,
  type Ownership,
} from '../conversations/ownership.ts';

/** Between two checks of a claim that is being appended. */
const CHECK_MS = 2;

/** The daemon that claimed a conversation, and the ordinal of its claim. */
export interface Claimant {
  readonly daemon: string;
  readonly epoch: number;
}

/** What a claim needs of this daemon. Each start has a new daemon id. */
export interface ClaimHolder {
  readonly daemon: string;
  readonly logs: Pick<SharedLogs, 'newest' | 'origin'>;
  /** The identity of the ingress stream (its creation time); undefined until it is known. */
  ingressCreated(): string | undefined;
  /** As far as is known, that claimant does not work on the conversation any more. */
  mayTakeOver(conversation: string, from: Claimant): boolean;
  /** False: another daemon owns the conversation by now (CLAIMING-4). True when `signal` is aborted. Does not reject. */
  mayAct(conversation: string, signal: AbortSignal): Promise<boolean>;
  /** Publishes dead letters for turns that are not retried. */
  publishGivenUp(conversation: string, triggers: readonly number[]): void;
}

/** The ownership of a daemon that shares its logs with others. */
export class ClaimingOwner implements Ownership {
  readonly recoversOnOpen = false;
  readonly recordsProve = false; // the append may be refused
  readonly removesRest = false;
  readonly #holder: ClaimHolder;

  constructor(holder: ClaimHolder) {
    this.#holder = holder;
  }

  of(conversation: string): ConversationOwner {
    return new ConversationClaim(conversation, this.#holder);
  }

  mayAct(conversation: string, signal: AbortSignal): Promise<boolean> {
    return this.#holder.mayAct(conversation, signal);
  }

  async logAsked(conversation: string, origin: number | null | undefined): Promise<LogAsked> {
    if (origin === undefined) return 'unknown';
    return origin !== null && (await this.#holder.logs.origin(conversation)) === origin ? 'same' : 'later';
  }
}

/**
 * Whether this daemon owns a conversation.
 *
 * CLAIMING-1  Every append follows an own claim: the first append of a daemon that is not the last claimant begins with it.
 * CLAIMING-2  A daemon that opens a log with outstanding work claims it again, even if the last claim is its own: it only
 *             continues work that it has started since.
 * CLAIMING-3  A claim that was lost stays lost: its worker appends and starts nothing any more.
 * CLAIMING-4  A process may freeze between any two steps, and peers take over meanwhile. So it reads the log right before it
 *             does anything that the log cannot refuse. A read older than half the failure timeout does not count.
 */
class ConversationClaim implements ConversationOwner {
  readonly #conversation: string;
  readonly #holder: ClaimHolder;
  #hasClaimed = false;
  #isClaiming = false;

  constructor(conversation: string, holder: ClaimHolder) {
    this.#conversation = conversation;
    this.#holder = holder;
  }

  isOurs(state: ConversationState): boolean {
    return this.#hasClaimed && state.claim?.daemon === this.#holder.daemon;
  }

  async isStale(memory: {
    readonly state: ConversationState;
    readonly newestSequence: number;
  }): Promise<boolean> {
    const { length } = memory.state;
    const newest = await this.#holder.logs.newest(this.#conversation);
    if (newest === null) return length > 0; // what was appended since then is this worker's
    const claim = newest.status?.claim;
    const isOwn = claim?.daemon === this.#holder.daemon && claim.epoch >= (memory.state.claim?.epoch ?? 0);
    return !isOwn && newest.sequence > memory.newestSequence;
  }

  async claim({ state, commands, audited, isLeaving, reach }: ClaimRequest): Promise<ClaimCommand | null> {
    // A copy has no owner until it is complete (FORK-2).
    if (!this.#needsClaim(state) || commands.every(({ type }) => type === 'copy')) return null;
    if (isLeaving) throw moved(this.#conversation); // a leaving daemon takes over nothing
    if (state.claim && !this.#holder.mayTakeOver(this.#conversation, state.claim))
      throw moved(this.#conversation);
    const hasWork = hasOutstandingWork(state);
    if (hasWork) reach('before-recovery');
    const asked = commands.find((command) => command.type === 'claim');
    const found = hasWork ? await audited() : [];
    this.#isClaiming = true; // nothing may fail after this: `claimEnded` must follow
    return {
      type: 'claim',
      daemon: this.#holder.daemon,
      ingress: this.#holder.ingressCreated(),
      handedOver: asked?.handedOver ?? false,
      audited: found,
    };
  }

  appended(claim: Decision | null): void {
    this.#hasClaimed = true;
    const reply = claim?.reply;
    if (reply?.kind !== 'recovered' || !reply.givenUp?.length) return;
    this.#holder.publishGivenUp(
      this.#conversation,
      reply.givenUp.flatMap(({ trigger }) => trigger),
    );
  }

  claimEnded(): void {
    this.#isClaiming = false;
  }

  async idle(): Promise<void> {
    while (this.#isClaiming) await sleep(CHECK_MS);
  }

  workStatus(state: ConversationState): WorkStatus {
    const { claim } = state;
    return {
      claim: claim && { daemon: claim.daemon, epoch: claim.epoch },
      hasOutstandingWork: hasOutstandingWork(state),
    };
  }

  conflict() {
    return { error: moved(this.#conversation), isLost: true };
  }

  /** CLAIMING-1, CLAIMING-2. A stream of posts that was created again is claimed again: its sequences begin at 1. */
  #needsClaim(state: ConversationState): boolean {
    const created = this.#holder.ingressCreated();
    if (state.claim?.daemon !== this.#holder.daemon) return true;
    // Not while there is outstanding work: a claim would repair work that runs here.
    if (created !== undefined && state.ingress.stream !== created && !hasOutstandingWork(state)) return true;
    return !this.#hasClaimed && hasOutstandingWork(state);
  }
}
