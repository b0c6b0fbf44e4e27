import type { OpenedLog, Removed } from './port.ts';
import { logAlreadyOpen } from './rules.ts';

/** The logs that this process has open or is deleting. A conversation has at most one of either at a time. */
export class OpenLogs {
  readonly #open = new Map<string, Promise<OpenedLog>>();
  readonly #deleting = new Map<string, Promise<Removed>>();

  /** Waits for a deletion of the same conversation. `admit` throws when the store may not be used (any more). */
  async open(
    conversation: string,
    admit: (conversation: string) => void,
    openLog: (onClosed: () => void) => Promise<OpenedLog>,
  ): Promise<OpenedLog> {
    admit(conversation);
    await this.#deleting.get(conversation);
    admit(conversation);
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    const forget = () => {
      this.#open.delete(conversation);
    };
    const opening = openLog(forget);
    this.#open.set(conversation, opening);
    try {
      return await opening;
    } catch (error) {
      forget();
      throw error;
    }
  }

  /** A call during a deletion of the same conversation shares its result. */
  async delete(conversation: string, remove: () => Promise<Removed>): Promise<Removed> {
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    const underWay = this.#deleting.get(conversation);
    if (underWay !== undefined) return underWay;
    const deleting = remove().finally(() => this.#deleting.delete(conversation));
    this.#deleting.set(conversation, deleting);
    return deleting;
  }

  /** Closes every log, then waits for deletions. Reports no failure: the log's callers get those. */
  async close(): Promise<void> {
    const opened = await Promise.allSettled(this.#open.values());
    const logs = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value.log] : []));
    await Promise.allSettled(logs.map((log) => log.close()));
    await Promise.allSettled(this.#deleting.values());
  }
}
