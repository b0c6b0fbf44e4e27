import { batch, computed, signal } from '@preact/signals';
import type { AnswerOf } from '../../bus/contract.ts';
import { filesOf } from '../../conversation/log/parts.ts';
import { type Following, follow } from '../api/follow.ts';
import type { Connection } from '../api/hub.ts';
import { requests } from '../api/requests.ts';
import { type Recipients, recipientsOf } from '../model/addressing.ts';
import type { AgentCard } from '../model/answers.ts';
import { fileText } from '../model/files.ts';
import { shortLine } from '../model/format.ts';
import type { Block, NameOf } from '../model/thread/blocks.ts';
import {
  type Chunk,
  type Drafts,
  interrupted,
  type LiveDraft,
  NO_DRAFTS,
  Said,
  withChunk,
  withoutInterrupted,
  withoutSaid,
} from '../model/thread/live.ts';
import type { Hired, Participant, Thinking } from '../model/thread/thread.ts';
import { participantsOf, shownName, Thread } from '../model/thread/thread.ts';
import { deletedIds, isListed, rows } from './conversations.ts';
import { accepted, type KeptPost, outbox } from './outbox.ts';
import { agents, defaultAgent, isAway, me, nameOfMe } from './session.ts';

/** The open conversation: its thread, its streamed text, and the state of the connection. */

export type Opened = { readonly id: string; readonly thread: Thread };

export const opened = signal<Opened | null>(null);
/** Counts changes of the thread. Components that show the thread read it, so that they update. */
export const version = signal(0);
export const drafts = signal<Drafts>(NO_DRAFTS);
export const connection = signal<Connection>({ kind: 'connecting' });
/** The entries of the log when it was opened; 0: there is no such conversation; null: not known yet. */
export const loggedLength = signal<number | null>(null);
/** The position of the block with the keyboard selection. */
export const selected = signal<number | null>(null);
/** For screen readers. */
export const announcement = signal('');

/**
 * The person's posts that the thread shows before the log has them. Not a computed signal: the thread gets entries before
 * `version` counts them, and must not show a post twice meanwhile.
 */
export function pending(): readonly KeptPost[] {
  void version.value;
  const here = opened.value;
  if (!here) return [];
  const { entries } = here.thread;
  const listed = isAway.value ? rows.value.find(({ id }) => id === here.id) : null; // it may have more than is loaded
  const known = Math.max(entries.length, listed?.length ?? 0);
  const sending = outbox.value.filter(({ state }) => state === 'sending');
  const logged = new Set(sending.length > 0 ? entries.slice(-RECENT).map(({ id }) => id) : []);
  return [...accepted.value.filter(({ index }) => index >= known), ...sending].filter(
    ({ conversation, post }) => conversation === here.id && !logged.has(post.id),
  );
}

/** Entries that may be newer than the answer to a post. */
const RECENT = 200;

export const participants = computed<ReadonlyMap<string, Participant>>(() => {
  void version.value;
  const authors = opened.value?.thread.authors ?? new Map<string, string>();
  const isNewcomer = pending().length > 0 && !authors.has(me.value);
  return participantsOf(
    [...agents.value, ...(opened.value?.thread.hires.values() ?? [])],
    isNewcomer ? new Map([...authors, [me.value, nameOfMe.value]]) : authors,
  );
});

/** The agents that can be written to here: those of the daemon, and those that were hired here. */
export const team = computed<readonly (AgentCard | Hired)[]>(() => {
  void version.value;
  return [...agents.value, ...(opened.value?.thread.hired ?? [])];
});

/** Who gets this message. `thread`: null for a new conversation. */
export const recipientsHere = (content: string, thread: Thread | null): Recipients =>
  recipientsOf(content, thread, agents.value, defaultAgent.value);

/** The agents that work and stream no text. */
export const thinking = computed<readonly Thinking[]>(() => {
  void version.value;
  const agents = isAway.value ? [] : (opened.value?.thread.thinking ?? []);
  return agents.filter(({ turnId }) => !drafts.value.has(turnId));
});

export function ownMessages(): readonly string[] {
  const logged = (opened.value?.thread.entries ?? []).flatMap((entry) =>
    entry.type === 'message' && entry.author.id === me.value ? (entry.content ?? '') : [],
  );
  const all = [...logged, ...pending().map(({ post }) => post.content)];
  return all.filter((text) => text !== '').reverse();
}

