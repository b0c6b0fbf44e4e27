import { reportedText, schemaIn, schemaWords } from '../log/answer.ts';
import {
  type Blocks,
  type Entry,
  type EntryOf,
  type MessageEntry,
  type Mode,
  wireCallId,
} from '../log/entry.ts';
import { isInAwayBlock, isPaused, isShown, routedTo, type ShownEntry } from '../log/entry-traits.ts';
import { type FilePart, fileLine, filesOf } from '../log/parts.ts';
import { agentOfNode } from '../state/answering.ts';
import { MOST_AWAY_TOKENS } from '../state/budget.ts';
import { Knowledge } from '../state/knowledge.ts';
import { plainName } from '../text/look-alikes.ts';
import {
  AWAY_MARKER,
  attribution,
  escapeMarkers,
  escapeTokens,
  estimateTokens,
  NEW_INTERACTION_MARKER,
  type OtherAgentsAs,
  previewOf,
} from '../text/text.ts';
import { ATTACH } from '../tools/conversation-tools.ts';

/**
 * What one agent is shown for one model call: rules V1 to V19 of docs/spec/view.md; docs/spec/laws.md lists their tests.
 * `Knowledge` determines which entries appear and where; this file words them from the agent's perspective.
 *
 * VIEW-1 A pure function of the entries, the agent, the trigger and the policy (L6); its caches depend on nothing else.
 * VIEW-2 Each message appears once; only the away block repeats any (L7).
 * VIEW-3 Without block and marker each request is a prefix of the next (V9): the text of a message never changes.
 */

export interface ViewPolicy {
  readonly otherAgentsAs: OtherAgentsAs;
  readonly includeCollapsed: boolean;
  /** False: a result reads `[result omitted: recall <index>]`. */
  readonly includeToolResults: boolean;
  /** Estimated tokens of the messages that the away block shows in full. */
  readonly awayTokens: number;
  /** True: an agent's own messages include their reasoning. */
  readonly includeReasoning?: boolean;
}

export const DEFAULT_VIEW_POLICY: ViewPolicy = {
  otherAgentsAs: 'system',
  includeCollapsed: false,
  includeToolResults: true,
  awayTokens: MOST_AWAY_TOKENS,
};

interface ViewToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface ViewFile extends FilePart {
  /** A reduction took it out: only its line remains (V17). */
  readonly isDropped?: true;
}

/** One message of a request, in the chat-completions form. */
export interface ViewMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string | null;
  /** The reasoning of an own message, if the policy includes it. */
  readonly reasoning?: string;
  /** The files of a message with the role `user`, which `content` does not mention (V19). */
  readonly files?: readonly ViewFile[];
  /** The blocks of an own message. */
  readonly blocks?: Blocks;
  readonly tool_calls?: readonly ViewToolCall[];
  readonly tool_call_id?: string;
}

export type PartKind = 'run-context' | 'summary' | 'history' | 'away-block' | 'marker' | 'trigger' | 'turn';

/** A message, the entries it comes from, and its part of the request. */
export interface ViewPart {
  readonly kind: PartKind;
  readonly entries: readonly number[];
  readonly message: ViewMessage;
}

/** A request's messages after the prefix. `history` is shared and grows: use its first `historyLength` items. */
export interface View {
  readonly history: readonly ViewPart[];
  readonly historyLength: number;
  /** Changes when `history` changed other than by growth: discard caches built on it. */
  readonly historyVersion: number;
  /** Block, marker, trigger, and the steps of the turn so far. */
  readonly tail: readonly ViewPart[];
}

/** Tools whose results quote the conversation: that text is escaped (L17). */
const QUOTING_TOOLS: ReadonlySet<string> = new Set(['recall', 'delegate', 'ask']);

/** Follows a paused answer: providers refuse a request that ends with the agent's own words (GUARD-2). */
const CONTINUE_NOTICE =
  '=== CONTINUE YOUR ANSWER ===\nThe provider paused it. Continue where it ends, and repeat nothing.';

const SCHEMA_TITLE = 'ANSWER AS JSON';
const INVALID_TITLE = 'YOUR ANSWER DOES NOT MATCH THE SCHEMA';
const INVALID_ADVICE = 'Answer again: one JSON value that matches it, without any other text.';

