import type { MessageEntry } from '../../../conversation/index.ts';
import type { Thread } from './thread.ts';

/** After what an agent reads a message that it was not shown. */
type Until = 'approval' | 'outcome' | 'question' | 'agent' | 'program';

export interface Unread {
  readonly agent: string;
  readonly until: Until;
}

/** The agents to which a person's message is addressed, and which read it only after a wait. `lacksProgram`: by agent. */
export function unreadBy(
  thread: Thread,
  { index, author, to = [] }: MessageEntry,
  lacksProgram: (agent: string) => boolean,
): readonly Unread[] {
  if (author.kind !== 'person') return [];
  return to.flatMap((agent) => {
    const { status, cursor, isStopped } = thread.stateOf(agent);
    if (isStopped || index < cursor) return [];
    if (status === 'waiting') return [{ agent, until: waitOf(thread, agent) }];
    return status === 'running' && lacksProgram(agent) ? [{ agent, until: 'program' }] : [];
  });
}

function waitOf(thread: Thread, agent: string): Until {
  const calls = thread.waitingCalls.filter(({ place }) => thread.entries[place.index]?.author.id === agent);
  if (calls.length > 0) return calls.some(({ approval }) => !approval?.mayHaveRun) ? 'approval' : 'outcome';
  return thread.questions.some((question) => question.agent === agent) ? 'question' : 'agent';
}
