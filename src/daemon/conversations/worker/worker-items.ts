import {
  type AuditedOutcome,
  auditedOutcomes,
  type Command,
  type Decision,
  type Reply,
} from '../../../conversation/index.ts';
import { messageOf, ParleyError } from '../../../kernel/index.ts';
import type { Runtime } from '../../runtime.ts';
import type { PreparedRequest } from './prepare.ts';

/** Helpers of `worker.ts`: the items of its mailbox, and what it reports of them. */

const REPORT_RETRY_MS = 1_000;

export interface Item {
  readonly command: Command;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
  readonly onDurable: (() => void) | undefined;
}

/** For decisions without a sender. */
export const NO_SENDER: Item = {
  command: { type: 'recover' },
  resolve: () => undefined,
  reject: () => undefined,
  onDurable: undefined,
};
export const EMPTY_DECISION: Decision = { entries: [], effects: [], reply: { kind: 'done' } };

/** A bug, not retryable. */
export function decisionFailure(cause: unknown): ParleyError {
  if (cause instanceof ParleyError) return cause;
  return new ParleyError('DECISION_FAILED', `the daemon failed to decide on it: ${messageOf(cause)}`, {
    hint: 'this is a bug in Parley: report it with the post and the log of the daemon',
    cause,
  });
}

export function isPost({ command }: Item): boolean {
  return command.type === 'post';
}

/** The ingress sequences of the posts among them. */
export function sequencesOf(items: readonly Item[]): number[] {
  return items.flatMap(({ command }) =>
    command.type === 'post' && command.ingressSequence !== undefined ? [command.ingressSequence] : [],
  );
}

/** The shared append is too large for the store (WORKER-1); single ones may fit. */
export function isTooLarge(error: unknown): boolean {
  return error instanceof ParleyError && error.code === 'APPEND_TOO_LARGE';
}

/**
 * The audited outcomes of calls whose result may be missing in the log. With several daemons a failed one may still write
 * to the audit log, so a missing record proves nothing.
 */
export async function audited(id: string, runtime: Runtime): Promise<AuditedOutcome[]> {
  const { records, unreadable } = await runtime.store.toolRecords.read(id);
  return auditedOutcomes(records, !runtime.ownership.isShared && unreadable.length === 0);
}

interface Decided {
  readonly item: Item;
  readonly decision: Decision;
}

/** False for copies: their turns belong to another conversation, where they may still run. */
function isOwn({ item: { command } }: Decided): boolean {
  return command.type !== 'copy' && command.type !== 'fork';
}

/** An append, once it is durable. */
export interface Appended {
  readonly decided: readonly Decided[];
  readonly prepared: ReadonlyMap<unknown, PreparedRequest>;
}

/** Notifies agents in other processes of ended turns, since one may still work on it; and telemetry. */
export function observe(
  conversation: string,
  { remote, telemetry }: Pick<Runtime, 'remote' | 'telemetry'>,
  { decided, prepared }: Appended,
): void {
  for (const { decision } of decided.filter(isOwn)) {
    telemetry.applied(conversation, decision);
    for (const entry of decision.entries) {
      if (entry.type !== 'turn-ended' || entry.outcome === 'waiting') continue;
      remote.turnOver?.(entry.turnId);
    }
  }
  for (const { assembled, call } of prepared.values())
    telemetry.viewBuilt(assembled, 'setup' in call ? call.setup.profile.contextTokens : undefined);
}

/** Retries a report whose append failed, for example on a full disk: its effect did happen. */
export function retryReport(
  conversation: string,
  submit: () => Promise<unknown>,
  isOver: () => boolean,
  { log, shutdown }: Pick<Runtime, 'log' | 'shutdown'>,
): void {
  const again = () => {
    const timer = setTimeout(() => {
      if (!isOver() && !shutdown.aborted) submit().catch(again);
    }, REPORT_RETRY_MS);
    timer.unref();
  };
  submit().catch((error: unknown) => {
    if (isOver()) return; // the new owner repairs it
    log.error({ conversation, error: messageOf(error) }, 'a report could not be appended; retrying');
    again();
  });
}
