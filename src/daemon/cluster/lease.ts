import {
  type ClaimCommand,
  type ConversationState,
  type Decision,
  hasOutstandingWork,
} from '../../conversation/index.ts';
import { sleep } from '../../kernel/index.ts';
import type { NewestAppend, WorkStatus } from '../../persistence/index.ts';
import {
  type ClaimRequest,
  type ConversationOwner,
  moved,
  type Ownership,
} from '../conversations/ownership.ts';
import type { Self } from './self.ts';

/** Between two checks of a claim that is being appended. */
const CHECK_MS = 2;

/** The ownership of a daemon that shares its logs with others. */
export function leasedOwnership(self: Self): Ownership {
  return {
    isShared: true,
    of: (conversation) => new Lease(conversation, self),
    mayAct: (conversation, signal) => self.mayAct(conversation, signal),
  };
}

/**
 * Whether a conversation is this daemon's to work on.
 *
 * LEASE-1 Every append follows an own claim: the first append of a daemon that is not the last claimant begins with it.
 * LEASE-2 A daemon that opens a log with outstanding work claims it again, even if the last claim is its own: it only
 *         continues work that it has started since.
 * LEASE-3 A lease that ended stays ended: its worker appends and starts nothing any more.
 */
class Lease implements ConversationOwner {
  readonly #conversation: string;
  readonly #self: Self;
  #hasClaimed = false;
  #isClaiming = false;

  constructor(conversation: string, self: Self) {
    this.#conversation = conversation;
    this.#self = self;
  }

  isOurs(state: ConversationState): boolean {
    return this.#hasClaimed && state.claim?.daemon === this.#self.daemon;
  }

  isBehind(state: ConversationState, known: number, newest: NewestAppend | null): boolean {
    if (newest === null) return state.length > 0;
    const claim = newest.status?.claim;
    const isOwn = claim?.daemon === this.#self.daemon && claim.epoch >= (state.claim?.epoch ?? 0);
    return !isOwn && newest.sequence > known;
  }

  async claim({ state, commands, audited, isLeaving, reach }: ClaimRequest): Promise<ClaimCommand | null> {
    // A copy is nobody's until it is complete (FORK-2).
    if (!this.#needsClaim(state) || commands.every(({ type }) => type === 'copy')) return null;
    if (isLeaving) throw moved(this.#conversation); // it takes over nothing any more
    if (state.claim && !this.#self.mayTakeOver(this.#conversation, state.claim))
      throw moved(this.#conversation);
    const hasWork = hasOutstandingWork(state);
    if (hasWork) reach('before-recovery');
    const asked = commands.find((command) => command.type === 'claim');
    const found = hasWork ? await audited() : [];
    this.#isClaiming = true; // after all that may fail: `claimEnded` must follow
    return {
      type: 'claim',
      daemon: this.#self.daemon,
      ingress: this.#self.ingressLife(),
      handedOver: asked?.handedOver ?? false,
      audited: found,
    };
  }

  appended(claim: Decision | null): void {
    this.#hasClaimed = true;
    const reply = claim?.reply;
    if (reply?.kind !== 'recovered' || !reply.givenUp?.length) return;
    this.#self.gaveUp(
      this.#conversation,
      reply.givenUp.flatMap(({ trigger }) => trigger),
    );
  }

  claimEnded(): void {
    this.#isClaiming = false;
  }

  async settled(): Promise<void> {
    while (this.#isClaiming) await sleep(CHECK_MS);
  }

  standing(state: ConversationState): WorkStatus {
    const { claim } = state;
    return {
      claim: claim && { daemon: claim.daemon, epoch: claim.epoch },
      hasOutstandingWork: hasOutstandingWork(state),
    };
  }

  conflict() {
    return moved(this.#conversation);
  }

  /** LEASE-1, LEASE-2. A stream of posts that was created again is claimed again: its sequences begin at 1. */
  #needsClaim(state: ConversationState): boolean {
    const life = this.#self.ingressLife();
    if (state.claim?.daemon !== this.#self.daemon) return true;
    // Not while something runs: a claim would repair what runs here.
    if (life !== undefined && state.ingress.stream !== life && !hasOutstandingWork(state)) return true;
    return !this.#hasClaimed && hasOutstandingWork(state);
  }
}
