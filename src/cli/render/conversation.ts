import type { ConversationDetail } from '../../client/index.ts';

/** A conversation on one line: what a switch answers with. */
export function renderState({ id, phase, mode, activeAgent, run, agents }: ConversationDetail): string {
  const floor = activeAgent ? `${activeAgent} has the floor` : 'no agent has the floor';
  const at = run ? `, run of ${run.workflow} at ${run.node}` : '';
  const input = run?.awaitsInput ? `; ${run.agent} begins with the next message` : '';
  const isStopped = run?.agent && agents?.[run.agent]?.status === 'stopped';
  const stopped = isStopped ? `; ${run.agent} is stopped: the run waits until it is resumed` : '';
  return `${id}: phase ${phase}, mode ${mode}, ${floor}${at}${stopped || input}`;
}
