import { useState } from 'preact/hooks';
import type { ModelFailure } from '../../../conversation/index.ts';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { requests } from '../../api/requests.ts';
import type { EndedTurn } from '../../model/thread/blocks.ts';
import { nameOf, useThread } from '../../state/conversation.ts';
import { jumpTo } from '../../state/jump.ts';
import { writeTo } from '../../state/keys.ts';
import { agents, attempt, isOperator, mayPost, sender } from '../../state/session.ts';
import { Avatar } from '../parts/parts.tsx';

/** Why a call of a tool or a model failed, in words, with its code for a search. */
export function FailureText({ failure: { code, message } }: { readonly failure: ModelFailure }) {
  return (
    <p class="failure">
      <bdi>{escapeHidden(message)}</bdi> <code>{escapeHidden(code)}</code>
    </p>
  );
}

/** False: it was refused. */
export function continueTurn(id: string, agent: string, outcome: EndedTurn['outcome']): Promise<boolean> {
  return attempt(() =>
    outcome === 'limited'
      ? requests.resume(id, { agent, ...sender() })
      : requests.post(id, { id: crypto.randomUUID(), content: 'Continue.', to: [agent], ...sender() }),
  );
}

interface ActionsProps {
  readonly agent: string;
  readonly ended: EndedTurn;
  readonly index: number;
}

/** What a person can do after a failed turn, until the agent begins another one. */
export function FailedTurnActions({ agent, ended, index }: ActionsProps) {
  const here = useThread();
  const [isChoosing, choose] = useState(false);
  if (!here?.thread.isNewest(agent, ended.turnId) || !mayPost.value) return null;
  const { id, thread } = here;
  const others = agents.value.filter(({ slug }) => slug !== agent);
  const reason = thread.entries.findLast(
    (entry) => entry.index < index && entry.turnId === ended.turnId && entry.type !== 'turn-started',
  );
  return (
    <div class="buttons">
      {(ended.outcome === 'failed' || isOperator.value) && (
        <button type="button" onClick={() => void continueTurn(id, agent, ended.outcome)}>
          {ended.outcome === 'limited' ? 'Resume' : 'Try again'}
        </button>
      )}
      {others.length > 0 && (
        <button type="button" aria-expanded={isChoosing} onClick={() => choose(!isChoosing)}>
          Ask another agent
        </button>
      )}
      {reason && (
        <button type="button" onClick={() => jumpTo(reason.index)}>
          Open the reason
        </button>
      )}
      {isChoosing && (
        <div class="buttons choice">
          {others.map(({ slug }) => (
            <button
              key={slug}
              type="button"
              onClick={() => writeTo(slug, `please continue for ${nameOf(agent)}`)}
            >
              <Avatar id={slug} size="small" />
              {nameOf(slug)}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
