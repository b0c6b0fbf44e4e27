import type { Entry, EntryOf, Mode } from '../log/entry.ts';
import { hiredName, looksLike } from '../text/look-alikes.ts';
import type { AgentCard } from './roster.ts';

/** Who answers a message that no question awaits, by the state of the conversation (rules: `decide/posting.ts`). Consoles use it too. */

/** What of the state determines it. */
export interface Floor {
  readonly activeAgent: string | null;
  readonly phase: string;
  readonly mode: Mode;
  readonly run: {
    readonly runId: string;
    readonly workflowId: string;
    readonly node: string;
    /** The agent of its current node. */
    readonly agent: string | null;
    /** Where nodes run side by side. An agent of null: it waits for the others. */
    readonly branches?: readonly FloorBranch[] | undefined;
  } | null;
}

interface FloorBranch {
  readonly branch: string;
  readonly node: string;
  readonly agent: string | null;
}

export const FIRST_FLOOR: Floor = { activeAgent: null, phase: 'chat', mode: 'agent', run: null };

/** The same object if the entry changes nothing. */
export function floorAfter(floor: Floor, entry: Entry): Floor {
  const { run } = floor;
  switch (entry.type) {
    case 'handoff':
      return { ...floor, activeAgent: entry.to };
    case 'phase-entered':
      return { ...floor, phase: entry.to, activeAgent: null };
    case 'mode-entered': {
      const { activeAgent = floor.activeAgent } = entry;
      return { ...floor, mode: entry.to, activeAgent };
    }
    case 'run-started': {
      const { runId, workflowId } = entry;
      return { ...floor, run: { runId, workflowId, node: '', agent: null } };
    }
    case 'node-entered': {
      if (run?.runId !== entry.runId) return floor;
      const { runId, workflowId } = run;
      const [node, agent] = [entry.node, agentOfNode(entry)];
      if (entry.branch === undefined) return { ...floor, run: { runId, workflowId, node, agent } };
      const { branch } = entry;
      const known = run.branches ?? [];
      const isNew = known.every((one) => one.branch !== branch);
      const branches = isNew
        ? [...known, { branch, node, agent }]
        : known.map((one) => (one.branch === branch ? { branch, node, agent } : one));
      const first = branches.find((one) => one.agent !== null) ?? { node, agent };
      return { ...floor, run: { runId, workflowId, node: first.node, agent: first.agent, branches } };
    }
    case 'run-ended':
      return run?.runId === entry.runId ? { ...floor, run: null } : floor;
    default:
      return floor;
  }
}

/** `to`: who starts at once; `agent`: who begins with the next message. */
export function agentOfNode({ to, agent }: EntryOf<'node-entered'>): string | null {
  return to?.[0] ?? agent ?? null;
}

type Answerer = Pick<AgentCard, 'slug' | 'phases' | 'modes'>;

export interface Answerers {
  /** In slug order. */
  readonly agents: ReadonlyMap<string, Answerer>;
  readonly defaultAgent: string;
}

type Branch = Pick<FloorBranch, 'agent'>;
type Asked = Pick<Floor, 'activeAgent' | 'phase' | 'mode'> & {
  readonly run: (Branch & { readonly branches?: readonly Branch[] | undefined }) | null;
};

/** ROUTING-4 to ROUTING-8: the agent that the conversation's state determines. Busy agents have a turn or are stopped. */
export function agentByState(floor: Asked, roster: Answerers, isBusy: (slug: string) => boolean): string {
  const { activeAgent, phase, mode, run } = floor;
  const ofRun = mode === 'run' && run ? (run.branches ?? [run]).map(({ agent }) => agent ?? '') : [];
  const known = ofRun.filter((slug) => roster.agents.has(slug));
  const branch = known.find((slug) => !isBusy(slug)) ?? known[0]; // RUN-BRANCH-1
  if (branch !== undefined) return branch;
  if (mode === 'agent' && activeAgent !== null && roster.agents.has(activeAgent)) return activeAgent;
  return (
    preferredAgent((agent) => agent.phases.includes(phase), floor, roster) ??
    preferredAgent((agent) => agent.modes.includes(mode), floor, roster) ??
    roster.defaultAgent
  );
}

