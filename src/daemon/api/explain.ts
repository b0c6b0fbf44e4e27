import { type Explanation, explainStored, type RequestSources } from '../../agents/index.ts';
import type { RequestOf } from '../../bus/index.ts';
import type { Entry } from '../../conversation/index.ts';
import type { Definitions } from '../definitions.ts';

/** The verb `view`. `room`: the largest answer, in bytes; texts of the definition that do not fit are left out. */
export async function explainRequest(
  entries: readonly Entry[],
  { conversation, agent, at, texts }: RequestOf<'view'>,
  { sources, definitions }: { readonly sources: RequestSources; readonly definitions: Definitions },
  room: number,
): ReturnType<typeof explainStored> {
  const read = (hash: string) => definitions.read(hash);
  const explained = await explainStored(entries, conversation, agent, at, sources, read, texts);
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
