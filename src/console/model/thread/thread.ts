import type { CallPlace, Entry, EntryOf, MessageEntry } from '../../../conversation/index.ts';
import { wireCallId } from '../../../conversation/log/call-id.ts';
import { withFeedback } from '../../../conversation/log/feedback.ts';
import { filesOf } from '../../../conversation/log/parts.ts';
import { type RunSoFar, runsWith } from '../../../conversation/progress/runs.ts';
import { FIRST_FLOOR, type Floor, floorAfter } from '../../../conversation/state/answering.ts';
import { type AsideType, type Block, blockOf } from './blocks.ts';
import { argumentsOf, type Call, callsOf, isPending, type Question, questionOf } from './calls.ts';

/**
 * One conversation, folded from its log for the screen.
 *
 * THREAD-1 Each index is added once and in order: known entries are ignored, a gap is refused.
 * THREAD-2 A block is never changed, only replaced, so that blocks can be compared by identity. Each is at the end, but an answer
 *          that a stop cut off is before the stop.
 */

type AgentStatus = 'idle' | 'running' | 'waiting';

export interface AgentState {
  readonly status: AgentStatus;
  /** The block of its turn's start; null: no turn. */
  readonly since: string | null;
  /** The agent has been shown every entry below this index that is meant for it. */
  readonly cursor: number;
  readonly isStopped: boolean;
}

export type Thinking = { readonly agent: string; readonly turnId: string; readonly since: string };

export type Hired = Named & { readonly description: string; readonly isHere: boolean };

type Unfolded = AsideType | 'mode-entered' | 'forked' | 'team-changed';
const NEW_AGENT: AgentState = { status: 'idle', since: null, cursor: 0, isStopped: false };

export class Thread {
  readonly entries: Entry[] = [];
  readonly blocks: Block[] = [];
  readonly agents = new Map<string, AgentState>();
  /** People and agents by id, in the order in which they first spoke. */
  readonly authors = new Map<string, string>();
  readonly #blockOfEntry = new Map<number, number>();
  readonly #newestTurn = new Map<string, string>();
  readonly #openCalls = new Map<string, CallPlace>();
  /** The node whose agent begins with the next message. */
  #awaiting: EntryOf<'node-entered'> | null = null;
  readonly nameOf: (slug: string) => string;
  title: string | null = null;
  /** Who answers a message that names no agent. */
  floor: Floor = FIRST_FLOOR;
  readonly hires = new Map<string, Hired>();
  runs: readonly RunSoFar[] = [];
  isStopped = false;

  /** `from`: the first index; the entries before it are missing, and nothing of them is known. */
  constructor(nameOf: (slug: string) => string = (slug) => slug, from = 0) {
    this.nameOf = nameOf;
    this.entries.length = from;
  }

  get hired(): readonly Hired[] {
    return [...this.hires.values()].filter(({ isHere }) => isHere);
  }

  /** False: earlier entries are missing (THREAD-1). */
  add(entry: Entry): boolean {
    if (entry.index < this.entries.length) return true;
    if (entry.index > this.entries.length) return false;
    this.entries.push(entry);
    const block = blockOf(entry, this);
    if (block) {
      const isAnswer = block.kind === 'message' && block.entry.role === 'assistant';
      const place = isAnswer ? this.placeOfAnswer(entry.author.id) : this.blocks.length;
      this.blocks.splice(place, 0, block);
      for (const [at, { index }] of this.blocks.slice(place).entries())
        this.#blockOfEntry.set(index, place + at);
    }
    this.#fold(entry);
    return true;
  }

  stateOf(slug: string): AgentState {
    return this.agents.get(slug) ?? { ...NEW_AGENT, isStopped: this.isStopped };
  }

  /** False: the agent began another turn since, so this one needs no action. */
  isNewest(agent: string, turnId: string): boolean {
    return this.#newestTurn.get(agent) === turnId;
  }

  /** The position of the block with this entry, or of the last block before it; -1: there is none. */
  placeOf(index: number): number {
    return this.#blockOfEntry.get(index) ?? this.blocks.findLastIndex((block) => block.index <= index);
  }

