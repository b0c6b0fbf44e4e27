import { fieldFault, hasVisible, inOneLine, isRecord, type JsonRecord } from '../../kernel/index.ts';
import {
  type Author,
  type CallPlace,
  type MessageEntry,
  modeSchema,
  SLUG_PATTERN,
  SYSTEM_AUTHOR,
  type ToolCall,
  toolCallSchema,
  wireCallId,
} from '../log/entry.ts';
import { contentOf as contentOfParts, type FilePart, type Part } from '../log/parts.ts';
import { quotedLines } from '../text/text.ts';
import { openAiPart } from './openai-parts.ts';

/**
 * Converts an array of messages (`messages.json`, or OpenAI's `messages[]`) to entries.
 *
 * LEGACY-MESSAGES-1 Nothing is lost: a field that the entry does not contain unchanged is kept in `meta.imported`.
 * LEGACY-MESSAGES-2 Pure: the same file gives the same entries, so a second import is recognised (L4).
 * LEGACY-MESSAGES-4 An entry never contains the bytes of a file that was stored (PARTS-2): it is a part, and has its hash in `meta`.
 * LEGACY-MESSAGES-3 Imported messages are routed to no agent, belong to no turn, and start none (L14).
 */

export type ImportedMessages =
  | { readonly ok: true; readonly entries: MessageEntry[] }
  | { readonly ok: false; readonly at: number; readonly reason: string };

const isText = (value: unknown): boolean => typeof value === 'string';
const isTruth = (value: unknown): boolean => typeof value === 'boolean';

/** Fields that an entry takes unchanged if they have the right type. */
const TAKEN: Readonly<Record<string, (value: unknown) => boolean>> = {
  phase: isText,
  mode: (value) => modeSchema.safeParse(value).success,
  runId: isText,
  workflowId: isText,
  sessionId: isText,
  partType: isText,
  toolName: isText,
  reasoning: isText,
  model: isText,
  isCollapsed: isTruth,
  includeInContext: isTruth,
  duration: (value) => typeof value === 'number',
  widget: isRecord,
};

/**
 * A history that a caller brings, as texts of that caller: what others are said to have written is a quotation by it, so that
 * no agent is shown words, calls or results of an agent that never spoke (L17, L18). One text for each message; some are empty.
 */
export function quotedHistory(
  messages: readonly unknown[],
  by: Author,
): { readonly ok: true; readonly texts: string[] } | Extract<ImportedMessages, { ok: false }> {
  const made = entriesFromMessages(messages, 'agent');
  if (!made.ok) return made;
  return { ok: true, texts: made.entries.map((entry) => quotedText(entry, made.entries, by)) };
}

function quotedText(entry: MessageEntry, all: readonly MessageEntry[], by: Author): string {
  const content = entry.content ?? '';
  const quote = (what: string, text: string) =>
    text === '' ? [] : [[`Quoted by ${by.id}, ${inOneLine(what)}:`, ...quotedLines(text)].join('\n')];
  const { call } = entry;
  const tool = call && all[call.index]?.tool_calls?.[call.position]?.function.name;
  switch (entry.role) {
    case 'user':
      return content;
    case 'system':
      return quote('instructions', content).join('');
    case 'tool':
      return quote(`the result of ${tool ?? 'a call'}`, content).join('');
    case 'assistant': {
      const calls = (entry.tool_calls ?? []).map(({ function: { name, arguments: text } }) => ({
        name,
        text,
      }));
      const called = calls.flatMap(({ name, text }) => quote(`a call of ${name}`, text || '{}'));
      return [...quote('an answer', content), ...called].join('\n\n');
    }
    default:
      return entry.role satisfies never;
  }
}

/** The stored file that a data URL contains; undefined: it was not stored. */
export type FileOf = (url: string) => FilePart | undefined;

/**
 * `agent`: author of assistant messages that name no agent. `createdAt` is empty for a message without a time. `fileOf`: of the
 * files that were stored before (`dataUrlsIn`); default: none.
 */
export function entriesFromMessages(
  messages: readonly unknown[],
  agent: string,
  fileOf: FileOf = () => undefined,
): ImportedMessages {
  const importer = new Importer(agent, fileOf);
  for (const [at, message] of messages.entries()) {
    const reason = isRecord(message) ? importer.add(message) : 'it is not an object';
    if (reason !== null) return { ok: false, at, reason };
  }
  return { ok: true, entries: importer.entries };
}

interface OpenCall {
  readonly place: CallPlace;
  readonly author: Author;
}

class Importer {
  readonly entries: MessageEntry[] = [];
  readonly #ids = new Set<string>();
  readonly #agents: Set<string>;
  /** Calls without a result so far, by their id in the file, in file order. */
  readonly #open = new Map<string, OpenCall[]>();
  readonly #agent: string;
  readonly #fileOf: FileOf;

  constructor(agent: string, fileOf: FileOf) {
    this.#agent = agent;
    this.#fileOf = fileOf;
    this.#agents = new Set([agent]);
  }

