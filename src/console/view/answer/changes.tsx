import type { Difference, ExplainedRequest } from '../../../conversation/index.ts';
import { oneLine } from '../../model/format.ts';
import { changesOf } from '../../model/why.ts';
import { Fold } from '../parts/parts.tsx';
import { EntryLinks, wordsOf } from './entry-links.tsx';

interface ChangesProps {
  readonly now: ExplainedRequest;
  /** The request of the previous answer; null: there is none. */
  readonly before: ExplainedRequest | null;
  readonly previous: number | null;
}

/** The messages that differ from the request of the agent's previous answer. */
export function Changes({ now, before, previous }: ChangesProps) {
  const changes = before ? changesOf(before, now).filter(({ op }) => op !== 'same') : [];
  if (previous === null) {
    return (
      <section>
        <h3>Messages that changed</h3>
        <p class="muted">This was its first call.</p>
      </section>
    );
  }
  return (
    <section>
      <Fold isOpen summary={<h3>Messages that changed since its previous answer ({changes.length})</h3>}>
        <p class="muted">
          compared with the request for entry <EntryLinks entries={[previous]} />
        </p>
        <ul class="changes">
          {changes.map((change, place) => (
            <Change key={place} change={change} />
          ))}
        </ul>
      </Fold>
    </section>
  );
}

function Change({ change }: { readonly change: Difference }) {
  const placed = 'after' in change ? change.after : change.before;
  return (
    <li class={change.op}>
      <span class="sign" aria-hidden="true" />
      <span>
        <span class="unseen">{change.op}: </span>
        <strong>{placed.part?.kind ?? placed.message.role}</strong>{' '}
        <EntryLinks entries={placed.part?.entries ?? []} />
        <span class="muted"> {oneLine(wordsOf(placed.message), 140)}</span>
      </span>
    </li>
  );
}
