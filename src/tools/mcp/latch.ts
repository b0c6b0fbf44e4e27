/** Something happened since it was last asked: any number of times counts as one. For one that waits. */
export class Latch {
  private isSet = false;
  private wake: (() => void) | null = null;

  set(): void {
    this.isSet = true;
    this.wake?.();
  }

  async next(): Promise<void> {
    if (!this.isSet) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
      this.wake = null;
    }
    this.isSet = false;
  }
}
