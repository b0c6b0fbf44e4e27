import { FileCache, type RequestSources, Requests, readDefinition, sourcesOf } from '../../agents/index.ts';
import {
  Conversation,
  checkAudit,
  checkKnowledge,
  checkLaws,
  checkShapes,
  closeStrayCalls,
  createRoster,
  type Entry,
  type FilePart,
  filesIn,
  hasOutstandingWork,
} from '../../conversation/index.ts';
import { createIdSource, messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import type {
  ConversationRow,
  ConversationStore,
  InspectedBlobs,
  Inspection,
  Leftover,
  NamedFiles,
  StoreInspector,
} from '../../persistence/index.ts';
import { composeInspector, composeOwnStore } from '../compose/archives.ts';
import { rowOf, saveProjections, stateOf } from '../conversations/projections.ts';

/**
 * Verifies the laws on the files of a data directory, and repairs what can be repaired.
 *
 * FSCK-1  A check takes no lock and changes nothing. It may run beside a daemon.
 * FSCK-2  A repair locks the directory. It appends, cuts what is no complete append (and keeps it in a file), and
 *         rewrites projections. History is never edited (L2): a damaged log is left as it is.
 * FSCK-3  Outstanding work is left to the next start of the daemon. A repair only ensures that the start finds it.
 */

export interface FsckOptions {
  readonly dataDirectory: string;
  /** Absent: every conversation. */
  readonly conversation?: string;
  readonly repair: boolean;
  /** Builds each recorded request again and compares its hash. */
  readonly views?: boolean;
}

export interface FsckReport {
  /** Null: findings that belong to none. */
  readonly conversation: string | null;
  /** `repaired`: the finding is fixed now. */
  readonly findings: readonly (Finding & { readonly repaired: boolean })[];
}

/** A running daemon may cause a finding: only one that is in all of these inspections is a fault. */
const INSPECTIONS = 3;
/** A deletion in progress is over by then. */
const SETTLE_MS = 500;
/** A daemon erases a file that no log names after this time. */
const UNNAMED_FILE_MS = 86_400_000;

export async function fsck(options: FsckOptions): Promise<FsckReport[]> {
  const { dataDirectory, repair } = options;
  const inspector = composeInspector(dataDirectory);
  const found = await scopeOf(inspector, options); // before a store is opened, which would create a directory
  const checks = {
    definitions: new DefinitionChecks(inspector, options.views ?? false),
    files: new FileChecks(inspector.blobs),
  };
  if (!repair) return inspectAll(inspector, found, checks);
  const store = await composeOwnStore(dataDirectory);
  let before: FsckReport[];
  const failures: string[] = [];
  try {
    before = await inspectAll(inspector, found, checks);
    for (const { conversation, findings } of before) {
      if (conversation === null || !findings.some((finding) => finding.repair !== null)) continue;
      const isDeleted = found.left.some((one) => one.conversation === conversation && !one.isSwept);
      if (!isDeleted && !found.withLog.has(conversation)) continue; // opening the store removed it
      const repairing = isDeleted ? store.delete(conversation) : repairConversation(store, conversation);
      await repairing.catch((error: unknown) => void failures.push(messageOf(error)));
    }
    const all = before.flatMap(({ findings }) => findings);
    if (all.some(({ kind, repair: can }) => kind === 'file' && can !== null))
      await repairFiles(store, checks.files).catch((error: unknown) => void failures.push(messageOf(error)));
  } finally {
    await store.close();
  }
  if (failures.length > 0) {
    throw new ParleyError('REPAIR_FAILED', failures.join('\n'), {
      hint: 'earlier repairs are kept: fix the cause and repeat the command',
    });
  }
  const left = await leftoversIn(inspector);
  return withOutcome(before, await inspectAll(inspector, { ...found, left }, checks));
}

async function repairFiles({ blobs }: ConversationStore, { named }: FileChecks): Promise<void> {
  await blobs.rebuild(named);
  await blobs.sweep(unnamedBefore());
}

const unnamedBefore = () => new Date(Date.now() - UNNAMED_FILE_MS).toISOString();

interface Checks {
  readonly definitions: DefinitionChecks;
  readonly files: FileChecks;
}

/** What is checked. */
interface Scope {
  /** Every conversation, so that files of none are found, too. */
  readonly isWhole: boolean;
  readonly ids: readonly string[];
  /** Those of `ids` that have a log, or should. */
  readonly withLog: ReadonlySet<string>;
  readonly left: readonly Leftover[];
}

async function scopeOf(
  inspector: StoreInspector,
  { conversation, dataDirectory }: FsckOptions,
): Promise<Scope> {
  const withLog = new Set(await inspector.conversations());
  const left = await leftoversIn(inspector);
  const ids = new Set([...withLog, ...left.map((leftover) => leftover.conversation)]);
  if (conversation === undefined) return { isWhole: true, ids: [...ids].sort(), withLog, left };
  if (ids.has(conversation)) return { isWhole: false, ids: [conversation], withLog, left };
  throw new ParleyError('NOT_FOUND', `there is no conversation ${conversation} in ${dataDirectory}`, {
    hint: 'check the id and --data',
  });
}

async function inspectAll(
  inspector: StoreInspector,
  { isWhole, ids, withLog, left }: Scope,
  checks: Checks,
): Promise<FsckReport[]> {
  const reports: FsckReport[] = [];
  for (const conversation of ids) {
    const its = left.filter((leftover) => leftover.conversation === conversation);
    const found = withLog.has(conversation) ? await inspectConversation(inspector, conversation, checks) : [];
    const findings = [...its.map(({ path }) => leftoverFinding(path)), ...found];
    reports.push({ conversation, findings: findings.map((one) => ({ ...one, repaired: false })) });
  }
  const orphans = isWhole ? await orphansIn(inspector, checks.files) : [];
  if (orphans.length > 0)
    reports.push({ conversation: null, findings: orphans.map((one) => ({ ...one, repaired: false })) });
  return reports;
}

/** A daemon may be naming a file: only what is found twice is an orphan (FSCK-1). */
async function orphansIn(inspector: StoreInspector, files: FileChecks): Promise<Finding[]> {
  const before = unnamedBefore();
  const first = await files.orphans(before);
  if (first.length === 0) return [];
  await sleep(SETTLE_MS);
  for (const id of await inspector.conversations()) files.note(id, wholeOf(await inspector.inspect(id)));
  const again = new Set((await files.orphans(before)).map(({ text }) => text));
  return first.filter(({ text }) => again.has(text));
}

/** A daemon may be deleting a conversation: only what is found twice is a leftover (FSCK-1). */
async function leftoversIn(inspector: StoreInspector): Promise<Leftover[]> {
  const first = await inspector.leftovers();
  if (first.length === 0) return [];
  await sleep(SETTLE_MS);
  const paths = new Set((await inspector.leftovers()).map(({ conversation, path }) => conversation + path));
  return first.filter(({ conversation, path }) => paths.has(conversation + path));
}

/** Null: they cannot be read, or have no known shape (OFFLINE-FINDINGS-2). */
function entriesOf({ log }: Inspection): readonly Entry[] | null {
  return 'damage' in log || checkShapes(log.entries).length > 0 ? null : log.entries;
}

/** Null: what the log names is not known as a whole. */
function wholeOf(inspection: Inspection): readonly Entry[] | null {
  const isTorn = 'tornTail' in inspection.log && inspection.log.tornTail !== null;
  return isTorn ? null : entriesOf(inspection);
}

/** A daemon may be writing to it: only what every inspection finds is a fault (FSCK-1). */
async function inspectConversation(
  inspector: StoreInspector,
  conversation: string,
  { definitions, files }: Checks,
): Promise<Finding[]> {
  const inspectOnce = async () => {
    const inspection = await inspector.inspect(conversation);
    const found = findingsOf(conversation, inspection);
    const entries = entriesOf(inspection);
    files.note(conversation, wholeOf(inspection));
    if (entries === null) return found;
    const ofFiles = await files.faults(conversation, entries);
    return [...found, ...(await definitions.findings(conversation, entries)), ...ofFiles];
  };
  let found = await inspectOnce();
  for (let looks = 1; looks < INSPECTIONS && found.length > 0; looks++) {
    const again = await inspectOnce();
    found = again.filter(({ text }) => found.some((one) => one.text === text));
  }
  return found;
}

async function repairConversation(store: ConversationStore, conversation: string): Promise<void> {
  const { log, entries, tornTail } = await store.open(conversation); // cuts a torn tail
  try {
    const newId = createIdSource();
    const closing = closeStrayCalls(entries, { newId: () => newId(), createdAt: new Date().toISOString() });
    if (closing.length > 0) {
      await log.append(entries.length, closing);
      entries.push(...closing);
    }
    const state = stateOf(entries);
    if (hasOutstandingWork(state)) await store.markOpen(conversation);
    const isListed = async () => (await store.rows()).some(({ id }) => id === conversation);
    if (entries.length === 0 && tornTail === null && !(await isListed())) return; // there is no log
    await saveProjections(store, conversation, state, entries);
  } finally {
    await log.close();
  }
}

function withOutcome(before: readonly FsckReport[], after: readonly FsckReport[]): FsckReport[] {
  return before.map(({ conversation, findings }) => {
    const left = after.find((one) => one.conversation === conversation)?.findings ?? [];
    const isLeft = (text: string) => left.some((one) => one.text === text);
    const known = findings.map((one) => ({ ...one, repaired: !isLeft(one.text) }));
    const fresh = left.filter(({ text }) => !findings.some((one) => one.text === text));
    return { conversation, findings: [...known, ...fresh] };
  });
}

/** Checks the definitions that a log names, and the requests that log and definition give. */
class DefinitionChecks {
  readonly #get: (hash: string) => Promise<string | null>;
  readonly #withViews: boolean;
  readonly #files: FileCache;
  /** By hash. Complete definitions only: what is missing may be there when it is read again. */
  readonly #known = new Map<string, RequestSources>();

  constructor({ definition, blobs }: StoreInspector, withViews: boolean) {
    this.#get = definition;
    this.#withViews = withViews;
    this.#files = new FileCache((sha256) => blobs.read(sha256));
  }

  async findings(conversation: string, entries: readonly Entry[]): Promise<Finding[]> {
    const found: Finding[] = [];
    const failed = new Set<string>();
    for (const entry of entries) {
      const hash = entry.type === 'turn-started' ? entry.definition : undefined;
      if (hash === undefined || this.#known.has(hash) || failed.has(hash)) continue;
      try {
        this.#known.set(hash, sourcesOf(await readDefinition(hash, this.#get)));
      } catch (error) {
        failed.add(hash);
        found.push(finding('definition', `entry ${entry.index}: ${messageOf(error)}`));
      }
    }
    return this.#withViews ? [...found, ...(await this.#viewFindings(conversation, entries))] : found;
  }

  /** Every recorded hash of a request is compared with the request that the daemon would build at that place of the log. */
  async #viewFindings(conversation: string, entries: readonly Entry[]): Promise<Finding[]> {
    const log = new Conversation(noRules);
    const requests = new Requests(
      conversation,
      (_log, turn) => this.#sourcesAt(entries, turn.resumedAt) ?? NONE,
      this.#files,
    );
    const findings: Finding[] = [];
    for (const entry of entries) {
      // An answer is not part of the log that its request was built from; the entry that asks for a call is.
      const isAnswer = entry.type === 'message' || entry.type === 'attempt-failed';
      if (!isAnswer) log.append(entry);
      const found = await this.#viewFinding(log, requests, entry);
      if (isAnswer) log.append(entry);
      if (found) findings.push(found);
    }
    return findings;
  }

  async #viewFinding(log: Conversation, requests: Requests, entry: Entry): Promise<Finding | null> {
    const agent = agentOf(entry);
    const turn = agent === null ? null : log.state.agents[agent]?.turn;
    if (agent === null || !turn || !this.#sourcesAt(log.entries, turn.resumedAt)) return null;
    const next = await requests.next(log, agent, turn.turnId);
    const request = next?.request;
    if ('requestHash' in entry && request?.hash === entry.requestHash) return null;
    return finding(
      'view',
      `entry ${entry.index}: the request that log and definition give has another hash than the recorded one`,
    );
  }

  #sourcesAt(entries: readonly Entry[], resumedAt: number): RequestSources | undefined {
    const started = entries[resumedAt];
    return started?.type === 'turn-started' ? this.#known.get(started.definition ?? '') : undefined;
  }
}