/** Selects among matching agents: the active one, else the default one, else the first slug in order. */
function preferredAgent(
  fits: (agent: Answerer) => boolean,
  { activeAgent }: Asked,
  roster: Answerers,
): string | undefined {
  const fitting = [...roster.agents.values()].filter(fits).map((agent) => agent.slug);
  const preferred = [activeAgent, roster.defaultAgent].find(
    (slug) => slug !== null && fitting.includes(slug),
  );
  return preferred ?? fitting[0];
}

/** The whole word counts: `@dev-op`, `@dev_x` and `@dev.route` do not name `dev`. Not after a word, a path or a backslash. */
const MENTION =
  /(?<![\p{L}\p{M}\p{N}_/\\])@([\p{L}\p{M}\p{N}_-]+(?:\.[\p{L}\p{N}_][\p{L}\p{M}\p{N}_-]*)*)(\/?)/gu;

export interface Mentions {
  /** The slugs of known agents, in the order of their first mention. */
  readonly known: readonly string[];
  /** Words after an `@` that name no agent, in lower case. */
  readonly unknown: readonly string[];
}

const NONE: Mentions = { known: [], unknown: [] };

/** ROUTING-2: the agents that the prose of a text mentions, in any case. Code, quotes and addresses mention none. */
export function mentions(content: string, roster: Pick<Answerers, 'agents'>): Mentions {
  if (!content.includes('@')) return NONE;
  const known = new Set<string>();
  const unknown = new Set<string>();
  for (const [, word = '', path] of proseOf(content).matchAll(MENTION)) {
    if (path) continue;
    const slug = word.slice(0, LONGEST_WORD).replace(/-+$/, '').toLowerCase();
    if (roster.agents.has(slug)) known.add(slug);
    else if (slug !== '' && unknown.size < MOST_UNKNOWN) unknown.add(slug);
  }
  return { known: [...known], unknown: [...unknown] };
}

/** For the sender of a message; '' if every mention names an agent. */
export function unknownMentionsText(unknown: readonly string[] = []): string {
  return unknown.length === 0 ? '' : `there is no agent ${unknown.map((word) => `@${word}`).join(', ')}`;
}

/** The agent that a model means: by slug, also with `@` and in another case, or by name. */
export function agentNamed(text: string, agents: ReadonlyMap<string, Named>): string | undefined {
  const named = text.trim().replace(/^@/, '');
  const slug = named.toLowerCase();
  if (agents.has(slug)) return slug;
  return [...agents.values()].find(({ name }) => looksLike(name, named) || looksLike(name, hiredName(named)))
    ?.slug;
}

type Named = Pick<AgentCard, 'slug' | 'name'>;

/** What of unknown mentions is reported. */
const MOST_UNKNOWN = 8;
/** One more than a slug may have. */
const LONGEST_WORD = 65;

/** After indentation and the marks of lists. */
const FENCE = /^(?:[ \t]|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}|~{3,})([^\n]*)$/;
const QUOTE = /^[ \t]*>/;

/**
 * The text without what Markdown shows as code or as a quote, without a history that it quotes, and without URLs and e-mail
 * addresses. In linear time.
 */
function proseOf(text: string): string {
  const lines: string[] = [];
  let fence: string | null = null;
  for (const line of withoutHistory(text.split(/\r\n|\r|\n/))) {
    const [, marks = '', info = ''] = FENCE.exec(line) ?? [];
    if (fence !== null) {
      lines.push('');
      if (marks.startsWith(fence) && info.trim() === '') fence = null;
    } else if (marks !== '' && !(marks.startsWith('`') && info.includes('`'))) {
      lines.push('');
      fence = marks;
    } else lines.push(QUOTE.test(line) ? '' : line);
  }
  const paragraphs = lines.join('\n').split(/\n\s*\n/);
  return withoutAddresses(paragraphs.map(withoutCodeSpans).join('\n\n'));
}

