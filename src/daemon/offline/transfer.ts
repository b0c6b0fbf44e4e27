import { isUtf8 } from 'node:buffer';
import { createReadStream, createWriteStream } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, parse } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { readDefinition, textsOf } from '../../agents/index.ts';
import {
  type ConversationState,
  checkLaws,
  closeStrayCalls,
  dataUrlsIn,
  type Entry,
  type ExportFormat,
  entriesFromMessages,
  entrySchema,
  exportEntries,
  type FilePart,
  filesIn,
  hasOutstandingWork,
  importedLog,
  planRepair,
  portableEntry,
  readDataUrl,
  withOwnApprovals,
} from '../../conversation/index.ts';
import {
  createIdSource,
  fieldFault,
  infinityAt,
  inOneLine,
  isBase64,
  isShallow,
  makeDirectory,
  messageOf,
  ParleyError,
  replaceFile,
  sha256Of,
  visibleCall,
} from '../../kernel/index.ts';
import type { BlobFacts, ConversationStore, InspectedBlobs } from '../../persistence/index.ts';
import {
  composeInspector,
  composeLogReader,
  composeOwnStore,
  composeQuarantine,
} from '../compose/archives.ts';
import { saveProjections, stateOf } from '../conversations/projections.ts';
import { measured } from '../files/files.ts';

/**
 * Exports conversations from a data directory, and imports them from files.
 *
 * TRANSFER-1  An import keeps every entry of its file. The ingress sequence of a post is left out: it is meaningless with
 *             another stream. Approvals get ids of the new conversation.
 * TRANSFER-2  An import is one append: all or nothing. A repetition changes nothing (L4).
 * TRANSFER-3  A refused file is kept in quarantine, and the error names its path.
 * TRANSFER-5  A file is data: nothing in it runs, whatever it says (FORK-4). Only `resume` continues the work of a file, after the
 *             operator has seen all that will run.
 * TRANSFER-4  The definitions that the entries name come after them, one line for each text. An import stores them first.
 */

/** As a text, in which files are named: `onNamed` gets how many. */
export async function exportConversation(
  dataDirectory: string,
  conversation: string,
  format: ExportFormat,
  onNamed?: (files: number) => void,
): Promise<string> {
  const entries = await composeLogReader(dataDirectory, conversation);
  const text = await exportText(dataDirectory, entries, format);
  onNamed?.(filesIn(entries).size);
  return text;
}

async function exportText(
  dataDirectory: string,
  entries: readonly Entry[],
  format: ExportFormat,
  urls?: ReadonlyMap<string, string>,
): Promise<string> {
  const text = exportEntries(entries, format, ({ sha256: hash }) => urls?.get(hash));
  if (format !== 'jsonl') return text;
  const definitions = await definitionLines(dataDirectory, entries);
  return [text, ...definitions.map((line) => JSON.stringify(line))].join('\n');
}

/** Into a file, with the files of its messages: as JSON Lines in the folder beside it, as OpenAI messages in the text. */
export async function exportToFile(
  dataDirectory: string,
  conversation: string,
  format: ExportFormat,
  out: string,
): Promise<{ readonly out: string; readonly files: number }> {
  const entries = await composeLogReader(dataDirectory, conversation);
  const { blobs } = composeInspector(dataDirectory);
  const urls = format === 'openai' ? await dataUrlsOf(blobs, entries) : undefined;
  const text = await exportText(dataDirectory, entries, format, urls);
  const files = format === 'jsonl' ? await exportFiles(blobs, entries, folderOf(out)) : (urls?.size ?? 0);
  await replaceFile(out, text && `${text}\n`);
  return { out, files };
}

interface DefinitionLine {
  readonly type: 'definition';
  readonly hash: string;
  readonly text: string;
}