/** The agent whose request has its hash in this entry; null: none. */
function agentOf(entry: Entry): string | null {
  if (entry.type === 'message') return entry.requestHash ? entry.author.id : null;
  if (entry.type === 'turn-started' || entry.type === 'summary' || entry.type === 'attempt-failed')
    return entry.requestHash ? entry.agent : null;
  return null;
}

/** A check decides nothing. */
function noRules(): never {
  throw new Error('a check of a log has no rules');
}

/** The sources of a turn without a recorded definition, which is not checked. */
const NONE: RequestSources = {
  roster: createRoster([], ''),
  prompts: { baseChat: '', baseRun: '', toolPolicy: '' },
  workflows: new Map(),
  tools: () => new Map(),
  availability: () => ({ rules: [], otherwise: 'forbidden' }),
  agents: new Map(),
};

export type FindingKind =
  | 'damage'
  | 'torn-tail'
  | 'law'
  | 'stray-call'
  | 'audit'
  | 'output'
  | 'definition'
  | 'view'
  | 'file'
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

/**
 * Finds faults in the files of one conversation.
 *
 * OFFLINE-FINDINGS-1  A projection may lag. It is faulty if it does not follow from the first entries of the log, as many
 *                     as it names (L1).
 * OFFLINE-FINDINGS-2  A log with an invalid entry is not checked further: the laws are defined on entries.
 */
