import { type Entry, finishNotice, teamChangeText, traitsOf } from '../../client/index.ts';
import { visibleCall } from '../../kernel/index.ts';
import { firstLine } from './text.ts';

/** One line for each entry type except messages; exhaustive. */

type EventEntry = Exclude<Entry, { type: 'message' }>;

export function describeEvent(entry: EventEntry): string {
  switch (entry.type) {
    case 'turn-started':
      return `${entry.agent} ${turnText(entry)}`;
    case 'turn-ended':
      return `${entry.agent}'s turn ${entry.outcome === 'waiting' ? 'waits' : `ended: ${outcomeOf(entry)}`}`;
    case 'message-delivered':
      return `${entry.agent} was shown ${indexes(entry.entries)} in the middle of its turn`;
    case 'tool-started':
      return `tool ${entry.toolName ?? ''} started`.replace('  ', ' ');
    case 'summary':
      return `${entry.agent}'s view of ${entry.fromIndex}–${entry.toIndex} was summed up`;
    case 'claim':
      return `daemon ${entry.daemon} works here (epoch ${entry.epoch}${entry.attempt ? `, attempt ${entry.attempt}` : ''})`;
    case 'session-set':
      return `${entry.agent} continues the session ${entry.sessionId}, which entry ${entry.from} names`;
    default:
      return describeNotice(entry);
  }
}

function outcomeOf({ outcome, finishReason }: Extract<EventEntry, { type: 'turn-ended' }>): string {
  const cut = finishNotice(finishReason);
  return cut === null ? outcome : `${outcome}, its answer was ${cut}`;
}

type Bookkeeping =
  | 'turn-started'
  | 'turn-ended'
  | 'message-delivered'
  | 'tool-started'
  | 'summary'
  | 'session-set'
  | 'claim';
type Notice = Exclude<EventEntry, { type: Bookkeeping }>;

function describeNotice(entry: Notice): string {
  switch (entry.type) {
    case 'phase-entered':
      return `phase ${entry.from} → ${entry.to} by ${entry.by}${because(entry.reason)}`;
    case 'mode-entered':
      return `mode ${entry.from} → ${entry.to} by ${entry.by}`;
    case 'handoff':
      return `${entry.from} hands over to ${entry.to}: ${firstLine(entry.summary, 120)}`;
    case 'delegation-requested':
      return `${entry.from} asks ${entry.to}: ${firstLine(entry.request, 120)}`;
    case 'delegation-answered':
      return `${entry.from} answered ${entry.to}${entry.late ? ', late' : ''}`;
    case 'approval-requested':
      return `approval ${entry.approvalId} is needed (${entry.risk}${entry.mayHaveRun ? ', may have run already' : ''})${requestedCall(entry)}`;
    case 'approval-answered':
      return `approval ${entry.approvalId}: ${entry.answer}${answeredBy(entry)}${because(entry.reason)}`;
    case 'run-started':
      return `run ${entry.runId} of ${entry.workflowId} started`;
    case 'node-entered':
      return `run ${entry.runId} entered ${entry.node}${entry.agent ? `; ${entry.agent} begins with the next message` : ''}`;
    case 'run-ended':
      return `run ${entry.runId} ended: ${entry.outcome}${entry.author.kind === 'system' ? because(entry.summary) : ''}`;
    case 'agent-stopped':
      return `${entry.agent ?? 'the conversation'} was stopped by ${entry.by}`;
    case 'agent-resumed':
      return `${entry.agent ?? 'the conversation'} was resumed by ${entry.by}`;
    case 'title-set':
      return `title: ${entry.title}`;
    case 'limit-reached':
      return `limit ${entry.limit} reached: ${entry.content}`;
    case 'note': // a late result may be long
      return entry.call ? firstLine(entry.content, 160) : entry.content;
    case 'forked':
      if (entry.file !== undefined) return `imported from ${entry.file}`;
      return `forked from ${entry.from} at ${entry.at} by ${entry.author.id}`;
    case 'agent-hired':
      return `${entry.by} hired ${entry.agent}: ${firstLine(entry.description || entry.persona, 120)}`;
    case 'agent-dismissed':
      return `${entry.by} dismissed ${entry.agent}${because(entry.reason)}`;
    case 'team-changed':
      return `the team changed by ${entry.author.id}: ${entry.agents.map(teamChangeText).join('; ')}`;
    default:
      return unknownKind(entry);
  }
}

/** Complete and escaped, because a person decides by it. Empty for old logs, whose entries lack the call. */
function requestedCall(entry: Extract<Entry, { type: 'approval-requested' }>): string {
  const { agent = entry.author.id, tool, arguments: given = '{}' } = entry;
  return tool === undefined ? '' : `: ${agent} wants to call ${visibleCall(tool, given)}`;
}

/** For entries of a newer version. */
function unknownKind(entry: never): string {
  return `${firstLine(String((entry as Entry).type), 60)}: this version does not know that kind of entry`;
}

/** True for entries that a chat shows; of turn ends, only unsuccessful ones. */
export function concernsPeople(entry: EventEntry): boolean {
  if (entry.type === 'turn-ended') return entry.outcome === 'aborted' || entry.outcome === 'limited';
  return !traitsOf(entry).isMachinery;
}

/** Empty for an expired approval, which no person answered. */
const answeredBy = ({ author }: Entry) => (author.kind === 'person' ? ` by ${author.name}` : '');
const because = (reason: string | undefined) => (reason ? ` (${firstLine(reason, 120)})` : '');
function turnText({ resumed, trigger }: Extract<Entry, { type: 'turn-started' }>): string {
  if (!resumed) return `begins a turn for ${indexes(trigger)}`;
  return trigger.length === 0 ? 'continues its turn' : `continues its turn, for ${indexes(trigger)}`;
}

const indexes = (list: readonly number[]) => (list.length === 0 ? 'nothing' : list.join(', '));
