/** Which batches of posts were asked for. When people hurry, all of them are. */
export class Batches {
  private asked = 0;
  private readonly waiting = new Map<number, (() => void)[]>();

  constructor(hurry: AbortSignal) {
    hurry.addEventListener('abort', () => this.upTo(Number.POSITIVE_INFINITY), { once: true });
  }

  next(): void {
    this.upTo(this.asked + 1);
  }

  /** Resolves when that many were asked for. */
  async begun(batch: number): Promise<void> {
    if (batch <= this.asked) return;
    await new Promise<void>((resolve) => {
      this.waiting.set(batch, [...(this.waiting.get(batch) ?? []), resolve]);
    });
  }

  private upTo(batch: number): void {
    this.asked = batch;
    for (const [waits, resolves] of this.waiting) {
      if (waits > batch) continue;
      this.waiting.delete(waits);
      for (const resolve of resolves) resolve();
    }
  }
}