/** The keys of streamed texts, by the index of their message: their elements are kept, and a selection in them. */
const streamedAs = new Map<number, string>();

export const keyOfDraft = ({ turnId, call }: LiveDraft): string => `live ${turnId} ${call}`;

/** The same before and after an entry is in the log. */
export function keyOfBlock(block: Block): string {
  const isPost = block.kind === 'message' && block.entry.role === 'user';
  return isPost ? keyOfPost(block.entry) : (streamedAs.get(block.index) ?? String(block.index));
}

export const keyOfPost = ({ id }: { readonly id: string }): string => `post ${id}`;

export function nameOf(id: string): string {
  const who = participants.value.get(id);
  return who ? shownName(who.name, who) : id;
}

/** The author of an entry, with the name that it had then; of an import, which knows slugs alone, the one that it has. */
export function nameOfAuthor({ id, name }: { readonly id: string; readonly name: string }): string {
  return name === id ? nameOf(id) : shownName(name, participants.value.get(id));
}

export function isAtWork(thread: Thread): boolean {
  return [...thread.agents.values()].some(({ status }) => status === 'running');
}

/** False if an agent was resumed since: a message that names one resumes it alone. */
export function isWhollyStopped(thread: Thread): boolean {
  return thread.isStopped && agents.value.every(({ slug }) => thread.stateOf(slug).isStopped);
}

/** Those that a stop of all agents stopped, and that were not resumed since. */
export const stillStopped = (thread: Thread) =>
  thread.isStopped ? team.value.filter(({ slug }) => thread.stateOf(slug).isStopped) : [];

/** The open conversation, for a component that updates with the thread. */
export function useThread(): Opened | null {
  void version.value;
  return opened.value;
}

/** What is shown of it was deleted: a message begins another conversation. */
export const isDeleted = (here: Opened | null) =>
  here !== null && here.thread.entries.length > 0 && deletedIds.value.has(here.id);

/** The same; while a long log is loaded, its end. */
export function useShown(): Opened | null {
  const here = useThread();
  const { end } = loading.value ?? {};
  return here && end ? { ...here, thread: end } : here;
}

let leave = () => {};

export function open(id: string): void {
  if (opened.value?.id === id) return;
  close();
  const left = new AbortController();
  leave = () => left.abort();
  const nameOf = (slug: string) => agents.value.find((agent) => agent.slug === slug)?.name ?? slug;
  const thread = new Thread(nameOf);
  opened.value = { id, thread };
  const chunks: Chunk[] = [];
  const saidSoFar = new Said();
  let hasEntries = false;
  let isPlanned = false;
  const show = () => {
    isPlanned = false;
    if (left.signal.aborted) return;
    batch(() => {
      drafts.value = chunks.splice(0).reduce(withChunk, drafts.value);
      if (hasEntries) version.value++;
    });
    hasEntries = false;
  };
  const plan = (ms: number) => {
    if (!isPlanned) setTimeout(show, ms);
    isPlanned = true;
  };
  const following: Following = {
    conversation: id,
    signal: left.signal,
    next: () => thread.entries.length,
    onEntry(entry) {
      const isNew = entry.index >= thread.entries.length;
      if (!thread.add(entry)) throw new Error(`entry ${entry.index} came before ${thread.entries.length}`);
      if (!isNew) return;
      const before = chunks.splice(0).reduce(withChunk, drafts.value);
      drafts.value = withoutSaid(before, entry);
      saidSoFar.add(before, entry);
      const said = before.get(entry.turnId ?? '');
      if (said && entry.type === 'message' && !drafts.value.has(said.turnId))
        streamedAs.set(entry.index, keyOfDraft(said));
      if (connection.value.kind === 'live') announce(thread.blockAt(entry.index), entry.createdAt);
      hasEntries = true;
      plan(ENTRIES_MS);
    },
    onCurrent(length) {
      loggedLength.value = length;
      drafts.value = withoutInterrupted(drafts.value);
    },
    onChunk(chunk) {
      if (saidSoFar.has(chunk)) return;
      chunks.push(chunk);
      plan(TEXT_MS);
    },
    onConnection(state) {
      connection.value = state;
      if (state.kind === 'over' && state.code === 'CONVERSATION_DELETED') {
        close(); // it has begun anew
        open(id);
      }
      if (state.kind === 'lost') drafts.value = interrupted(chunks.splice(0).reduce(withChunk, drafts.value));
    },
  };
  void loadLong(id, thread, nameOf, left.signal).then(() => {
    if (left.signal.aborted) return;
    batch(() => {
      const index = loading.value?.end.blocks[selected.value ?? -1]?.index;
      if (index !== undefined) selected.value = thread.placeOf(index);
      loading.value = null;
      version.value++;
    });
    follow(following);
  });
}

