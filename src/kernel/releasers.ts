import { messageOf } from './errors.ts';

/**
 * What was acquired, for release: last in, first out; all run; one that fails does not keep the others.
 */
export class Releasers {
  private readonly stack: { readonly name: string; readonly release: () => unknown }[] = [];
  private released: Promise<string[]> | null = null;

  add(name: string, release: () => unknown): void {
    this.stack.push({ name, release });
  }

  /** Idempotent and shared. Answers what failed, by name. */
  release(): Promise<string[]> {
    this.released ??= this.run();
    return this.released;
  }

  private async run(): Promise<string[]> {
    const failures: string[] = [];
    for (let item = this.stack.pop(); item; item = this.stack.pop()) {
      try {
        await item.release();
      } catch (error) {
        failures.push(`${item.name}: ${messageOf(error)}`);
      }
    }
    return failures;
  }
}
