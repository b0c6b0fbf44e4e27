import type { Entry } from '../../../src/client/index.ts';
import type { EntryType } from '../../../src/conversation/index.ts';
import { type Observed, type SeenView, type Violation, violation } from '../findings.ts';

/**
 * Checks the requests of agents.
 *
 * VIEWS-1 The request of an answer can be built again, byte for byte, from the definition that its turn recorded: it has the hash
 *    in the answer.
 * VIEWS-2 Every request follows the protocol: each result directly after its call, no call without a result, and a last message
 *    that is not the agent's own.
 * VIEWS-3 Every entry is in a request once; only the digest of missed entries may repeat one.
 * VIEWS-4 When a turn ends, the agent's cursor has passed only entries that its requests contained.
 */
export function checkViews({ logs, views }: Pick<Observed, 'logs' | 'views'>): Violation[] {
  return views.flatMap((view) => {
    const entries = logs.get(view.conversation) ?? [];
    const wrong = (text: string) => violation('view', view.conversation, view.at, text);
    return [
      ...checkHash(view, entries).map((text) => wrong(text)),
      ...checkProtocol(view).map((text) => wrong(`the request of ${view.agent}: ${text}`)),
      ...checkOnce(view).map((text) => wrong(text)),
      ...checkCursor(view, entries),
    ];
  });
}

/** VIEWS-1 */
function checkHash({ at, agent, requestHash, definition }: SeenView, entries: readonly Entry[]): string[] {
  const entry = at === null ? undefined : entries[at];
  if (entry?.type !== 'message' || entry.author.id !== agent || !entry.requestHash) return [];
  if (definition && !definition.recorded) return ['the turn of this answer recorded no definition'];
  return entry.requestHash === requestHash ? [] : ['the request for this answer cannot be built again'];
}

/** VIEWS-2 */
function checkProtocol({ messages, fault }: SeenView): string[] {
  if (fault) return [`the guard refuses it: ${fault.code}: ${fault.message}`];
  const faults: string[] = [];
  let open: string[] = [];
  for (const [at, message] of messages.entries()) {
    if (message.role === 'tool') {
      if (open.shift() !== message.tool_call_id) faults.push(`message ${at} is a result at a wrong position`);
      continue;
    }
    if (open.length > 0) faults.push(`message ${at} is before the result of ${open.join(', ')}`);
    open = (message.tool_calls ?? []).map(({ id }) => id);
  }
  if (open.length > 0) faults.push(`${open.join(', ')} has no result`);
  if (messages.at(-1)?.role === 'assistant') faults.push('its last message is the agent’s own');
  return faults;
}

/** VIEWS-3 */
function checkOnce({ parts, agent }: SeenView): string[] {
  const seen = new Set<number>();
  return parts
    .filter(({ kind }) => kind !== 'away-block')
    .flatMap(({ entries }) => entries)
    .flatMap((index) => {
      if (!seen.has(index)) {
        seen.add(index);
        return [];
      }
      return [`entry ${index} is twice in a request of ${agent}`];
    });
}

/** VIEWS-4, for the turn that this answer ended. A request has all content of the previous ones. */
function checkCursor(view: SeenView, entries: readonly Entry[]): Violation[] {
  const { at, agent, conversation } = view;
  if (at === null) return [];
  const end = entries.slice(at + 1).find((entry) => entry.type === 'turn-ended' && entry.agent === agent);
  const answer = entries[at];
  if (end?.type !== 'turn-ended' || end.turnId !== answer?.turnId) return [];
  const between = entries.slice(at + 1, end.index);
  if (between.some((entry) => isOwnMessage(entry, agent))) return []; // A later request of the turn shows more.
  const held = view.included.flatMap((index) => [index, ...replacedBy(entries[index])]);
  const shown = new Set([...held, ...between.flatMap(replacedBy)]);
  return entries
    .slice(0, end.lastProcessedMessageIndex)
    .filter((entry) => mayBeShown(entry, agent) && !shown.has(entry.index))
    .map(({ index }) =>
      violation(
        'cursor',
        conversation,
        end.index,
        `the cursor of ${agent} passed entry ${index}, which it was never shown`,
      ),
    );
}

function isOwnMessage(entry: Entry, agent: string): boolean {
  return entry.type === 'message' && entry.role === 'assistant' && entry.author.id === agent;
}

/** The entries that the result of a tool replaces. */
function replacedBy(entry: Entry | undefined): readonly number[] {
  return entry?.type === 'message' && entry.role === 'tool' ? (entry.answers ?? []) : [];
}

/** Whether every agent is shown an entry of this type; decided apart from `ENTRY_TRAITS`, which it checks. */
const IS_NOTICE = {
  message: false,
  'phase-entered': true,
  'mode-entered': true,
  handoff: true,
  'delegation-requested': false,
  'delegation-answered': false,
  'turn-started': false,
  'message-delivered': false,
  'turn-ended': false,
  'tool-started': false,
  'approval-requested': false,
  'approval-answered': false,
  summary: false,
  'attempt-failed': false,
  'run-started': true,
  'node-entered': true,
  'run-ended': true,
  'agent-stopped': false,
  'agent-resumed': false,
  'title-set': false,
  feedback: false,
  'session-set': false,
  'limit-reached': true,
  claim: false,
  forked: false,
  'agent-hired': false,
  'agent-dismissed': false,
  'team-changed': false,
  note: true,
} as const satisfies Record<EntryType, boolean>;

/** Of another author, and of a kind that is part of views. */
function mayBeShown(entry: Entry, agent: string): boolean {
  if (entry.includeInContext === false || entry.isCollapsed) return false;
  if (entry.author.kind === 'agent' && entry.author.id === agent) return false;
  if (entry.type === 'delegation-requested') return entry.to === agent;
  if (entry.type !== 'message') return IS_NOTICE[entry.type];
  return entry.role !== 'tool' && !!entry.content;
}
