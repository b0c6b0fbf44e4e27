import { randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { expect } from 'vitest';
import type { ParleyClient, PostMessage } from '../../src/client/index.ts';
import { checkLaws, type Entry } from '../../src/conversation/index.ts';

/** A post and its answer, and how to read a log of entries: through a client, from its file, and by what it contains. */

type Condition = (entries: readonly Entry[]) => boolean;

/** Posts as Alice, unless `more` names another publisher. Returns the log when a turn has ended after it and none runs. */
export async function ask(
  client: ParleyClient,
  conversation: string,
  content: string,
  more: Partial<PostMessage> = {},
): Promise<Entry[]> {
  const id = randomUUID();
  const { index } = await client.post({ conversation, publisher: 'alice', content, id, ...more });
  return followUntil(
    client,
    conversation,
    (entries) => turnsEnded(1)(entries) && entries.slice(index).some(({ type }) => type === 'turn-ended'),
  );
}

/** The whole log, read through the request API. */
export async function entriesOf(client: ParleyClient, conversation: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (;;) {
    const page = await client.request('entries', { conversation, from: entries.length });
    entries.push(...page.entries);
    if (entries.length >= page.length) return entries;
  }
}

/** The whole log, which keeps the laws. */
export async function lawfulEntries(client: ParleyClient, conversation: string): Promise<Entry[]> {
  const entries = await entriesOf(client, conversation);
  expect(checkLaws(entries)).toEqual([]);
  return entries;
}

/** Follows the log until its entries satisfy the condition. Returns all of them. */
export async function followUntil(
  client: ParleyClient,
  conversation: string,
  condition: Condition,
): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const event of client.follow(conversation, { from: 0, live: false })) {
    if (event.kind !== 'entry') continue;
    entries.push(event.entry);
    if (condition(entries)) return entries;
  }
  throw new Error('the following ended');
}

/** Whether this many turns have ended, and none runs. */
export function turnsEnded(count: number): Condition {
  return (entries) => {
    const ended = new Set(ofType(entries, 'turn-ended').map(({ turnId }) => turnId));
    const begun = new Set(ofType(entries, 'turn-started').map(({ turnId }) => turnId));
    return ended.size >= count && begun.size === ended.size;
  };
}

export function ofType<T extends Entry['type']>(entries: readonly Entry[], type: T) {
  return entries.filter((entry): entry is Extract<Entry, { type: T }> => entry.type === type);
}

/** The messages of an agent in order: text and the tools it called. */
export function saidBy(entries: readonly Entry[], agent: string): [string | null, string[]][] {
  return ofType(entries, 'message')
    .filter((entry) => entry.role === 'assistant' && entry.author.id === agent)
    .map((entry) => [entry.content, (entry.tool_calls ?? []).map((call) => call.function.name)]);
}

/** Whether a turn of the agent has waited for another agent or a person. */
export function hasWaited(entries: readonly Entry[], agent: string): boolean {
  return ofType(entries, 'turn-ended').some((entry) => entry.agent === agent && entry.outcome === 'waiting');
}

/** A tool call as a model writes it. */
export const toolCall = (name: string, given: string, id: string) => ({
  ...{ id, type: 'function' as const, function: { name, arguments: given } },
});

/** Every tool call, in order, with the results that it got. */
export function callsOf(entries: readonly Entry[]) {
  const messages = ofType(entries, 'message');
  return messages.flatMap((entry) =>
    (entry.tool_calls ?? []).map((call, position) => ({
      agent: entry.author.id,
      name: call.function.name,
      results: messages.filter(
        (other) => other.call?.index === entry.index && other.call.position === position,
      ),
    })),
  );
}

/** How each turn of an agent ended, without the waits in between. */
export function outcomesOf(entries: readonly Entry[], agent: string): string[] {
  return ofType(entries, 'turn-ended')
    .filter((entry) => entry.agent === agent && entry.outcome !== 'waiting')
    .map(({ outcome }) => outcome);
}

/** Whether this many turns have ended, not counting waits. */
export function finished(count: number): Condition {
  return (entries) =>
    ofType(entries, 'turn-ended').filter((entry) => entry.outcome !== 'waiting').length >= count;
}

/** The daemons that claimed the conversation, in order. */
export function claimants(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => (entry.type === 'claim' ? [entry.daemon] : []));
}

/** The ids of people's messages, in order. */
export function postedIds(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => (entry.type === 'message' && entry.role === 'user' ? [entry.id] : []));
}

/** The texts of people and agents, in order. */
export function said(entries: readonly Entry[]): (string | null)[] {
  return entries.flatMap((entry) =>
    entry.type === 'message' && entry.role !== 'tool' ? [entry.content] : [],
  );
}

/**
 * Checks the text of a `log.jsonl` against the laws of any log, by the text alone. Returns one sentence for each
 * violation; a sound log has none.
 */
export function checkLog(text: string): string[] {
  const faults: string[] = [];
  if (!text.endsWith('\n')) faults.push('the last line is not finished');
  const entries = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line, at) => parseLine(line, at, faults));
  return [...faults, ...checkLaws(entries)];
}

/** The entries of a log file, without a check of the checksums. */
export function parseLog(text: string): Entry[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Entry);
}

/** Each line ends with the CRC-32 of the text before it. */
function parseLine(line: string, at: number, faults: string[]): Entry {
  const seal = /,"sum":"([0-9a-f]{8})"\}$/.exec(line);
  const body = Buffer.from(line.slice(0, seal?.index ?? 0));
  const wanted = crc32(body).toString(16).padStart(8, '0');
  if (seal?.[1] !== wanted) faults.push(`line ${at}: checksum ${seal?.[1]}, expected ${wanted}`);
  return JSON.parse(line) as Entry;
}