function isDefinitionLine(value: unknown): value is DefinitionLine {
  const { type, hash, text } = (value ?? {}) as Partial<Record<keyof DefinitionLine, unknown>>;
  return type === 'definition' && typeof hash === 'string' && typeof text === 'string';
}

/** TRANSFER-4. What is missing or damaged is left out: `parley fsck` reports it. */
async function definitionLines(dataDirectory: string, entries: readonly Entry[]): Promise<DefinitionLine[]> {
  const { definition: get } = composeInspector(dataDirectory);
  const named = entries.flatMap((entry) => (entry.type === 'turn-started' ? (entry.definition ?? []) : []));
  const texts = new Map<string, string>();
  for (const hash of new Set(named)) {
    const definition = await readDefinition(hash, get).catch(() => null);
    for (const [one, text] of definition ? textsOf(definition) : []) texts.set(one, text);
  }
  const sorted = [...texts].sort(([one], [other]) => (one < other ? -1 : 1));
  return sorted.map(([hash, text]) => ({ type: 'definition', hash, text }));
}

const ACCEPTED_FORMS =
  'an import takes one array of messages, [{"role":"user","content":"…"}, …], or the lines that ' +
  '`parley export --format jsonl` prints';

export interface ImportOptions {
  readonly dataDirectory: string;
  readonly file: string;
  readonly conversation: string;
  /** The author of answers that name no agent. */
  readonly agent: string;
  /** Continues what is outstanding in the file (TRANSFER-5), if it returns true. `work`: what will run, one line each. */
  readonly resume?: (work: readonly string[]) => Promise<boolean>;
}

interface ImportOutcome {
  readonly conversation: string;
  readonly entries: number;
  /** It was imported before. */
  readonly duplicate: boolean;
  /** What is outstanding in the file, and was ended or is resumed, one line each. */
  readonly work: readonly string[];
}

/** Null: `resume` declined, and nothing was changed. */
export async function importConversation(options: ImportOptions): Promise<ImportOutcome | null> {
  const { dataDirectory, file, conversation } = options;
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new ParleyError('USAGE_FILE', `${file} cannot be read: ${messageOf(cause)}`, {
      hint: 'name a messages.json, or what `parley export` printed',
      cause,
    });
  });
  let read: Imported;
  try {
    read = await readFileOf(bytes, options);
  } catch (error) {
    const kept = await composeQuarantine(dataDirectory, basename(file), bytes);
    throw new ParleyError('IMPORT_INVALID', `${file} was not imported: ${messageOf(error)}`, {
      hint: `${ACCEPTED_FORMS}\nnothing was changed; a copy is kept in ${kept}`,
      cause: error,
    });
  }
  const entries = withOwnApprovals(read.entries, conversation, sha256Of);
  const work = workOf(entries);
  if (options.resume && !(await options.resume(work))) return null;
  const store = await composeOwnStore(dataDirectory);
  try {
    await store.definitions.put(read.texts);
    for (const { facts, content } of read.files) await store.blobs.put(facts, content); // before entries name them
    const duplicate = await append(store, entries, options);
    return { conversation, entries: entries.length, duplicate, work };
  } finally {
    await store.close();
  }
}

function workOf(entries: readonly Entry[]): string[] {
  const state = stateOf(entries);
  const turns = Object.values(state.agents).flatMap(({ turn }) => turn ?? []);
  const calls = turns.flatMap(({ agent, openCalls }) =>
    openCalls.map((call) => `${agent} called ${visibleCall(call.name, call.arguments)}: ${nextStepOf(call)}`),
  );
  const others = planRepair(entries).flatMap((item) => {
    if (item.type === 'resume-turn') return [`${item.agent} continues its turn`];
    const waiting = state.agents[item.agent]?.waiting.map(({ index }) => index) ?? [];
    return item.type === 'start-turn' ? [`${item.agent} starts a turn on entry ${waiting.join(', ')}`] : [];
  });
  return [...calls, ...others].map(inOneLine);
}

