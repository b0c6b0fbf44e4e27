import { randomUUID } from 'node:crypto';
import { migrationTakenOver, migrationUnfinished } from './rules.ts';

/** The mark of a target while conversations are moved into it. `run` names one run of a move; '' in a mark of an old version. */
export interface MigrationMark {
  readonly from: string;
  readonly run: string;
}

export function markIn(stored: unknown): MigrationMark {
  const { from, run } = (stored ?? {}) as { from?: unknown; run?: unknown };
  return { from: from === undefined ? 'an unknown place' : String(from), run: String(run ?? '') };
}

/**
 * One run of a move into one target: it takes the mark only as it saw it last. So of two runs one gets it, and a run that
 * was frozen does not take the mark of another one that began or ended since.
 */
export class MigrationRun {
  readonly #target: string;
  readonly #run = randomUUID();
  #seen: string | null = null;

  constructor(target: string) {
    this.#target = target;
  }

  /** Answers from where. */
  saw(mark: MigrationMark | null): string | null {
    this.#seen = mark?.run ?? null;
    return mark?.from ?? null;
  }

  /** The mark to write instead of `known`; null: it is this run's already. */
  next(known: MigrationMark | null, from: string): MigrationMark | null {
    if (known !== null && known.from !== from) throw migrationUnfinished(this.#target, known.from);
    if (known?.run === this.#run) return null;
    if ((known?.run ?? null) !== this.#seen) throw migrationTakenOver(this.#target);
    return { from, run: this.#run };
  }

  /** Before the mark is removed. */
  requireOwn(known: MigrationMark | null): void {
    if (known?.run !== this.#run) throw migrationTakenOver(this.#target);
  }
}
