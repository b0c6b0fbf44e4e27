import { callModel, type ModelRequest } from '../agents/index.ts';
import type { Command, Effect } from '../conversation/index.ts';
import { type LinkedAbort, linkedAbort, messageOf, type Refusal, sleep } from '../kernel/index.ts';
import type { Runtime } from './runtime.ts';

/**
 * Runs what a conversation decided, beside its mailbox: a stop or a new message never waits behind a model.
 *
 * F1 An effect is started only after the entries that ask for it are durable (L9).
 * F2 An effect reports back by a command; what reports nothing (a shutdown) is owed by the log.
 * F3 Every turn has one abort, below the daemon's own, and it is unlinked when the effect ends.
 */

/** A request ready to send, or why it must not be sent. */
export type PreparedCall =
  | { readonly ok: true; readonly request: ModelRequest; readonly upTo: number }
  | { readonly ok: false; readonly refusal: Refusal; readonly upTo: number };

export class Effects {
  private readonly running = new Map<string, LinkedAbort>();
  private readonly settled = new Set<Promise<void>>();
  private readonly conversation: string;
  private readonly runtime: Runtime;
  private readonly report: (command: Command) => void;

  constructor(conversation: string, runtime: Runtime, report: (command: Command) => void) {
    this.conversation = conversation;
    this.runtime = runtime;
    this.report = report;
  }

  get isIdle(): boolean {
    return this.settled.size === 0;
  }

  /** Resolves when everything that runs now has reported. */
  async idle(): Promise<void> {
    await Promise.all(this.settled);
  }

  start(effect: Effect, prepared: PreparedCall | undefined): void {
    if (effect.type === 'abort-turn') this.running.get(effect.turnId)?.abort('aborted by a person');
    else if (effect.type === 'run-tool') this.track(this.runTool(effect));
    else if (prepared) this.track(this.call(effect, prepared));
  }

  /** Drops everything without a report: the conversation is being deleted. */
  abortAll(): void {
    for (const abort of this.running.values()) abort.abort('deleted');
  }

  private track(work: Promise<void>): void {
    const tracked: Promise<void> = work
      .catch((error: unknown) => {
        this.runtime.log.error(
          { conversation: this.conversation, error: messageOf(error) },
          'an effect failed',
        );
      })
      .finally(() => this.settled.delete(tracked));
    this.settled.add(tracked);
  }

  private async call(effect: Extract<Effect, { type: 'call-model' }>, prepared: PreparedCall): Promise<void> {
    const { agent, turnId } = effect;
    const setup = this.runtime.agents.get(agent);
    if (!prepared.ok || !setup) {
      const why = prepared.ok
        ? { code: 'UNKNOWN_AGENT', message: `there is no agent ${agent}` }
        : prepared.refusal;
      const { code, message } = why;
      const base = { agent, turnId, duration: 0, requestHash: '', upTo: prepared.upTo };
      this.report({ type: 'model-failed', code, message, partial: '', ...base });
      return;
    }
    const abort = linkedAbort(this.runtime.shutdown);
    this.running.set(turnId, abort); // F3
    try {
      const command = await callModel(prepared.request, prepared.upTo, {
        model: setup.model,
        retry: this.runtime.retry,
        signal: abort.signal,
        now: this.runtime.now,
        newId: this.runtime.newId,
        publish: (chunk) => this.runtime.publishLive(this.conversation, agent, chunk),
        sleep,
        random: Math.random,
      });
      if (command.type === 'model-aborted' && this.runtime.shutdown.aborted) return; // F2
      this.report(command);
    } finally {
      abort.unlink();
      this.running.delete(turnId);
    }
  }

  /** No tool is offered yet: a call of one gets an error result, and the turn goes on. */
  private async runTool(effect: Extract<Effect, { type: 'run-tool' }>): Promise<void> {
    const { agent, turnId, call, name } = effect;
    const result = JSON.stringify({
      error: { code: 'TOOL_NOT_AVAILABLE', message: `you have no tool ${name}` },
    });
    this.report({ type: 'tool-finished', agent, turnId, call, result, duration: 0 });
  }
}