/** The mode banner, the last section of the prefix. */
export function modeBanner(mode: Mode): string {
  return `MODE\n- active: ${mode}\n- note: history may include other modes; follow current instructions.`;
}

/** One agent's view of one log. An update costs the new entries only. */
export class AgentView {
  readonly knowledge: Knowledge;
  readonly #entries: readonly Entry[];
  readonly #policy: ViewPolicy;
  #history: ViewPart[] = [];
  /** Number of indexes of `knowledge.history` that `history` contains in words. */
  #rendered = 0;
  #version = 0;
  #secondPersonAt = Number.POSITIVE_INFINITY;
  #firstPerson: string | null = null;
  #peopleCounted = 0;

  constructor(entries: readonly Entry[], agent: string, policy: ViewPolicy) {
    this.#entries = entries;
    this.#policy = policy;
    this.knowledge = new Knowledge(agent, policy);
  }

  /** Definitions that differ elsewhere have equal policies. */
  isUnder(policy: ViewPolicy): boolean {
    return policy === this.#policy || JSON.stringify(policy) === JSON.stringify(this.#policy);
  }

  /** The view of the log's first `to` entries. A length below one that was built before is built from scratch. */
  build(to = this.#entries.length): View {
    if (to < this.knowledge.length)
      return new AgentView(this.#entries, this.knowledge.agent, this.#policy).build(to);
    this.catchUp(to);
    this.#wordHistory();
    const turn = this.knowledge.turn;
    const tail: ViewPart[] = [];
    if (turn) {
      if (turn.block.length > 0) tail.push(...this.#awayBlock(turn.block)); // V10
      for (const index of turn.trigger) this.#render(index, 'trigger', tail);
      for (const index of turn.steps) this.#render(index, 'turn', tail);
    }
    return {
      history: this.#history,
      historyLength: this.#history.length,
      historyVersion: this.#version,
      tail,
    };
  }

  /** Folds the log's first `to` entries without rendering them: enough for `renderEntry`. */
  catchUp(to: number): void {
    this.knowledge.catchUp(this.#entries, to);
    this.#countPeople(to);
  }

  /** The message of one entry, independent of its position. Results have none: they belong to their calls. */
  renderEntry(index: number): ViewMessage | undefined {
    const parts: ViewPart[] = [];
    this.#render(index, 'history', parts);
    return parts[0]?.message;
  }

  #wordHistory(): void {
    if (this.#version !== this.knowledge.version) {
      this.#version = this.knowledge.version;
      this.#history = [];
      this.#rendered = 0;
    }
    const known = this.knowledge.history;
    for (; this.#rendered < known.length; this.#rendered++)
      this.#render(known[this.#rendered], 'history', this.#history);
  }

  /** V15: in log order, the same for all agents. A collapsed message counts, since some policy shows it. */
  #countPeople(to: number): void {
    for (; this.#peopleCounted < to; this.#peopleCounted++) {
      const entry = this.#entries[this.#peopleCounted];
      if (entry?.type !== 'message' || entry.author.kind !== 'person') continue;
      if (entry.includeInContext === false || !(entry.content || entry.parts)) continue;
      this.#firstPerson ??= entry.author.id;
      if (entry.author.id !== this.#firstPerson)
        this.#secondPersonAt = Math.min(this.#secondPersonAt, entry.index);
    }
  }

  #render(index: number | undefined, kind: PartKind, into: ViewPart[]): void {
    const entry = index === undefined ? undefined : this.#entries[index];
    if (!entry) return;
    const own = entry.author.kind === 'agent' && entry.author.id === this.knowledge.agent;
    if (own && entry.type === 'message') this.#wordOwn(entry, kind, into);
    else if (entry.type === 'summary' && entry.agent === this.knowledge.agent)
      into.push({ kind: 'summary', entries: [entry.index], message: this.#wordSummary(entry) });
    else if (isShown(entry) && this.knowledge.mayContain(entry)) {
      into.push({ kind, entries: [entry.index], message: this.#wordOther(entry) });
      if (entry.type === 'message' && entry.author.kind !== 'person') this.#wordFiles([entry], kind, into);
    }
  }

  /** An own assistant entry with its results, each directly after its call (V7). */
  #wordOwn(entry: MessageEntry, kind: PartKind, into: ViewPart[]): void {
    const calls = (entry.tool_calls ?? []).map((call, position) => ({
      id: wireCallId({ index: entry.index, position }),
      type: 'function' as const,
      function: { name: call.function.name, arguments: call.function.arguments },
    }));
    const thought = {
      ...(this.#policy.includeReasoning && entry.reasoning ? { reasoning: entry.reasoning } : {}),
      ...(entry.blocks ? { blocks: entry.blocks } : {}),
    };
    const message: ViewMessage =
      calls.length > 0
        ? { role: 'assistant', content: entry.content || null, ...thought, tool_calls: calls }
        : { role: 'assistant', content: wordsOf(entry), ...thought };
    into.push({ kind, entries: [entry.index], message });
    if (isPaused(entry)) {
      const notice = { role: this.#policy.otherAgentsAs, content: CONTINUE_NOTICE };
      into.push({ kind, entries: [], message: notice });
    }
    if (entry.invalid !== undefined) {
      const content = heading(INVALID_TITLE, `${entry.invalid}\n${INVALID_ADVICE}`);
      into.push({ kind, entries: [], message: { role: this.#policy.otherAgentsAs, content } });
    }
    const results = this.knowledge.resultsOf(entry.index);
    calls.forEach((call, position) => {
      const result = this.#resultEntry(results[position]);
      into.push({
        kind,
        entries: result ? [result.index, ...(result.answers ?? [])] : [],
        message: {
          role: 'tool',
          content: this.#resultText(result, call.function.name),
          tool_call_id: call.id,
        },
      });
    });
    const found = results.flatMap((index) => {
      const result = this.#resultEntry(index);
      // What it attached is in its own message.
      return result && result.toolName !== ATTACH && this.#policy.includeToolResults ? [result] : [];
    });
    this.#wordFiles([entry, ...found], kind, into);
  }

  /** V19: providers take files from the user only, so those of others and of results follow as a message of its own. */
  #wordFiles(owners: readonly MessageEntry[], kind: PartKind, into: ViewPart[]): void {
    const having = owners.filter((entry) => filesOf(entry).length > 0);
    if (having.length === 0) return;
    const entries = having.map(({ index }) => index);
    const files = having.flatMap((entry) => this.#filesOf(entry));
    into.push({ kind, entries, message: { role: 'user', content: '', files } });
  }

  #filesOf(entry: MessageEntry): readonly ViewFile[] {
    const files = filesOf(entry);
    if (!this.knowledge.isWithoutFiles(entry.index)) return files;
    return files.map((file) => ({ ...file, isDropped: true }));
  }

  #resultEntry(index: number | undefined): MessageEntry | undefined {
    const entry = index === undefined ? undefined : this.#entries[index];
    return entry?.type === 'message' ? entry : undefined;
  }

  /** V16: verbatim, unless the tool quotes the conversation. */
  #resultText(result: MessageEntry | undefined, tool: string): string {
    if (!result) return '[no result yet]'; // never sent: the guard refuses an open call (L13)
    if (!this.#policy.includeToolResults) return `[result omitted: recall ${result.index}]`;
    const text = result.content;
    if (!text) return wordsOf(result);
    const length = this.knowledge.previewLength(result.index);
    const shown = length === undefined ? text : previewOf(text, result.index, length);
    return QUOTING_TOOLS.has(tool) ? escapeMarkers(shown) : shown;
  }

  /** V17: the text that replaces the covered entries. */
  #wordSummary({ fromIndex, toIndex, content }: EntryOf<'summary'>): ViewMessage {
    const title = fromIndex === toIndex ? `ENTRY ${fromIndex}` : `ENTRIES ${fromIndex} TO ${toIndex}`;
    return { role: this.#policy.otherAgentsAs, content: heading(`SUMMARY OF ${title}`, content) };
  }

  #wordOther(entry: ShownEntry): ViewMessage {
    if (entry.type === 'message' && entry.author.kind === 'person') {
      const named =
        entry.index >= this.#secondPersonAt ? attribution(entry.author, this.#policy.otherAgentsAs) : '';
      const files = this.#filesOf(entry);
      const content = named + escapeMarkers(entry.content ?? '') + this.#schemaAfter(entry);
      return { role: 'user', content, ...(files.length > 0 && { files }) };
    }
    return { role: this.#policy.otherAgentsAs, content: this.#notice(entry) };
  }

  /** The schema of the answer, for those who give it. */
  #schemaAfter(entry: ShownEntry): string {
    const schema = schemaIn(entry);
    if (!schema || !routedTo(entry).includes(this.knowledge.agent)) return '';
    return `\n\n${heading(SCHEMA_TITLE, schemaWords(schema))}`;
  }

  /** The text of an entry by another agent or the system. */
  #notice(entry: ShownEntry): string {
    switch (entry.type) {
      case 'message':
        if (entry.author.kind === 'system') return escapeMarkers(entry.content ?? '');
        return this.#attributed(entry, joined(entry.content ?? '', reportedText(entry.reported)));
      case 'handoff':
        if (entry.to === this.knowledge.agent) return this.#attributed(entry, entry.summary);
        return this.#attributed(entry, `hands over to ${entry.to}: ${entry.summary}`);
      case 'delegation-requested':
        return this.#attributed(entry, entry.request) + this.#schemaAfter(entry);
      case 'phase-entered':
        return heading(`PHASE ${entry.from} → ${entry.to} (by ${entry.by})`, entry.reason);
      case 'mode-entered':
        return heading(`MODE ${entry.from} → ${entry.to} (by ${entry.by})`);
      case 'run-started':
        return heading(`RUN STARTED ${entry.workflowId}`);
      case 'node-entered':
        return heading(
          entry.branch !== undefined && agentOfNode(entry) === null
            ? `BRANCH ${entry.branch} WAITS AT ${entry.node}`
            : `NODE ${entry.node}`,
          entry.to?.includes(this.knowledge.agent) ? entry.brief : undefined,
        );
      case 'run-ended':
        return heading(`RUN ENDED ${entry.outcome}`);
      case 'limit-reached':
        return heading(`LIMIT REACHED ${entry.limit}`, entry.content);
      case 'note':
        return heading('NOTE', entry.content);
      default:
        return entry satisfies never;
    }
  }

  #attributed(entry: Entry, text: string): string {
    return attribution(entry.author, this.#policy.otherAgentsAs) + escapeMarkers(text);
  }

  /** V10: the newest in full within the budget, the older ones as one line. */
  #awayBlock(indexes: readonly number[]): ViewPart[] {
    const lines: string[] = [];
    let budget = this.#policy.awayTokens;
    let at = indexes.length - 1;
    for (; at >= 0; at--) {
      const line = this.#awayLine(this.#entries[indexes[at] ?? -1]);
      budget -= estimateTokens(line);
      if (budget < 0) break;
      lines.unshift(line);
    }
    if (at >= 0) {
      const older = at === 0 ? '1 earlier message, entry' : `${at + 1} earlier messages, entries`;
      const left = indexes.slice(0, at + 1).sort((a, b) => a - b); // history order may differ from log order
      const range = at === 0 ? `${left[0]}` : `${left[0]} to ${left[at]}`;
      lines.unshift(`(${older} ${range}: in full in the history above)`);
    }
    const role = this.#policy.otherAgentsAs;
    return [
      {
        kind: 'away-block',
        entries: indexes,
        message: { role, content: [AWAY_MARKER, ...lines].join('\n') },
      },
      { kind: 'marker', entries: [], message: { role, content: NEW_INTERACTION_MARKER } },
    ];
  }

  #awayLine(entry: Entry | undefined): string {
    if (!entry || !isInAwayBlock(entry)) return '';
    switch (entry.type) {
      case 'handoff':
        return this.#notice(entry);
      case 'message':
        return this.#attributed(entry, entry.content ?? '') + linesAfter(entry);
      default:
        return entry satisfies never;
    }
  }
}

/** They are not escaped as the text is (L17). Without a text they follow the attribution. */
function linesAfter(entry: MessageEntry): string {
  const lines = filesOf(entry).map(fileLine);
  return `${entry.content && lines.length > 0 ? '\n' : ''}${lines.join('\n')}`;
}

/** Providers refuse an answer or a result without any text. */
function wordsOf(entry: MessageEntry): string {
  return entry.content || filesOf(entry).map(fileLine).join('\n');
}

/** A notice: its first line is a marker, which no content can imitate (L17). */
function heading(title: string, text?: string): string {
  const line = `=== ${escapeTokens(plainName(title).replace(/\s+/gu, ' '))} ===`;
  return text ? `${line}\n${escapeMarkers(text)}` : line;
}

function joined(...texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join('\n');
}
