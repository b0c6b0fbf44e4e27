import type { Requests } from '../../../agents/index.ts';
import type { Decision, Effect, Entry } from '../../../conversation/index.ts';
import type { Runtime } from '../../runtime.ts';
import type { ConversationOwner } from '../ownership.ts';
import type { Ledger } from './ledger.ts';
import { type PrepareContext, type PreparedRequest, prepareCalls, TurnTimes } from './prepare.ts';
import {
  audited,
  decisionFailure,
  EMPTY_DECISION,
  type Item,
  isPost,
  NO_SENDER,
  sequencesOf,
} from './worker-items.ts';

export interface DeciderParts {
  readonly id: string;
  readonly runtime: Runtime;
  readonly ledger: Ledger;
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
    this.#times = new TurnTimes(parts.runtime.elapsed);
    this.#requests = this.#newRequests();
  }

  /** WORKER-4: the claim is decided first. Null: none is needed. */
  async takeOver(items: readonly Item[], isLeaving: boolean): Promise<Decision | null> {
    const { id, runtime, ledger, owner } = this.#parts;
    if (!runtime.ownership.isShared) return null;
    const command = await owner.claim({
      state: ledger.state,
      commands: items.map((item) => item.command),
      audited: () => audited(id, runtime),
      isLeaving,
      reach: runtime.reach,
    });
    if (command === null) return null;
    return ledger.conversation.decide(command, runtime.now());
  }

  /** `before`: the length of the log before `taking`, which is undone if nothing else needs it. */
  decide(items: readonly Item[], taking: Decision | null, before: number): Decided[] {
    const decided = this.#decideEach(items);
    const isAsked = items.some(({ command }) => command.type === 'claim');
    if (taking && (isAsked || decided.some(({ decision }) => decision.entries.length > 0)))
      decided.unshift({ item: NO_SENDER, decision: taking });
    else if (taking) this.undo(before);
    return decided;
  }

  #decideEach(items: readonly Item[]): Decided[] {
    const { id, runtime, ledger } = this.#parts;
    runtime.attempts.deciding(sequencesOf(items));
    const { conversation } = ledger;
    return items.flatMap((item) => {
      const length = conversation.entries.length;
      try {
        if (runtime.ownership.isShared && item.command.type === 'claim')
          return [{ item, decision: EMPTY_DECISION }];
        if (isPost(item)) runtime.reach('before-decision', id);
        return [{ item, decision: conversation.decide(item.command, runtime.now()) }];
      } catch (error) {
        this.undo(length); // it may be applied in part
        item.reject(decisionFailure(error));
        return [];
      }
    });
  }

  /** Names the definition of each new turn, and builds the requests of the decided model calls. */
  prepare(entries: readonly Entry[], effects: readonly Effect[]): Map<Effect, PreparedRequest> {
    const { runtime, ledger, reserved } = this.#parts;
    const { conversation } = ledger;
    try {
      runtime.definitions.name(entries, runtime.team.for(conversation.state));
      const context = { conversation, requests: this.#requests, runtime, times: this.#times, reserved };
      return prepareCalls(effects, context);
    } catch (error) {
      throw decisionFailure(error);
    } finally {
      runtime.attempts.decided();
    }
  }

  /** WORKER-2 */
  undo(length: number): void {
    this.#parts.ledger.truncate(length);
    this.#requests = this.#newRequests();
  }

  #newRequests(): Requests {
    const { id, runtime } = this.#parts;
    return runtime.definitions.requestsOf(id, (state) => runtime.team.for(state));
  }
}
