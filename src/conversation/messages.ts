import type { Reduction } from './decide/command.ts';
import { namedSession, summaryOf } from './decide/records.ts';
import { type Entry, SYSTEM_AUTHOR } from './log/entry.ts';
import { AgentView } from './view/view.ts';
import { DEFAULT_VIEW_POLICY, type ViewMessage, type ViewPolicy } from './view/view-parts.ts';

/** Input of `buildAgentMessages`. */
export interface AgentMessagesInput {
  /** The log, or its beginning; `entries[i].index` is `i`. */
  readonly entries: readonly Entry[];
  /** The slug of the agent whose view it is. */
  readonly agent: string;
  /** Indexes of the entries to answer, if the agent's turn has not started in `entries`. */
  readonly trigger?: readonly number[];
  /** The system message before everything else. */
  readonly prefix?: string;
  readonly policy?: Partial<ViewPolicy>;
}

/** The messages of a request, for programs with their own daemon. Pure (L6). */
export function buildAgentMessages(input: AgentMessagesInput): ViewMessage[] {
  const { agent, trigger, prefix } = input;
  const policy = { ...DEFAULT_VIEW_POLICY, ...input.policy };
  const entries = trigger ? [...input.entries, ...turnStart(input.entries, agent, trigger)] : input.entries;
  const { history, tail } = new AgentView(entries, agent, policy).build();
  const messages = [...history, ...tail].map((part) => part.message);
  return prefix === undefined ? messages : [{ role: 'system', content: prefix }, ...messages];
}

/** The entries that a turn on `trigger` would begin with after `entries`. */
export function turnStart(entries: readonly Entry[], agent: string, trigger: readonly number[]): Entry[] {
  const common = { id: 'not-appended', createdAt: '', author: SYSTEM_AUTHOR, agent };
  const named = namedSession(trigger.map((index) => entries[index]));
  const index = entries.length;
  const set: Entry[] = named ? [{ index, ...common, type: 'session-set', ...named }] : [];
  const turn = { turnId: 'not-started', trigger: [...trigger] };
  return [...set, { index: index + set.length, ...common, type: 'turn-started', ...turn }];
}

/** The entry that a reduction would append. */
export function summaryEntry(index: number, turnId: string, agent: string, reduction: Reduction): Entry {
  return { index, id: 'not-appended', createdAt: '', ...summaryOf({ turnId, agent }, reduction) };
}