/** A line that begins or ends an element, such as `<chat_history>`. */
const ELEMENT = /^[ \t]*<(\/?)([A-Za-z][\w-]{0,63})>[ \t]*$/;
const SPEAKER = /^[ \t*_"'[(]*(user|human|assistant|ai|bot|model)[ \t*_"'\])]*:/i;
/** What chat programs ask for about a history, and its announcement: "a title … Here is the message:". */
const ANNOUNCED =
  /\b(?:titles?|tags?|follow-?ups?|keywords?|summar(?:y|ize|ise))\b[^:]{0,400}\b(?:messages?|conversation|chat|history)["'`*_ \t]*:/i;
const MOST_ANNOUNCEMENT = 2_000;

/**
 * Without the history that a message quotes. Chat programs ask for titles, tags and follow-ups with all that was said before: in
 * an element, with its speaker before each text, or after an announcement. None of it is addressed to an agent now.
 */
function withoutHistory(lines: readonly string[]): string[] {
  const ends = new Map<string, number>();
  for (const [at, line] of lines.entries()) {
    const [, slash, name = ''] = ELEMENT.exec(line) ?? [];
    if (slash === '/') ends.set(name, at); // the last one: the history may contain others
  }
  const kept: string[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const [, slash, name = ''] = ELEMENT.exec(line) ?? [];
    const end = slash === '' ? (ends.get(name) ?? -1) : -1;
    kept.push(end > at ? '' : line);
    if (end > at) at = end;
  }
  const speakers = kept.map((line) => SPEAKER.exec(line)?.[1]?.toLowerCase());
  const isPerson = (speaker?: string) => speaker === 'user' || speaker === 'human';
  const isDialogue = speakers.some(isPerson) && speakers.some((speaker) => speaker && !isPerson(speaker));
  const prose = isDialogue
    ? kept.slice(
        0,
        speakers.findIndex((speaker) => speaker !== undefined),
      )
    : kept;
  const head = prose.join('\n').slice(0, MOST_ANNOUNCEMENT);
  const announced = ANNOUNCED.exec(head);
  return announced ? head.slice(0, announced.index + announced[0].length).split('\n') : prose;
}

/** A code span ends at the next run of as many backticks in its paragraph; a run without such an end is text. */
function withoutCodeSpans(paragraph: string): string {
  const runs = [...paragraph.matchAll(/`+/g)].map(({ index, 0: { length } }) => ({ index, length }));
  const last = new Map(runs.map(({ length }, at) => [length, at]));
  let prose = '';
  let from = 0;
  for (let at = 0; at < runs.length; at++) {
    const start = runs[at];
    if (!start || (last.get(start.length) ?? at) <= at) continue;
    do at++;
    while (runs[at]?.length !== start.length);
    prose += `${paragraph.slice(from, start.index)} `;
    from = (runs[at]?.index ?? 0) + start.length;
  }
  return prose + paragraph.slice(from);
}

/** What a mask leaves of it cannot be a mention: `@dev://` becomes `@dev/`. */
const URL = /(?::\/\/|\bwww\.|\bmailto:)[^\s<>"]*/gi;
/** The local part is checked for a letter or digit. */
const MAIL =
  /(?<![\p{L}\p{N}.!#$%&'*+/=?^_{|}~"-])([\p{L}\p{N}.!#$%&'*+/=?^_{|}~"-]+)@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/gu;

function withoutAddresses(text: string): string {
  return text
    .replace(URL, '/')
    .replace(MAIL, (address, local: string) => (/[\p{L}\p{N}]/u.test(local) ? ' ' : address));
}
