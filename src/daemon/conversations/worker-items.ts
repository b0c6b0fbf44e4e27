import {
  type AuditedOutcome,
  auditedOutcomes,
  type Command,
  type Decision,
  type Reply,
} from '../../conversation/index.ts';
import { messageOf, ParleyError } from '../../kernel/index.ts';
import type { Runtime } from '../runtime.ts';
import type { PreparedRequest } from './prepare.ts';

/** What a worker is sent, and what it says of it. */

const REPORT_AGAIN_MS = 1_000;

export interface Item {
  readonly command: Command;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
  readonly onDurable: (() => void) | undefined;
}

/** What is decided for nobody in particular is answered to nobody. */
export const NOBODY: Item = {
  command: { type: 'recover' },
  resolve: () => undefined,
  reject: () => undefined,
  onDurable: undefined,
};
export const NOTHING: Decision = { entries: [], effects: [], reply: { kind: 'done' } };

/** A bug, and no fault of the outside world: waiting mends it not. */
export function undecided(cause: unknown): ParleyError {
  if (cause instanceof ParleyError) return cause;
  return new ParleyError('DECISION_FAILED', `the daemon failed to decide on it: ${messageOf(cause)}`, {
    hint: 'this is a fault of Parley itself: report it with what was posted and the daemon’s log',
    cause,
  });
}

interface Decided {
  readonly item: Item;
  readonly decision: Decision;
}

/** False for copies: their turns belong to another conversation, where they may still run. */
function isOwn({ item: { command } }: Decided): boolean {
  return command.type !== 'copy' && command.type !== 'fork';
}

export function isPost({ command }: Item): boolean {
  return command.type === 'post';
}

/** Where the posts among them stand in the ingress stream. */
export function sequencesOf(items: readonly Item[]): number[] {
  return items.flatMap(({ command }) =>
    command.type === 'post' && command.ingressSequence !== undefined ? [command.ingressSequence] : [],
  );
}

/** Together they are more than the store takes at once (WORKER-1); alone they may not be. */
export function isTooLarge(error: unknown): boolean {
  return error instanceof ParleyError && error.code === 'APPEND_TOO_LARGE';
}

/**
 * What the audit log says of calls whose result the log may lack. Where several daemons share the work, the one that was
 * silent may still write to the audit log, so a record that is missing there proves nothing.
 */
export async function audited(id: string, runtime: Runtime): Promise<AuditedOutcome[]> {
  const { records, unreadable } = await runtime.store.toolRecords.read(id);
  return auditedOutcomes(records, !runtime.ownership.isShared && unreadable.length === 0);
}

/** Of turns that are over: an agent in another process may still work on one. */
export function tellModels(decided: readonly Decided[], { agents }: Pick<Runtime, 'agents'>): void {
  for (const entry of decided.filter(isOwn).flatMap(({ decision }) => decision.entries)) {
    if (entry.type !== 'turn-ended' || entry.outcome === 'waiting') continue;
    agents.get(entry.agent)?.model.turnOver?.(entry.turnId);
  }
}

export function observe(
  conversation: string,
  { telemetry }: Pick<Runtime, 'telemetry'>,
  decided: readonly Decided[],
  prepared: ReadonlyMap<unknown, PreparedRequest>,
): void {
  for (const { decision } of decided.filter(isOwn)) telemetry.applied(conversation, decision);
  for (const { assembled } of prepared.values()) telemetry.viewBuilt(assembled);
}

/** A report whose append failed (a full disk, say) is kept and sent again: its effect did happen. */
export function keepReporting(
  conversation: string,
  submit: () => Promise<unknown>,
  isOver: () => boolean,
  { log, shutdown }: Pick<Runtime, 'log' | 'shutdown'>,
): void {
  const again = () => {
    const timer = setTimeout(() => {
      if (!isOver() && !shutdown.aborted) submit().catch(again);
    }, REPORT_AGAIN_MS);
    timer.unref();
  };
  submit().catch((error: unknown) => {
    if (isOver()) return; // whoever has the conversation now makes its own
    log.error({ conversation, error: messageOf(error) }, 'a report could not be appended; trying again');
    again();
  });
}
