import type { AddressedPost } from '../../bus/index.ts';
import { monotonicClock, type Refusal, refusal } from '../../kernel/index.ts';
import { CheckBudget, schemaFault } from '../../kernel/json-schema.ts';

/** Checks the schemas of posts before they are stored. Each publisher has a budget of processor time (JSON-SCHEMA-1). */

/** Of whom a budget is kept: the newest. */
const MOST_PUBLISHERS = 1_000;

export class PostedSchemas {
  readonly #budgets = new Map<string, CheckBudget>();

  /** Null: the post has no schema, or one that answers can be compared with. */
  refusalOf({ schema, publisher }: Pick<AddressedPost, 'schema' | 'publisher'>): Refusal | null {
    if (schema === undefined) return null;
    const fault = schemaFault(schema, this.#budgetOf(publisher));
    return fault === null
      ? null
      : refusal(
          'INVALID_SCHEMA',
          `field schema: ${fault}`,
          'correct the schema, or leave it out: any text is an answer then',
        );
  }

  #budgetOf(publisher: string): CheckBudget {
    const budget = this.#budgets.get(publisher) ?? new CheckBudget(monotonicClock);
    this.#budgets.delete(publisher);
    this.#budgets.set(publisher, budget);
    const [oldest] = this.#budgets.keys();
    if (this.#budgets.size > MOST_PUBLISHERS && oldest !== undefined) this.#budgets.delete(oldest);
    return budget;
  }
}
