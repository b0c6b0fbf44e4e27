import { hasVisible } from '../../kernel/index.ts';
import type { Entry, EntryType, MessageEntry } from './entry.ts';

/**
 * What several places must know of each entry type. A type without a row does not compile. Neither does one without
 * a line in the fold (`APPLY`), or without a case in the switches that end in `satisfies never`.
 */
export interface EntryTraits {
  /** The agents, apart from its author, whose views may contain it (V5). */
  readonly shownTo: 'all' | 'addressee' | 'none';
  /** It names agents that must process it in a turn (V1, L14): `routedTo` lists them. */
  readonly isRouted: boolean;
  /** The away block lists it (V10). */
  readonly isInAwayBlock: boolean;
  /** After a claim it proves that the claimed turn got further (CLAIMS-3). */
  readonly isProgress: boolean;
  /** It records how work is done, not a message or a decision: a short rendering for people omits it. */
  readonly isMachinery: boolean;
}

const HIDDEN = { shownTo: 'none', isRouted: false, isInAwayBlock: false } as const;
const NOTICE = { shownTo: 'all', isRouted: false, isInAwayBlock: false } as const;
const RESULT = { isProgress: true, isMachinery: false } as const;
const STEP = { isProgress: false, isMachinery: true } as const;

export const ENTRY_TRAITS = {
  message: { shownTo: 'all', isRouted: true, isInAwayBlock: true, ...RESULT },
  'phase-entered': { ...NOTICE, ...RESULT },
  'mode-entered': { ...NOTICE, ...RESULT },
  handoff: { shownTo: 'all', isRouted: true, isInAwayBlock: true, ...RESULT },
  'delegation-requested': { shownTo: 'addressee', isRouted: true, isInAwayBlock: false, ...RESULT },
  'delegation-answered': { ...HIDDEN, ...RESULT },
  'turn-started': { ...HIDDEN, ...STEP },
  'message-delivered': { ...HIDDEN, ...STEP },
  'turn-ended': { ...HIDDEN, ...RESULT },
  'tool-started': { ...HIDDEN, ...STEP },
  'approval-requested': { ...HIDDEN, ...RESULT },
  'approval-answered': { ...HIDDEN, ...RESULT },
  summary: { ...HIDDEN, isProgress: true, isMachinery: true },
  'attempt-failed': { ...HIDDEN, ...RESULT },
  'run-started': { ...NOTICE, ...RESULT },
  'node-entered': { shownTo: 'all', isRouted: true, isInAwayBlock: false, ...RESULT },
  'run-ended': { ...NOTICE, ...RESULT },
  'agent-stopped': { ...HIDDEN, ...RESULT },
  'agent-resumed': { ...HIDDEN, isProgress: false, isMachinery: false },
  'title-set': { ...HIDDEN, isProgress: true, isMachinery: true },
  feedback: { ...HIDDEN, isProgress: false, isMachinery: false },
  'session-set': { ...HIDDEN, ...STEP },
  'limit-reached': { ...NOTICE, ...RESULT },
  claim: { ...HIDDEN, ...STEP },
  forked: { ...HIDDEN, ...RESULT },
  'agent-hired': { ...HIDDEN, ...RESULT },
  'agent-dismissed': { ...HIDDEN, ...RESULT },
  'team-changed': { ...HIDDEN, isProgress: false, isMachinery: false },
  note: { ...NOTICE, ...RESULT },
} as const satisfies Record<EntryType, EntryTraits>;

/** A log that a newer version wrote may hold other types: agents are not shown them. */
const UNKNOWN: EntryTraits = { ...HIDDEN, ...RESULT };

export function traitsOf({ type }: Pick<Entry, 'type'>): EntryTraits {
  return Object.hasOwn(ENTRY_TRAITS, type) ? ENTRY_TRAITS[type] : UNKNOWN;
}

type Table = typeof ENTRY_TRAITS;
type TypeWhere<K extends keyof EntryTraits, V> = {
  [T in EntryType]: Table[T][K] extends V ? T : never;
}[EntryType];

/** Entries that some view may contain. */
export type ShownEntry = Extract<Entry, { type: TypeWhere<'shownTo', 'all' | 'addressee'> }>;
/** Entries that the away block may list. */
export type AwayEntry = Extract<Entry, { type: TypeWhere<'isInAwayBlock', true> }>;
type RoutedEntry = Extract<Entry, { type: TypeWhere<'isRouted', true> }>;

export function isShown(entry: Entry): entry is ShownEntry {
  return traitsOf(entry).shownTo !== 'none';
}

export function isInAwayBlock(entry: Entry): entry is AwayEntry {
  return traitsOf(entry).isInAwayBlock;
}

function isRouted(entry: Entry): entry is RoutedEntry {
  return traitsOf(entry).isRouted;
}

/** The agents that must process an entry (V1). */
export function routedTo(entry: Entry): readonly string[] {
  if (!isRouted(entry)) return [];
  switch (entry.type) {
    case 'message':
    case 'node-entered':
      return entry.to ?? [];
    case 'handoff':
    case 'delegation-requested':
      return [entry.to];
    default:
      return entry satisfies never;
  }
}

/** True for an answer that the same turn continues: the model is called again, with this answer in its request. */
export function isContinued(
  entry: Pick<MessageEntry, 'finishReason' | 'content' | 'tool_calls' | 'invalid'>,
): boolean {
  return entry.invalid !== undefined || isPaused(entry);
}

export function isPaused({
  finishReason,
  content,
  tool_calls: calls = [],
}: Pick<MessageEntry, 'finishReason' | 'content' | 'tool_calls'>): boolean {
  return finishReason === 'pause' && calls.length === 0 && hasVisible(content ?? '');
}