/** A log that is loaded arrives in many parts. */
const ENTRIES_MS = 16;
/** Streamed text is shown at this pace: each frame of many agents costs as much as the last. */
const TEXT_MS = 50;

export function close(): void {
  leave();
  opened.value = null;
  loading.value = null;
  drafts.value = NO_DRAFTS;
  streamedAs.clear();
  loggedLength.value = null;
  selected.value = null;
  connection.value = { kind: 'connecting' };
}

/** Older entries are not announced. */
const NEWS_MS = 10_000;

function announce(block: Block | null, createdAt: string): void {
  if (block === null || Date.now() - Date.parse(createdAt) >= NEWS_MS) return;
  if (block.kind === 'message')
    announcement.value = `${nameOfAuthor(block.entry.author)}: ${shortLine(block.entry.content || filesOf(block.entry).map(fileText).join(', '), 200)}`;
  else if (block.kind === 'passage')
    announcement.value = `${nameOf(block.from)} to ${nameOf(block.to)}: ${shortLine(block.text, 200)}`;
  else if (block.kind === 'band') announcement.value = `${block.tone}: ${block.title}`;
  else announcement.value = block.title;
}

/**
 * Loads a long log before it is followed.
 *
 * LONG-LOG-1 Its end and the state of the conversation are shown first, then the whole.
 * LONG-LOG-2 The whole comes in pages, which are compressed and folded in tasks of their own. What a page does not have, such as an
 *    entry that is too large for one, the event stream brings.
 */

/** Entries; the stream brings a shorter log as fast. */
const LONG = 500;
/** What fills a screen. */
const END = 100;
/** One takes about as long as a frame. */
const PAGE = 500;
const LISTED_WITHIN_MS = 3_000;

interface Loading {
  /** The end of the log: of the entries before it nothing is known. */
  readonly end: Thread;
  readonly loaded: number;
  readonly length: number;
}

/** A long log that is not whole yet; null: none. */
export const loading = signal<Loading | null>(null);

/** Resolves when the thread can be followed from its length on. It is shown when `loading` is null. */
async function loadLong(id: string, thread: Thread, nameOf: NameOf, left: AbortSignal): Promise<void> {
  try {
    await listed(left);
    const known = rows.value.find((row) => row.id === id);
    if (left.aborted || !known || known.length < LONG) return;
    const head = await requests.conversation(id);
    const end = await endOf(head, nameOf);
    for (let added = 1; added > 0 && thread.entries.length < head.length && !left.aborted; ) {
      loading.value = { end, loaded: thread.entries.length, length: head.length };
      added = await addPage(id, thread);
    }
  } catch {
    // The stream tells why, and tries again.
  }
}

/** Resolves when the list says how long the conversation is, or should have said it. */
async function listed(left: AbortSignal): Promise<void> {
  const late = performance.now() + LISTED_WITHIN_MS;
  while (!isListed.value && !left.aborted && performance.now() < late)
    await new Promise((resolve) => setTimeout(resolve, 20));
}

async function endOf(head: AnswerOf<'conversation'>, nameOf: NameOf): Promise<Thread> {
  const { id, length, phase, mode, activeAgent, run } = head;
  const from = length - END;
  const { entries } = await requests.entries(id, from, END);
  const end = new Thread(nameOf, from);
  for (const entry of entries) end.add(entry);
  end.floor = { phase, mode, activeAgent, run: run && { ...run, workflowId: run.workflow } };
  return end;
}

async function addPage(id: string, thread: Thread): Promise<number> {
  const { entries } = await requests.entries(id, thread.entries.length, PAGE);
  const whole = entries.findIndex((entry) => 'truncated' in entry);
  const page = whole < 0 ? entries : entries.slice(0, whole);
  for (const entry of page) thread.add(entry);
  return page.length;
}