  /** The same for a link: what has no block of its own is shown by its call, what began its turn, or its answer. */
  placeShowing(index: number): number {
    const entry = this.entries[index];
    if (!entry || this.#blockOfEntry.has(index)) return this.placeOf(index);
    if (entry.type === 'feedback') return this.placeOf(entry.on);
    if (entry.type === 'turn-started') return this.placeOf(entry.trigger.at(-1) ?? index);
    return this.placeOf('call' in entry && entry.call ? entry.call.index : index);
  }

  /** The end; before the stop that cuts off the answer of this agent, so that it keeps its place on the screen. */
  placeOfAnswer(id: string): number {
    let place = this.blocks.length;
    for (let at = place - 1; at >= 0; at--) {
      const { kind = 'message', index = -1 } = this.blocks[at] ?? {};
      const entry = this.entries[index];
      if ((kind !== 'band' && kind !== 'note') || entry?.type === 'agent-resumed') break;
      if (entry?.type === 'agent-stopped' && (entry.agent ?? id) === id) place = at;
    }
    return place;
  }

  get waitingCalls(): readonly Call[] {
    return this.#open().filter(isPending);
  }

  get questions(): readonly Question[] {
    return this.#open().flatMap((call) => {
      const asker = this.entries[call.place.index]?.author.id ?? '';
      return questionOf(call, asker) ?? [];
    });
  }

  /** The agents whose model is called: their turn runs, and all its calls have results. */
  get thinking(): readonly Thinking[] {
    const asked = new Set([...this.#openCalls.values()].map(({ index }) => this.entries[index]?.author.id));
    return [...this.agents].flatMap(([agent, { status, since }]) =>
      status === 'running' && !asked.has(agent)
        ? [{ agent, turnId: this.#newestTurn.get(agent) ?? '', since: since ?? '' }]
        : [],
    );
  }

  #open(): Call[] {
    return [...this.#openCalls.values()].flatMap((place) => this.callAt(place) ?? []);
  }

  #fold(entry: Entry): void {
    if (entry.author.kind !== 'system' && entry.type === 'message')
      this.authors.set(entry.author.id, entry.author.name);
    this.floor = floorAfter(this.floor, entry);
    switch (entry.type) {
      case 'message':
        this.#message(entry);
        break;
      case 'turn-started':
        this.#newestTurn.set(entry.agent, entry.turnId);
        if (entry.agent === this.#awaiting?.agent) this.#detailNode(`goes to ${this.nameOf(entry.agent)}`);
        this.#setAgent(entry.agent, { status: 'running', since: entry.createdAt });
        break;
      case 'turn-ended':
        this.#endTurn(entry);
        break;
      case 'tool-started':
        this.#change(entry.call, (call) => ({ ...call, status: 'running' }));
        break;
      case 'approval-requested':
      case 'approval-answered':
        this.#approval(entry);
        break;
      case 'handoff':
      case 'delegation-requested':
        this.#change(entry.call, (call) => ({ ...call, isTold: true }));
        break;
      case 'delegation-answered':
        this.#answered(entry);
        break;
      case 'title-set':
        this.title = entry.title;
        break;
      case 'feedback':
        this.#rate(entry);
        break;
      case 'phase-entered':
        this.#change(this.#callThatEntered(entry.to), (call) => ({ ...call, isTold: true }));
        break;
      case 'run-started':
      case 'node-entered':
      case 'run-ended':
        this.runs = runsWith(this.runs, entry);
        if (entry.type === 'run-ended') this.#detailNode(null);
        if (entry.type === 'node-entered' && entry.agent) this.#awaiting = entry;
        break;
      case 'agent-stopped':
      case 'agent-resumed':
        this.#setStopped(entry.agent, entry.type === 'agent-stopped');
        break;
      case 'agent-hired': {
        const { agent: slug, name, description } = entry;
        this.hires.set(slug, { slug, name, description, isHere: true });
        break;
      }
      case 'agent-dismissed': {
        const hired = this.hires.get(entry.agent);
        if (hired) this.hires.set(entry.agent, { ...hired, isHere: false });
        break;
      }
      default: // or of a newer version
        entry satisfies Extract<Entry, { type: Unfolded }>;
    }
  }

  #approval(entry: EntryOf<'approval-requested'> | EntryOf<'approval-answered'>): void {
    const isAsked = entry.type === 'approval-requested';
    this.#change(entry.call, (call) => ({
      ...call,
      ...(isAsked
        ? { approval: entry, answer: null, released: call.approval?.asks ? call.released : call.answer }
        : answered(call, entry)),
    }));
    // While a call runs: its agent waits until the answer.
    if (entry.call && this.callAt(entry.call)?.approval?.asks)
      this.#setAgent(this.entries[entry.call.index]?.author.id ?? '', {
        status: isAsked ? 'waiting' : 'running',
        since: entry.createdAt,
      });
  }

  #setStopped(agent: string | null, isStopped: boolean): void {
    if (agent === null) this.isStopped = isStopped;
    for (const slug of agent === null ? this.agents.keys() : [agent]) this.#setAgent(slug, { isStopped });
  }

  /** The entry does not name its call: it is the open call that requested this phase. */
  #callThatEntered(phase: string): CallPlace | undefined {
    return this.#open().find((call) => call.tool === 'set_phase' && argumentsOf(call).phase === phase)?.place;
  }

  #message(entry: EntryOf<'message'>): void {
    if (entry.role !== 'tool') {
      for (const { place } of callsOf(entry)) this.#openCalls.set(wireCallId(place), place);
      return;
    }
    if (!entry.call) return;
    this.#openCalls.delete(wireCallId(entry.call));
    const done = (call: Call): Call => ({
      ...call,
      status: 'done',
      hasRun: call.status === 'running',
      result: entry,
      resultBy: this.entries[entry.answers?.[0] ?? -1]?.author.name ?? null,
    });
    this.#change(entry.call, (call) => (call.result ? call : done(call))); // the first one counts
  }

  #endTurn(entry: EntryOf<'turn-ended'>): void {
    const status = entry.outcome === 'waiting' ? 'waiting' : 'idle';
    this.#setAgent(entry.agent, {
      status,
      since: status === 'waiting' ? entry.createdAt : null,
      cursor: Math.max(this.stateOf(entry.agent).cursor, entry.lastProcessedMessageIndex),
    });
  }

  /** It waits no longer. */
  #detailNode(detail: string | null): void {
    const at = this.#awaiting ? this.placeOf(this.#awaiting.index) : -1;
    const block = this.blocks[at];
    if (block?.kind === 'band') this.blocks[at] = { ...block, detail };
    this.#awaiting = null;
  }

  #rate(given: EntryOf<'feedback'>): void {
    const { at, block } = this.#messageAt(given.on);
    if (block) this.blocks[at] = { ...block, feedback: withFeedback(block.feedback, given) };
  }

  #answered(entry: EntryOf<'delegation-answered'>): void {
    const call = entry.call && wireCallId(entry.call); // old logs do not name it
    const place = this.blocks.findLastIndex((block) => {
      const asked = this.entries[block.index];
      if (asked?.type !== 'delegation-requested') return false;
      if (call !== undefined) return wireCallId(asked.call) === call;
      const isOpen = block.kind === 'passage' && block.answeredAt === null;
      return isOpen && asked.from === entry.to && asked.to === entry.from;
    });
    const block = this.blocks[place];
    if (block?.kind === 'passage')
      this.blocks[place] = { ...block, answeredAt: entry.answers.at(-1) ?? entry.index };
  }

  #setAgent(slug: string, change: Partial<AgentState>): void {
    this.agents.set(slug, { ...this.stateOf(slug), ...change });
  }

  blockAt(index: number): Block | null {
    return this.blocks[this.#blockOfEntry.get(index) ?? -1] ?? null;
  }

  callAt(place: CallPlace): Call | undefined {
    return this.#messageAt(place.index).block?.calls[place.position];
  }

  #messageAt(index: number) {
    const at = this.#blockOfEntry.get(index) ?? -1;
    const block = this.blocks[at];
    return { at, block: block?.kind === 'message' ? block : undefined };
  }

  #change(place: CallPlace | undefined, change: (call: Call) => Call): void {
    if (!place) return;
    const { at, block } = this.#messageAt(place.index);
    if (!block) return;
    const calls = block.calls.map((call, position) => (position === place.position ? change(call) : call));
    this.blocks[at] = { ...block, calls };
  }
}

