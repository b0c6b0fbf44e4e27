import type { ConversationDetail } from '../../client/index.ts';

/** A conversation on one line: what a switch answers with. */
export function renderState({ id, phase, mode, activeAgent }: ConversationDetail): string {
  return `${id}: phase ${phase}, mode ${mode}, ${activeAgent ? `${activeAgent} has the floor` : 'nobody has the floor'}`;
}
