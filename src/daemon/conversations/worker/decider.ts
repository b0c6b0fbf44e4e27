import type { Requests } from '../../../agents/index.ts';
import type { StreamPosition } from '../../../bus/index.ts';
import {
  type AuditedOutcome,
  auditedOutcomes,
  type Command,
  type Decision,
  type Effect,
  type Entry,
  type Reply,
} from '../../../conversation/index.ts';
import { type Clock, messageOf, ParleyError } from '../../../kernel/index.ts';
import type { ConversationStore } from '../../../persistence/index.ts';
import type { ReachCrashPoint } from '../../observe/crash-points.ts';
import type { Definitions } from '../../team/definitions.ts';
import type { ConversationOwner, Ownership } from '../ownership.ts';
import type { Ledger } from './ledger.ts';
import {
  type CallContext,
  type PrepareContext,
  type PreparedCall,
  prepareCalls,
  TurnTimes,
} from './prepare.ts';
export interface Item {
  readonly command: Command;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
  /** The place of the post that it is in the ingress stream. */
  readonly position: StreamPosition | undefined;
}

/** For decisions without a sender. */
const NO_SENDER: Item = {
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
    this.#times = new TurnTimes(parts.daemon.elapsed);
    this.#requests = this.#newRequests();
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