/** Other arguments are what runs, but in an answer to a server, what the server gets. */
function answered({ approval, ...call }: Call, answer: EntryOf<'approval-answered'>): Partial<Call> {
  if (approval?.asks || answer.arguments === undefined) return { answer };
  return { answer, arguments: answer.arguments, asked: call.asked ?? call.arguments };
}

/** Messages of others in the blocks from this position on; steps without a text are none. `me`: the id of the person. */
export function messagesFrom(blocks: readonly Block[], place: number, me: string): number {
  return blocks.slice(place).filter((block) => {
    if (block.kind !== 'message') return block.kind === 'passage';
    if (block.entry.author.id === me) return false;
    if (filesOf(block.entry).length > 0) return true;
    return (block.entry.content ?? '').trim() !== '' || block.calls.some(({ tool }) => tool === 'ask');
  }).length;
}

/** The agents by the position of the last block that they were shown. */
export function readMarkers(thread: Thread): ReadonlyMap<number, readonly string[]> {
  const markers = new Map<number, string[]>();
  for (const [slug, { cursor }] of thread.agents) {
    const place = thread.placeOf(cursor - 1);
    if (cursor === 0 || place < 0) continue;
    markers.set(place, [...(markers.get(place) ?? []), slug]);
  }
  return markers;
}