type TurnCall = NonNullable<ConversationState['agents'][string]['turn']>['openCalls'][number];

function nextStepOf({ approval, started, risk }: TurnCall): string {
  if (approval?.status === 'pending') return 'it waits for an approval';
  if (started && risk === 'risky') return 'it may have run, so a person is asked';
  return approval ? 'it was approved, and runs' : 'it runs if the policy allows it';
}

/** True: it was already there. */
async function append(
  store: ConversationStore,
  imported: readonly Entry[],
  { conversation: id, file, resume }: ImportOptions,
): Promise<boolean> {
  const { log, entries: existing } = await store.open(id);
  try {
    const now = Date.now();
    const createdAt = new Date(now).toISOString();
    const given = imported.map((entry, at) => timed(entry, existing[at] ?? { createdAt }));
    const into = { conversation: id, file: basename(file), now, newId: createIdSource() };
    const entries = resume ? given : importedLog(given, into);
    if (existing.length > 0) {
      const known = (entry: Entry, at: number) =>
        JSON.stringify(entry) === JSON.stringify(existing[at] && portableEntry(existing[at]));
      if (entries.slice(0, given.length).every(known)) return true;
      throw new ParleyError('CONVERSATION_EXISTS', `the conversation ${id} exists, with other content`, {
        hint: 'import under another id, or `parley rm` this one first',
      });
    }
    const state = stateOf(entries);
    if (hasOutstandingWork(state)) {
      if (!resume) throw new Error('an import must leave no outstanding work');
      await store.markOpen(id);
    }
    await log.append(0, entries);
    await saveProjections(store, id, state, entries);
    return false;
  } finally {
    await log.close();
  }
}

/** An entry without a time gets the time of its import. */
function timed(entry: Entry, by: { readonly createdAt: string } | undefined): Entry {
  return entry.createdAt === '' && by ? { ...entry, createdAt: by.createdAt } : entry;
}

interface Imported {
  readonly entries: readonly Entry[];
  /** The texts of definitions, by hash. */
  readonly texts: ReadonlyMap<string, string>;
  readonly files: readonly ImportedFile[];
}

/** Throws the first fault with its position. */
async function readFileOf(
  bytes: Buffer,
  { agent, file }: Pick<ImportOptions, 'agent' | 'file'>,
): Promise<Imported> {
  const text = utf8(bytes);
  refuseOtherForm(text);
  const texts = new Map<string, string>();
  const isMessages = text.trimStart().startsWith('[');
  const sent = isMessages ? await filesInMessages(messagesIn(text)) : new Map<string, ImportedFile>();
  const entries = isMessages ? readMessages(text, agent, sent) : readLines(text, texts);
  if (entries.length === 0) throw new Error('it contains no message');
  const [fault] = checkLaws(entries);
  if (fault !== undefined) throw new Error(fault);
  return { entries, texts, files: isMessages ? [...sent.values()] : await filesBeside(file, entries) };
}

/** Refuses a JSON value that is neither an array nor an entry, before its syntax or its fields are checked. */
function refuseOtherForm(text: string): void {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return; // several lines, or an error that is reported with its position
  }
  if (Array.isArray(value) || !isShallow(value, 2 * MAX_DEPTH)) return;
  const object = typeof value === 'object' && value !== null ? value : {};
  if ('index' in object || 'type' in object) return;
  if ('messages' in object && Array.isArray(object.messages))
    throw new Error('it is an object: import only the array that is its field messages');
  throw new Error('it is neither an array of messages nor JSON Lines of entries');
}

/** Deeper than any sensible message, and far below a stack overflow. */
const MAX_DEPTH = 500;
const TOO_DEEP = 'it is nested too deep';

function utf8(bytes: Buffer): string {
  const text = new TextDecoder().decode(bytes);
  if (isUtf8(bytes)) return text;
  const read = Buffer.from(bytes.toString('utf8'));
  throw new Error(`it is not UTF-8 at byte ${read.findIndex((byte, at) => byte !== bytes[at])} (from 0)`);
}

