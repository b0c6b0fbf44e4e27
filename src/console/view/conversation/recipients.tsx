import { recipientsOf } from '../../model/recipients.ts';
import type { Workflow } from '../../model/thread/runs.ts';
import { nameOf, useThread } from '../../state/conversation.ts';
import { agents, defaultAgent } from '../../state/session.ts';

/** Who gets the message. */
export function To({ content, place }: { readonly content: string; readonly place: string }) {
  const thread = useThread()?.thread ?? null;
  if (defaultAgent.value === null) return null;
  const to = recipientsOf(content, place === '' ? null : thread, agents.value, defaultAgent.value);
  const names = (slugs: readonly string[]) => slugs.map(nameOf).join(', ');
  return (
    <p id="recipients" class="muted">
      {to.isAnswer ? 'Answers the question of ' : 'To '}
      <bdi class="names">{names(to.slugs)}</bdi>
      {to.missed.length > 0 && <>, not to {names(to.missed)}, at work</>}
      {to.unknown.length > 0 && (
        <span class="unknown">There is no agent {to.unknown.map((word) => `@${word}`).join(', ')}.</span>
      )}
    </p>
  );
}

/** Who gets the message that starts a workflow. */
export function ToWorkflow({ id, start, nodes }: Workflow) {
  const agent = nodes.find(({ node }) => node === start)?.agent ?? '';
  return (
    <p id="recipients" class="muted">
      Starts the workflow {id}: to <bdi class="names">{nameOf(agent)}</bdi> at {start}
    </p>
  );
}
