import {
  type ConversationState,
  checkAudit,
  checkKnowledge,
  checkLaws,
  checkShapes,
  closeStrayCalls,
  EMPTY_STATE,
  type Entry,
  evolve,
  hasOutstandingWork,
} from '../../conversation/index.ts';
import { messageOf } from '../../kernel/index.ts';
import type { ConversationRow, Inspection } from '../../persistence/index.ts';
import { rowOf } from '../conversations/projections.ts';

/**
 * Finds faults in the files of one conversation.
 *
 * OFFLINE-FINDINGS-1  A projection may lag. It is faulty if it does not follow from the first entries of the log, as many
 *                     as it names (L1).
 * OFFLINE-FINDINGS-2  A log with an invalid entry is not checked further: the laws are defined on entries.
 */

export type FindingKind =
  | 'damage'
  | 'torn-tail'
  | 'law'
  | 'stray-call'
  | 'audit'
  | 'output'
  | 'definition'
  | 'view'
  | 'row'
  | 'state'
  | 'mark'
  | 'deleted'
  | 'unreadable';

export interface Finding {
  readonly kind: FindingKind;
  /** The index of the entry; null: not one entry. */
  readonly index: number | null;
  readonly text: string;
  /** What a repair does; null: nothing, since history is never edited. */
  readonly repair: string | null;
}

type WholeLog = Extract<Inspection['log'], { entries: readonly Entry[] }>;

export function findingsOf(conversation: string, inspection: Inspection): Finding[] {
  const { log } = inspection;
  if ('damage' in log) return [finding('damage', messageOf(log.damage))];
  const { entries, tornTail } = log;
  const unreadable = inspection.unreadable.map((text) => finding('unreadable', text));
  const misshapen = checkShapes(entries).map((text) => finding('law', text));
  if (misshapen.length > 0) return [...unreadable, ...misshapen];
  const torn = tornTail
    ? `${tornTail.bytes} bytes after the last complete append are no complete one: a write that was cut short, or an append that lost its end`
    : null;
  return [
    ...unreadable,
    ...(torn ? [finding('torn-tail', torn, 'cuts them off and keeps them in a separate file')] : []),
    ...lawFindings(entries),
    ...checkAudit(entries, inspection.audit).map((text) => finding('audit', text)),
    ...inspection.badAuditLines.map((line) =>
      finding('audit', `line ${line} of audit.jsonl is not a record`),
    ),
    ...missingOutputs(entries, inspection),
    ...projectionFindings(conversation, inspection, log),
  ];
}

/** `path`: a leftover of a deleted conversation. */
export function leftoverFinding(path: string): Finding {
  return finding('deleted', `${path} remains from a deleted conversation`, 'removes it');
}

export function finding(kind: FindingKind, text: string, repair: string | null = null): Finding {
  const index = /^(?:entry|line) (\d+)/.exec(text)?.[1];
  return { kind, index: index === undefined ? null : Number(index), text, repair };
}

function lawFindings(entries: readonly Entry[]): Finding[] {
  const strays = closeStrayCalls(entries, { newId: () => '', createdAt: '' });
  const isStray = (text: string) => text.endsWith('and no turn that could bring it');
  // A restored log continues with another stream, whose sequences begin again: only a claim names the stream.
  const namesStream = entries.some((entry) => entry.type === 'claim' && entry.ingress !== undefined);
  const isRestored = (text: string) => !namesStream && text.endsWith(': a post out of order');
  return [
    ...[
      ...checkLaws(entries).filter((text) => !isStray(text) && !isRestored(text)),
      ...checkKnowledge(entries),
    ].map((text) => finding('law', text)),
    ...strays.map((closing) =>
      finding(
        'stray-call',
        `entry ${closing.call?.index}: the call ${closing.tool_call_id} (${closing.toolName}) has no result, and no turn that could bring it`,
        'appends an error result',
      ),
    ),
  ];
}

const OUTPUT_PATH = /([^/]+)\.json$/;

function missingOutputs(entries: readonly Entry[], { hasOutput }: Inspection): Finding[] {
  return entries.flatMap((entry) => {
    if (entry.type !== 'message' && entry.type !== 'note') return [];
    const name = OUTPUT_PATH.exec(entry.fullOutputPath ?? '')?.[1];
    if (name === undefined || hasOutput(name)) return [];
    return [finding('output', `entry ${entry.index}: its full output is missing (${entry.fullOutputPath})`)];
  });
}

function projectionFindings(conversation: string, inspection: Inspection, { entries }: WholeLog): Finding[] {
  const found: Finding[] = [];
  const rebuilt = 'rebuilds it from the log';
  const row = faultOf(inspection.row, (value) => rowFault(conversation, value, entries));
  const removed = 'removes it from index.json, unless its folder still exists: then it names no entry';
  if (row)
    found.push(finding('row', `its row in index.json ${row}`, entries.length === 0 ? removed : rebuilt));
  const state = faultOf(inspection.state, (value) => stateFault(conversation, value, entries));
  if (state) found.push(finding('state', `state.json ${state}`, rebuilt));
  if (!inspection.isMarked && hasOutstandingWork(stateOf(entries))) {
    const text = 'the log has outstanding work and is not marked: the next start would not resume it';
    found.push(finding('mark', text, 'marks it, so that the next start resumes it'));
  }
  return found;
}

function faultOf<T>(
  read: { readonly value: T | null } | { readonly fault: string },
  check: (value: T) => string | null,
): string | null {
  if ('fault' in read) return `cannot be read: ${read.fault}`;
  return read.value === null ? null : check(read.value);
}

export function stateOf(entries: readonly Entry[]): ConversationState {
  return entries.reduce(evolve, EMPTY_STATE);
}

function rowFault(conversation: string, row: ConversationRow, entries: readonly Entry[]): string | null {
  const made = (known: readonly Entry[]) => rowOf(conversation, stateOf(known), known);
  return mismatch(row.length, entries, made, row);
}

function stateFault(conversation: string, state: unknown, entries: readonly Entry[]): string | null {
  const length = state !== null && typeof state === 'object' && 'length' in state ? state.length : null;
  const made = (known: readonly Entry[]) => ({ id: conversation, ...stateOf(known) });
  return mismatch(Number(length), entries, made, state);
}

function mismatch(
  length: number,
  entries: readonly Entry[],
  made: (known: readonly Entry[]) => object,
  found: unknown,
): string | null {
  if (!(length <= entries.length)) return `names ${length} entries; the log has ${entries.length}`;
  const due = made(entries.slice(0, length));
  return JSON.stringify(found) === JSON.stringify(due)
    ? null
    : `does not follow from the first ${length} entries of the log`;
}