function findingsOf(conversation: string, inspection: Inspection): Finding[] {
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
function leftoverFinding(path: string): Finding {
  return finding('deleted', `${path} remains from a deleted conversation`, 'removes it');
}

function finding(kind: FindingKind, text: string, repair: string | null = null): Finding {
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

/** Compares the stored files and their records with what the logs name. */
class FileChecks {
  /** By conversation, what was read of its log last. */
  readonly named = new Map<string, NamedFiles>();
  readonly #blobs: InspectedBlobs;
  /** Hashes of content that was read to its end. What is damaged may be whole when it is read again. */
  readonly #whole = new Set<string>();
  /** Conversations whose logs cannot be read as a whole. */
  readonly #unknown = new Set<string>();

  constructor(blobs: InspectedBlobs) {
    this.#blobs = blobs;
  }

  /** Null: what its log names is not known. */
  note(conversation: string, entries: readonly Entry[] | null): void {
    if (entries === null) {
      this.named.delete(conversation);
      this.#unknown.add(conversation);
      return;
    }
    const files = [...filesIn(entries).values()].map(([, file]) => file);
    this.named.set(conversation, { first: entries[0] ?? null, files });
    this.#unknown.delete(conversation);
  }

  async faults(conversation: string, entries: readonly Entry[]): Promise<Finding[]> {
    const found: Finding[] = [];
    const [first] = entries;
    for (const [index, file] of first ? filesIn(entries).values() : []) {
      const [what, repair = null] = (await this.#faultOf(file, conversation, first as Entry)) ?? [];
      if (what) found.push(finding('file', `entry ${index}: its file ${file.sha256} ${what}`, repair));
    }
    return found;
  }

  async #faultOf(
    { sha256, size }: FilePart,
    conversation: string,
    first: Entry,
  ): Promise<readonly [what: string, repair?: string] | null> {
    try {
      const facts = await this.#blobs.facts(sha256);
      if (!(await this.#blobs.hasContent(sha256))) return ['is missing'];
      if (facts === null) return ['has no record: the next sweep would erase it', 'writes its record again'];
      const content = this.#whole.has(sha256) ? [] : await this.#blobs.read(sha256);
      for await (const _ of content ?? []); // to its end: only then its hash is verified
      this.#whole.add(sha256);
      if (facts.size !== size) return [`has ${facts.size} bytes, and the entry says ${size}`];
      if (await this.#blobs.isClaimed(sha256, conversation, first)) return null;
      return [
        'is not recorded as one of this conversation: a deletion elsewhere would erase it',
        'records it',
      ];
    } catch (error) {
      return [`cannot be read: ${messageOf(error)}`];
    }
  }

  /** Files that no log names, stored before this time (ISO 8601). None while a log cannot be read. */
  async orphans(before: string): Promise<Finding[]> {
    if (this.#unknown.size > 0) return [];
    const named = new Set([...this.named.values()].flatMap(({ files }) => files.map(({ sha256 }) => sha256)));
    const stored = [...(await this.#blobs.stored())].filter(
      ([sha256, at]) => at < before && !named.has(sha256),
    );
    return stored.map(([sha256, at]) =>
      finding('file', `no log names the file ${sha256}, which was stored at ${at}`, 'erases it'),
    );
  }
}
