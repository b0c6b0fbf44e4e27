import {
  type ClaimCommand,
  type Command,
  type ConversationState,
  type Decision,
  owesSomething,
} from '../../conversation/index.ts';
import { ParleyError, sleep } from '../../kernel/index.ts';
import type { NewestAppend, Standing } from '../../persistence/index.ts';
import type { ReachCrashPoint } from '../crash-points.ts';
import type { Self } from './self.ts';

/** Between two looks at a claim that is on its way. */
const LOOK_MS = 2;

/**
 * Whether a conversation is this daemon's to work on.
 *
 * T1 Nothing is appended but behind an own claim: the first append of one who is not the last claimant begins with it.
 * T2 Whoever opens a log that owes something claims it again, though the last claim is its own: what runs is its own
 *    only if it has started it.
 * T3 A tenure that is over stays over: its worker appends nothing and starts nothing any more.
 */
export class Lease {
  readonly self: Self;
  #hasTakenUp = false;
  #isClaiming = false;

  constructor(self: Self) {
    this.self = self;
  }

  isOurs(state: ConversationState): boolean {
    return this.#hasTakenUp && state.claim?.daemon === this.self.daemon;
  }

  /** T1, T2. A stream of posts that was made anew is claimed anew: its sequences begin again. */
  needsClaim(state: ConversationState): boolean {
    const life = this.self.ingressLife();
    if (state.claim?.daemon !== this.self.daemon) return true;
    // Not while something runs: a claim takes up what is under way, and that is under way here.
    if (life !== undefined && state.ingress.stream !== life && !owesSomething(state)) return true;
    return !this.#hasTakenUp && owesSomething(state);
  }

  /** `known`: the place of the newest append that is in memory. */
  isBehind(state: ConversationState, known: number, newest: NewestAppend | null): boolean {
    if (newest === null) return state.length > 0;
    const claim = newest.standing?.claim;
    const isOwn = claim?.daemon === this.self.daemon && claim.epoch >= (state.claim?.epoch ?? 0);
    return !isOwn && newest.sequence > known;
  }

  /** The claim that is to be decided. Until `claimIsOver` it may be durable already, and seen by others. */
  async command(
    conversation: string,
    state: ConversationState,
    items: readonly { readonly command: Command }[],
    audited: () => Promise<ClaimCommand['audited']>,
    reach: ReachCrashPoint,
  ): Promise<ClaimCommand> {
    if (state.claim && !this.self.mayTakeOver(conversation, state.claim)) throw moved(conversation);
    const isOwing = owesSomething(state);
    if (isOwing) reach('before-recovery');
    const asked = items.map(({ command }) => command).find((command) => command.type === 'claim');
    const found = isOwing ? await audited() : [];
    this.#isClaiming = true; // not before what may fail: nobody would end it
    return {
      type: 'claim',
      daemon: this.self.daemon,
      ingress: this.self.ingressLife(),
      handedOver: asked?.handedOver ?? false,
      audited: found,
    };
  }

  claimIsOver(): void {
    this.#isClaiming = false;
  }

  /** Resolves when no claim is on its way. */
  async decided(): Promise<void> {
    while (this.#isClaiming) await sleep(LOOK_MS);
  }

  /** What was decided is durable. */
  tookUp(conversation: string, claim: Decision | null): void {
    this.#hasTakenUp = true;
    const reply = claim?.reply;
    if (reply?.kind !== 'recovered' || !reply.givenUp?.length) return;
    this.self.gaveUp(
      conversation,
      reply.givenUp.flatMap(({ trigger }) => trigger),
    );
  }
}

/** For the headers of an append. */
export function standingOf(state: ConversationState): Standing {
  const { claim } = state;
  return {
    claim: claim && { daemon: claim.daemon, epoch: claim.epoch },
    owes: owesSomething(state),
  };
}

const MOVED = 'CONVERSATION_MOVED';

export function moved(conversation: string): ParleyError {
  return new ParleyError(MOVED, `another daemon works on conversation ${conversation}`, {
    hint: 'ask again: the request goes to that daemon',
  });
}

export function isMoved(error: unknown): boolean {
  return error instanceof ParleyError && error.code === MOVED;
}

export function isMovedCode(code: string): boolean {
  return code === MOVED;
}