  /** Null, or why the message is invalid. */
  add(source: JsonRecord): string | null {
    const role = ROLES.get(source.role);
    if (role === undefined) return `its role is ${JSON.stringify(source.role) ?? 'missing'}`;
    const calls = callsOf(source);
    if (typeof calls === 'string') return calls;
    const stored = this.#storedIn(source.content);
    const content = stored ? contentOfParts(stored.parts) : contentOf(source.content);
    if (content === undefined) return 'its content is neither a text, nor parts, nor null';
    const index = this.entries.length;
    const answered = role === 'tool' ? this.#takeCall(answeredIdOf(source)) : undefined;
    const author = answered?.author ?? this.#authorOf(role, source);
    const entry: MessageEntry = {
      index,
      id: this.#idOf(source, index),
      createdAt: timeOf(source) ?? '',
      type: 'message',
      role,
      author,
      ...(author.kind === 'agent' && { agentId: author.id }),
      content,
      ...(stored && { parts: stored.parts }),
      ...(role === 'assistant' && calls.length > 0 && { tool_calls: calls }),
      ...(answered && { tool_call_id: wireCallId(answered.place), call: answered.place }),
    };
    for (const [field, fits] of Object.entries(TAKEN)) {
      if (fits(source[field])) Object.assign(entry, { [field]: source[field] });
    }
    for (const [position, call] of (entry.tool_calls ?? []).entries()) {
      const place = { index, position };
      const open = this.#open.get(call.id);
      if (open) open.push({ place, author });
      else this.#open.set(call.id, [{ place, author }]);
    }
    if (entry.agentId !== undefined) this.#agents.add(entry.agentId);
    this.entries.push(withTheRest(entry, stored ? { ...source, content: stored.content } : source));
    return null;
  }

  /** The parts of a content with at least one stored file, and the content with hashes in place of their bytes; null: it has none. */
  #storedIn(content: unknown): { readonly parts: Part[]; readonly content: unknown[] } | null {
    const parts: Part[] = [];
    const rest = (Array.isArray(content) ? content : []).map((given: unknown) => {
      const part = openAiPart(given);
      if (part.kind === 'text') parts.push({ type: 'text', text: part.text });
      const file = part.kind === 'file' ? this.#fileOf(part.url) : undefined;
      if (part.kind !== 'file' || file === undefined) return given;
      parts.push({ ...file, ...(part.name && { name: part.name }) });
      return { type: part.type, sha256: file.sha256 };
    });
    return parts.some(({ type }) => type === 'file') ? { parts, content: rest } : null;
  }

  /** The call that a result with this id answers: the first open one of the newest message with such a call (L10). */
  #takeCall(id: string): OpenCall | undefined {
    const open = this.#open.get(id) ?? [];
    const newest = open.at(-1)?.place.index;
    const at = open.findLastIndex(({ place }) => place.index !== newest) + 1;
    return open.splice(at, 1)[0];
  }

  #idOf({ id }: JsonRecord, index: number): string {
    const given = typeof id === 'number' ? String(id) : id;
    const free = typeof given === 'string' && given !== '' && given.length <= 128 && !this.#ids.has(given);
    let chosen = free ? given : `import-${index}`;
    for (let again = 1; this.#ids.has(chosen); again += 1) chosen = `import-${index}-${again}`; // the file may use such ids
    this.#ids.add(chosen);
    return chosen;
  }

  #authorOf(role: MessageEntry['role'], source: JsonRecord): Author {
    if (role === 'system') return SYSTEM_AUTHOR;
    if (role === 'user') {
      const name = typeof source.name === 'string' ? source.name.trim() : '';
      if (!hasVisible(name) || this.#agents.has(name)) return { kind: 'person', id: 'import', name: 'User' }; // L17
      return { kind: 'person', id: `import/${name}`, name };
    }
    const named = [source.agentId, source.agent, source.name].find(
      (slug) => typeof slug === 'string' && SLUG_PATTERN.test(slug),
    );
    const id = typeof named === 'string' ? named : this.#agent;
    return { kind: 'agent', id, name: id };
  }
}

const ROLES: ReadonlyMap<unknown, MessageEntry['role']> = new Map([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['system', 'system'],
  ['developer', 'system'],
  ['tool', 'tool'],
  ['function', 'tool'],
]);

/** Ids for `function_call` and role `function`, the older form with one call per message. */
const legacyId = (name: unknown) => `function_call ${String(name)}`;

function answeredIdOf(source: JsonRecord): string {
  return source.role === 'function' ? legacyId(source.name) : String(source.tool_call_id);
}

function callsOf({ tool_calls: given, function_call: called }: JsonRecord): ToolCall[] | string {
  const legacy = isRecord(called) ? [{ id: legacyId(called.name), type: 'function', function: called }] : [];
  const calls = given ?? legacy;
  const parsed = toolCallSchema.array().safeParse(calls);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return `its tool_calls are not calls: ${issue ? fieldFault(issue, calls) : 'unknown'}`;
}

/** Joins text parts of the content; other parts are kept in `meta` (LEGACY-MESSAGES-1). */
function contentOf(content: unknown): string | null | undefined {
  if (content === null || content === undefined) return null;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  return content.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('');
}

function timeOf(source: JsonRecord): string | null {
  const given = source.createdAt ?? source.timestamp;
  if (typeof given !== 'string' && typeof given !== 'number') return null;
  const time = new Date(given);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

function withTheRest(entry: MessageEntry, source: JsonRecord): MessageEntry {
  const held = new Map(Object.entries(entry).map(([field, value]) => [field, JSON.stringify(value)]));
  const own = isRecord(source.meta) ? source.meta : {};
  const rest = Object.entries(source).filter(
    ([field, value]) => held.get(field) !== JSON.stringify(value) && !(field === 'meta' && own === value),
  );
  if (rest.length === 0) return own === source.meta ? { ...entry, meta: { ...own } } : entry;
  return { ...entry, meta: { ...own, imported: Object.fromEntries(rest) } };
}
