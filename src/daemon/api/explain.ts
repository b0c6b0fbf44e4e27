import { type Explanation, explainStored } from '../../agents/index.ts';
import type { RequestOf } from '../../bus/index.ts';
import type { ConversationWorker } from '../conversations/worker/worker.ts';
import type { Runtime } from '../runtime.ts';

/** The verb `view`. `room`: the largest answer, in bytes; texts of the definition that do not fit are left out. */
export async function explainRequest(
  worker: Pick<ConversationWorker, 'entries' | 'state'>,
  { conversation, agent, at, texts }: RequestOf<'view'>,
  { team, definitions }: Pick<Runtime, 'team' | 'definitions'>,
  room: number,
): ReturnType<typeof explainStored> {
  const read = (hash: string) => definitions.read(hash);
  const { sources } = team.for(worker.state);
  const explained = await explainStored(worker.entries(), conversation, agent, at, sources, read, texts);
  return explained.ok ? { ...explained, explanation: within(explained.explanation, room) } : explained;
}

function within({ messages, report }: Explanation, room: number): Explanation {
  const { texts, ...definition } = report.definition;
  if (!texts) return { messages, report };
  const others = { messages, report: { ...report, definition } };
  let left = room - sizeOf(others);
  const fitting = Object.entries(texts).filter((one) => {
    const size = sizeOf(one);
    if (size > left) return false;
    left -= size;
    return true;
  });
  return {
    messages,
    report: { ...report, definition: { ...definition, texts: Object.fromEntries(fitting) } },
  };
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
