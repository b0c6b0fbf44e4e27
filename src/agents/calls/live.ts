import type { NewId } from '../../kernel/index.ts';
import type { ModelDelta } from '../model-port.ts';

/** What is shown of a model call while it runs. Ephemeral: the log has the whole. */
export interface LiveDelta {
  readonly turnId: string;
  /** One attempt of a model call. */
  readonly call: string;
  /** Numbers the chunks of that attempt, from 0. */
  readonly n: number;
  readonly type: ModelDelta['type'];
  readonly delta: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
}

/** Numbers the deltas of one attempt. */
export function liveCall(
  turnId: string,
  newId: NewId,
  publish: (chunk: LiveDelta) => void,
): (delta: ModelDelta) => void {
  const call = newId();
  let n = 0;
  return (delta) => {
    const chunk = { turnId, call, n: n++, type: delta.type, delta: delta.delta };
    if (delta.type !== 'tool_call_delta') publish(chunk);
    else publish({ ...chunk, toolCallId: `${call}_${delta.position}`, toolName: delta.name });
  };
}