/** What an agent waits for, before it reads a message that it was not shown. */
export type Until = 'approval' | 'outcome' | 'question' | 'agent' | 'program';

/** The agents to which a person's message is addressed, and which read it only after a wait. `lacksProgram`: by agent. */
export function unreadBy(
  thread: Thread,
  { index, author, to = [] }: MessageEntry,
  lacksProgram: (agent: string) => boolean,
): readonly { readonly agent: string; readonly until: Until }[] {
  if (author.kind !== 'person') return [];
  const isAnswer = thread.entries.some((one) => one.type === 'message' && one.answers?.includes(index));
  if (isAnswer) return []; // its agent was shown it as a result
  return to.flatMap((agent) => {
    const { status, cursor, isStopped } = thread.stateOf(agent);
    if (isStopped || index < cursor) return [];
    if (status === 'waiting') {
      const begun = thread.entries.findLast((one) => one?.type === 'turn-started' && one.agent === agent);
      return begun && index < begun.index ? [] : [{ agent, until: waitOf(thread, agent) }]; // a form waits within its turn
    }
    return status === 'running' && lacksProgram(agent) ? [{ agent, until: 'program' }] : [];
  });
}

export function waitOf(thread: Thread, agent: string): Until {
  const calls = thread.waitingCalls.filter(({ place }) => thread.entries[place.index]?.author.id === agent);
  if (calls.some(({ approval }) => approval?.asks)) return 'question';
  if (calls.length > 0) return calls.some(({ approval }) => !approval?.mayHaveRun) ? 'approval' : 'outcome';
  return thread.questions.some((question) => question.agent === agent) ? 'question' : 'agent';
}

export interface Participant {
  readonly id: string;
  readonly name: string;
  readonly isAgent: boolean;
  readonly colour: number;
  readonly initials: string;
  /** The publisher of a person whose name another one here has too; else null. */
  readonly publisher: string | null;
}

export const COLOURS = 12;

export type Named = { readonly slug: string; readonly name: string };

/** Agents first. They have the same colour in every conversation by the order of the roster, people by their name. */
export function participantsOf(
  roster: readonly Named[],
  authors: ReadonlyMap<string, string>,
): ReadonlyMap<string, Participant> {
  const found = new Map<string, Participant>();
  const names = [...authors.values()];
  const publisherOf = (id: string, name: string) =>
    id.includes('/') && names.filter((one) => one === name).length > 1 ? id.slice(0, id.indexOf('/')) : null;
  const add = (id: string, name: string, isAgent: boolean) => {
    if (found.has(id)) return;
    const publisher = isAgent ? null : publisherOf(id, name);
    const colour = (isAgent ? found.size : sumOf(name)) % COLOURS;
    found.set(id, { id, name, isAgent, colour, initials: initialsOf(name), publisher });
  };
  for (const { slug, name } of roster) add(slug, name, true);
  for (const [id, name] of authors) add(id, name, false);
  return found;
}

const sumOf = (text: string) => [...text].reduce((sum, letter) => sum + (letter.codePointAt(0) ?? 0), 0);

/** A name, with the publisher if another person has the same one. */
export function shownName(name: string, who: Participant | undefined): string {
  return who?.publisher ? `${name} · ${who.publisher}` : name;
}

export function initialsOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  const [first, last] = [words[0], words.at(-1)];
  if (!first || !last) return '?';
  const letters = words.length > 1 ? [[...first][0], [...last][0]] : [...first].slice(0, 2);
  return letters.join('').toUpperCase();
}
