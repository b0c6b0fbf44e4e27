import { reportedText } from '../log/answer.ts';
import type { Entry, MessageEntry } from '../log/entry.ts';
import { wireCallId } from '../log/entry.ts';
import { fileLine, filesOf } from '../log/parts.ts';
import { attribution, escapeMarkers, escapeRecalled } from '../text/text.ts';
import { AgentView } from '../view/view.ts';
import type { ViewPolicy } from '../view/view-parts.ts';

/**
 * One conversation's log, as one agent may read it entry by entry.
 *
 * RECALLED-LOG-1 It contains what the agent's views contain, or will contain without being named first: nothing withheld
 *                (V1), nothing hidden (V5), no call or result of another agent (L18).
 * RECALLED-LOG-2 The words are those of the view. Own results and reported calls are complete even if the view shortens or omits them.
 * RECALLED-LOG-3 No line of an entry can pass for one of `recall` itself (L17).
 */

export interface RecalledEntry {
  readonly index: number;
  readonly createdAt: string;
  /** The author, with a colon and a blank; empty for a notice, which contains its own heading. */
  readonly label: string;
  /** In full. */
  readonly text: string;
}

/** Both ends included. */
export interface IndexRange {
  readonly from: number;
  readonly to: number;
}

/** Entries to process before the generator yields. */
export const STEP = 500;

const RECALL = 'recall';

export class RecalledLog {
  readonly #entries: readonly Entry[];
  readonly #policy: ViewPolicy;
  readonly #view: AgentView;

  constructor(entries: readonly Entry[], agent: string, policy: ViewPolicy) {
    this.#entries = entries;
    this.#policy = policy;
    this.#view = new AgentView(entries, agent, policy);
  }

  get length(): number {
    return this.#entries.length;
  }

  /** Folds the log. Run it to its end before the first read. */
  *fold(): Generator<void, void> {
    for (let to = 0; to < this.#entries.length; yield) {
      to = Math.min(to + STEP, this.#entries.length);
      this.#view.catchUp(to);
    }
  }

  /** Null: this agent cannot be shown the entry (RECALLED-LOG-1). */
  read(index: number): RecalledEntry | null {
    const entry = this.#entries[index];
    if (!entry) return null;
    if (entry.type === 'message' && entry.role === 'tool') return this.#readResult(entry);
    if (!this.#view.knowledge.knows(entry)) return null;
    const words = this.#view.renderEntry(index);
    if (!words) return null;
    if (words.role === 'assistant') return this.#readOwn(entry, true);
    const name = attribution(entry.author, this.#policy.otherAgentsAs);
    const content =
      entry.type === 'message' && entry.reported ? name + wordsOf(entry) : (words.content ?? '');
    // A message without attribution cannot begin like one: that would have been escaped.
    if (content.startsWith(name)) return recalled(entry, name, content.slice(name.length));
    return recalled(entry, entry.type === 'message' ? `${entry.author.kind}: ` : '', content);
  }

  /** Like `read`, without earlier recalls of the agent: a search would find each word that they repeat. */
  readOnce(index: number): RecalledEntry | null {
    const entry = this.#entries[index];
    const found = this.read(index);
    if (!found || entry?.type !== 'message') return found;
    if (entry.role === 'tool') return this.#callOf(entry)?.function.name === RECALL ? null : found;
    return entry.tool_calls?.some((call) => call.function.name === RECALL)
      ? this.#readOwn(entry, false)
      : found;
  }

  #readOwn(entry: Entry, withRecalls: boolean): RecalledEntry | null {
    if (entry.type !== 'message') return null;
    const calls = (entry.tool_calls ?? []).map(({ function: { name, arguments: given } }, position) =>
      name === RECALL && !withRecalls
        ? ''
        : `call ${wireCallId({ index: entry.index, position })}: ${name} ${given}`,
    );
    const lines = [wordsOf(entry), ...calls.map(escapeMarkers)].filter((line) => line !== '');
    return recalled(entry, 'you: ', lines.join('\n'));
  }

  /** Only the result that the view shows after the call (V7). */
  #readResult(entry: MessageEntry): RecalledEntry | null {
    const call = this.#callOf(entry);
    if (!call || !entry.call) return null;
    const label = `result of ${wireCallId(entry.call)}, ${call.function.name}: `;
    return recalled(entry, label, escapeMarkers(entry.content ?? ''));
  }

  /** The own call that this entry answers. */
  #callOf({ index, call: place }: MessageEntry) {
    if (!place) return undefined;
    const asked = this.#entries[place.index];
    if (asked?.type !== 'message' || !this.#view.knowledge.knows(asked)) return undefined;
    if (this.#view.knowledge.resultsOf(place.index)[place.position] !== index) return undefined; // L18, V7
    return asked.tool_calls?.[place.position];
  }
}

/** With all that it reports (RECALLED-LOG-2). */
function wordsOf({ content, reported }: MessageEntry): string {
  return escapeMarkers(
    [content ?? '', reportedText(reported, true)].filter((text) => text !== '').join('\n'),
  );
}

function recalled(entry: Entry, label: string, text: string): RecalledEntry {
  const { index, createdAt } = entry;
  const files = filesOf(entry).map(fileLine);
  const lines = [text, ...files].filter((line) => line !== '');
  return { index, createdAt, label, text: escapeRecalled(lines.join('\n')) };
}

/** The beginning of an entry's first line. Its text follows on the same line, so that no text can imitate a heading. */
export function headingOf({ index, createdAt, label }: RecalledEntry): string {
  return `--- entry ${index} · ${createdAt} · ${label}`;
}
