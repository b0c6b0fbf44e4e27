import type { IngressDelivery } from '../bus/index.ts';
import type { Reply } from '../conversation/index.ts';

/** What became of a post. `letter`: where the dead letter of a refused one stands. */
export type Outcome = Reply & { readonly letter?: number };

/** Somebody who posted through the API. His post may be delivered before the stream has told its place. */
class Waiter {
  readonly outcome: Promise<Outcome>;
  private resolve: (outcome: Outcome) => void = () => undefined;
  private sequence: number | null = null;
  private readonly early = new Map<number, Outcome>();

  constructor() {
    this.outcome = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  /** The stream has his post at this place. */
  posted(sequence: number): void {
    this.sequence = sequence;
    const outcome = this.early.get(sequence);
    if (outcome) this.resolve(outcome);
  }

  delivered(sequence: number, outcome: Outcome): void {
    if (this.sequence === null) this.early.set(sequence, outcome);
    else if (this.sequence === sequence) this.resolve(outcome);
  }
}

/** Whoever is to be told what became of exactly his post. */
export class Waiters {
  private readonly byPost = new Map<string, Waiter[]>();

  /** Resolves with the outcome of what `post` put into the stream, at the sequence that it answers. */
  async waitFor(
    [publisher, conversation, id]: readonly [string, string, string],
    post: () => Promise<{ readonly sequence: number }>,
  ): Promise<Outcome> {
    const key = keyOf(publisher, conversation, id);
    const waiter = new Waiter();
    this.byPost.set(key, [...(this.byPost.get(key) ?? []), waiter]);
    try {
      const { sequence } = await post();
      waiter.posted(sequence);
      return await waiter.outcome;
    } finally {
      const left = (this.byPost.get(key) ?? []).filter((other) => other !== waiter);
      if (left.length > 0) this.byPost.set(key, left);
      else this.byPost.delete(key);
    }
  }

  tell({ publisher, conversation, position }: IngressDelivery, id: string, outcome: Outcome): void {
    for (const waiter of this.byPost.get(keyOf(publisher, conversation, id)) ?? []) {
      waiter.delivered(position.sequence, outcome);
    }
  }
}

function keyOf(publisher: string, conversation: string, id: string): string {
  return JSON.stringify([publisher, conversation, id]);
}
