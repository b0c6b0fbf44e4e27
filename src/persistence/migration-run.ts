import { randomUUID } from 'node:crypto';
import { migrationRunning, migrationUnfinished } from './rules.ts';

/** Marks a target while conversations are moved into it. `run` identifies one run; '' in a mark of an older version. */
export interface MigrationMark {
  readonly from: string;
  readonly run: string;
}

export function markIn(stored: unknown): MigrationMark {
  const { from, run } = (stored ?? {}) as { from?: unknown; run?: unknown };
  return { from: from === undefined ? 'an unknown place' : String(from), run: String(run ?? '') };
}

/**
 * One run of `parley migrate` into one target. It replaces the mark only if that is still as it was last read, so of two
 * runs only one succeeds, and a suspended run does not overwrite the mark of a later one.
 */
export class MigrationRun {
  readonly #target: string;
  readonly #run = randomUUID();
  #seen: string | null = null;

  constructor(target: string) {
    this.#target = target;
  }

  /** Remembers the mark that was read, and returns where conversations come from. */
  noteSeen(mark: MigrationMark | null): string | null {
    this.#seen = mark?.run ?? null;
    return mark?.from ?? null;
  }

  /** The mark that replaces `known`; null: `known` is already of this run. */
  markFor(known: MigrationMark | null, from: string): MigrationMark | null {
    if (known !== null && known.from !== from) throw migrationUnfinished(this.#target, known.from);
    if (known?.run === this.#run) return null;
    if ((known?.run ?? null) !== this.#seen) throw migrationRunning(this.#target);
    return { from, run: this.#run };
  }

  /** Call before the mark is removed. */
  requireOwn(known: MigrationMark | null): void {
    if (known?.run !== this.#run) throw migrationRunning(this.#target);
  }
}
