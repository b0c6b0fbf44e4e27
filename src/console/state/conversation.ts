import { computed, signal } from '@preact/signals';
import { follow } from '../api/follow.ts';
import type { Connection } from '../api/hub.ts';
import type { Block } from '../model/blocks.ts';
import { oneLine } from '../model/format.ts';
import { type Chunk, type Drafts, NO_DRAFTS, withChunk, withoutSaid } from '../model/live.ts';
import { type Participant, participantsOf } from '../model/people.ts';
import { Thread } from '../model/thread.ts';
import { agents } from './session.ts';

/** The open conversation: its thread, its streamed text, and the state of the connection. */

export interface Opened {
  readonly id: string;
  readonly thread: Thread;
}

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

export const participants = computed<ReadonlyMap<string, Participant>>(() => {
  void version.value;
  return participantsOf(agents.value, opened.value?.thread.authors ?? new Map());
});

export function nameOf(id: string): string {
  return participants.value.get(id)?.name ?? id;
}

/** The open conversation, for a component that updates with the thread. */
export function useThread(): Opened | null {
  void version.value;
  return opened.value;
}

let leave = () => {};

/** Closes the open conversation and follows this one. */
export function open(id: string): void {
  if (opened.value?.id === id) return;
  close();
  const left = new AbortController();
  leave = () => left.abort();
  const thread = new Thread((slug) => agents.value.find((agent) => agent.slug === slug)?.name ?? slug);
  opened.value = { id, thread };
  const pending: Chunk[] = [];
  const shown = { isPlanned: false };
  const show = () => {
    shown.isPlanned = false;
    if (left.signal.aborted) return;
    drafts.value = pending.splice(0).reduce(withChunk, drafts.value);
    version.value++;
  };
  const plan = () => {
    if (shown.isPlanned) return;
    shown.isPlanned = true;
    if (document.visibilityState === 'visible') requestAnimationFrame(show);
    else setTimeout(show, 200);
  };
  follow({
    conversation: id,
    signal: left.signal,
    next: () => thread.entries.length,
    onEntry(entry) {
      const before = thread.blocks.length;
      const isNew = entry.index >= thread.entries.length;
      if (!thread.add(entry)) throw new Error(`entry ${entry.index} came before ${thread.entries.length}`);
      if (!isNew) return;
      drafts.value = withoutSaid(pending.splice(0).reduce(withChunk, drafts.value), entry);
      if (connection.value.kind === 'live') announce(thread.blocks.slice(before), entry.createdAt);
      plan();
    },
    onCurrent(length) {
      loggedLength.value = length;
    },
    onChunk(chunk) {
      pending.push(chunk);
      plan();
    },
    onConnection(state) {
      connection.value = state;
      if (state.kind === 'lost') drafts.value = NO_DRAFTS;
    },
  });
}

export function close(): void {
  leave();
  leave = () => {};
  opened.value = null;
  drafts.value = NO_DRAFTS;
  loggedLength.value = null;
  selected.value = null;
  connection.value = { kind: 'connecting' };
}

function isNews(createdAt: string): boolean {
  return Date.now() - Date.parse(createdAt) < NEWS_MS;
}

/** False for old entries. */
const NEWS_MS = 10_000;

function announce(blocks: readonly Block[], createdAt: string): void {
  if (!isNews(createdAt)) return;
  for (const block of blocks) {
    if (block.kind === 'message')
      announcement.value = `${block.entry.author.name}: ${oneLine(block.entry.content ?? '', 200)}`;
    else if (block.kind === 'passage')
      announcement.value = `${nameOf(block.from)} to ${nameOf(block.to)}: ${oneLine(block.text, 200)}`;
    else if (block.kind === 'band') announcement.value = `${block.tone}: ${block.title}`;
    else announcement.value = block.title;
  }
}