function messagesIn(text: string): unknown[] {
  const messages = JSON.parse(text) as unknown[];
  const deep = messages.findIndex((message) => !isShallow(message, MAX_DEPTH));
  if (deep !== -1) throw new Error(`message ${deep} (from 0): ${TOO_DEEP}`);
  for (const [at, message] of messages.entries()) refuseInfinity(message, `message ${at} (from 0)`);
  return messages;
}

function readMessages(text: string, agent: string, sent: ReadonlyMap<string, ImportedFile>): Entry[] {
  const fileOf = (url: string): FilePart | undefined => {
    const facts = sent.get(url)?.facts;
    return facts && { type: 'file', ...facts };
  };
  const made = entriesFromMessages(messagesIn(text), agent, fileOf);
  if (!made.ok) throw new Error(`message ${made.at} (from 0): ${made.reason}`);
  const newId = (_: unknown, position: number) => `import-result-${made.entries.length}-${position}`;
  let closed = 0;
  const closing = closeStrayCalls(made.entries, {
    newId: () => newId(null, closed++),
    createdAt: '',
  });
  return [...made.entries, ...closing];
}

/** Adds the texts of definitions to `texts`. */
function readLines(text: string, texts: Map<string, string>): Entry[] {
  if (text !== '' && !text.endsWith('\n')) throw new Error('its last line is cut short');
  return text
    .split('\n')
    .slice(0, -1)
    .flatMap((line, at) => {
      const place = `line ${at + 1}`;
      let value: unknown;
      try {
        value = JSON.parse(line);
      } catch (error) {
        throw new Error(`${place}: ${messageOf(error)}`);
      }
      if (!isShallow(value, 2 * MAX_DEPTH)) throw new Error(`${place}: ${TOO_DEEP}`); // TRANSFER-1: `meta` holds messages
      refuseInfinity(value, place);
      if (isDefinitionLine(value)) {
        if (sha256Of(value.text) !== value.hash) throw new Error(`${place}: its text does not have its hash`);
        texts.set(value.hash, value.text);
        return [];
      }
      const parsed = entrySchema.safeParse(value);
      if (parsed.success) return portableEntry(value as Entry);
      const [issue] = parsed.error.issues;
      throw new Error(`${place} is not an entry: ${issue ? fieldFault(issue, value) : 'unknown'}`);
    });
}

/** JSON would write it as null (TRANSFER-1). */
function refuseInfinity(value: unknown, place: string): void {
  const path = infinityAt(value);
  if (path !== null) throw new Error(`${place}: ${path}: the number is too large for JSON`);
}

const MOST_NAMED = 8;

function folderOf(file: string): string {
  return join(dirname(file), `${parse(file).name}.files`);
}

/**
 * The files of an export in JSON Lines: beside `work.jsonl`, the folder `work.files` has each under its SHA-256.
 *
 * EXPORTED-FILES-1  The folder is complete before the file of the entries appears. A repetition writes only what is missing
 *                   or damaged.
 * EXPORTED-FILES-2  An import reads and checks all files before it stores one, and stores all before the log names one.
 * EXPORTED-FILES-3  The type of a file is that of its bytes: an entry that says another one is refused. Which text it is, the
 *                   entry says and not the name: it may have been stored under another one.
 *
 * Writes each file of these entries once, before what names them is written.
 */
async function exportFiles(
  blobs: InspectedBlobs,
  entries: readonly Entry[],
  folder: string,
): Promise<number> {
  const files = [...filesIn(entries)];
  if (files.length > 0) await makeDirectory(folder);
  for (const [sha256, [index]] of files) {
    const path = join(folder, sha256);
    const known = await measured(createReadStream(path), {}).catch(() => null);
    if (known?.sha256 === sha256) continue;
    const unfinished = `${path}.part`;
    try {
      const content = await blobs.read(sha256);
      if (content === null) throw new Error('it is missing');
      await pipeline(content, createWriteStream(unfinished, { mode: 0o600 }));
      await rename(unfinished, path);
    } catch (cause) {
      await rm(unfinished, { force: true });
      throw new ParleyError(
        'EXPORT_INCOMPLETE',
        `the file ${sha256} of entry ${index} cannot be read: ${messageOf(cause)}`,
        {
          hint: '`parley fsck` reports what is missing or damaged; without --out, files are named and left out',
          cause,
        },
      );
    }
  }
  return files.length;
}

/** The bytes of each file as a data URL, for an export as OpenAI messages. */
async function dataUrlsOf(
  blobs: InspectedBlobs,
  entries: readonly Entry[],
): Promise<ReadonlyMap<string, string>> {
  const urls = new Map<string, string>();
  for (const [sha256, [, { mediaType }]] of filesIn(entries)) {
    const content = await blobs.read(sha256);
    if (content === null) continue; // named only, as `fsck` reports it
    const bytes = Buffer.concat(await Readable.from(content).toArray());
    urls.set(sha256, `data:${mediaType};base64,${bytes.toString('base64')}`);
  }
  return urls;
}

/** A file to store, and where its bytes are. */
interface ImportedFile {
  readonly facts: BlobFacts;
  readonly content: () => AsyncIterable<Uint8Array>;
}

/** EXPORTED-FILES-2: the files of these entries from the folder beside their file. Throws what is missing or differs. */
async function filesBeside(file: string, entries: readonly Entry[]): Promise<ImportedFile[]> {
  const folder = folderOf(file);
  const found: ImportedFile[] = [];
  const faults: string[] = [];
  for (const [sha256, [index, part]] of filesIn(entries)) {
    const content = () => createReadStream(join(folder, sha256));
    const facts = await measured(content(), { declared: part.mediaType }).catch(() => null);
    const fault = facts ? differenceOf(facts, part) : 'is missing';
    if (fault) faults.push(`entry ${index}: ${sha256} ${fault}`);
    else if (facts) found.push({ facts, content });
  }
  if (faults.length === 0) return found;
  const more = faults.length > MOST_NAMED ? [`and ${faults.length - MOST_NAMED} more`] : [];
  throw new Error(
    [
      `the files that its entries name must be in ${basename(folder)} beside it, as \`parley export --out\` writes them:`,
      ...faults.slice(0, MOST_NAMED),
      ...more,
    ].join('\n'),
  );
}

/** Null: the bytes are what the entry says. */
function differenceOf(facts: BlobFacts, part: FilePart): string | null {
  if (facts.sha256 !== part.sha256) return `has the SHA-256 ${facts.sha256}`;
  if (facts.size !== part.size) return `has ${facts.size} bytes, and the entry says ${part.size}`;
  return facts.mediaType === part.mediaType
    ? null
    : `is ${facts.mediaType}, and the entry says ${part.mediaType}`;
}

/** The files that messages in OpenAI's form have as data URLs, by URL. */
async function filesInMessages(messages: readonly unknown[]): Promise<ReadonlyMap<string, ImportedFile>> {
  const found = new Map<string, ImportedFile>();
  const urls = messages.flatMap((message, at) => dataUrlsIn([message]).map((url) => ({ at, url })));
  for (const { at, url } of urls) {
    const { base64 = '', mediaType } = readDataUrl(url) ?? {};
    const place = `message ${at} (from 0)`;
    if (!isBase64(base64)) throw new Error(`${place}: the base64 of its file is broken`);
    const bytes = Buffer.from(base64, 'base64');
    if (bytes.length === 0) throw new Error(`${place}: its file has no bytes`);
    const facts = await measured([bytes], { declared: mediaType });
    found.set(url, { facts, content: () => Readable.from([bytes]) });
  }
  return found;
}
