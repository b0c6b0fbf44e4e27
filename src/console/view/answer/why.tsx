import { useEffect, useState } from 'preact/hooks';
import type { Difference, ExplainedRequest } from '../../../conversation/index.ts';
import { requests } from '../../api/requests.ts';
import { oneLine } from '../../model/format.ts';
import { changesOf, previousAnswer } from '../../model/why.ts';
import { opened } from '../../state/conversation.ts';
import { Fold } from '../parts/parts.tsx';
import { DefinitionSection } from './definition.tsx';
import { EntryLinks, messageText } from './entry-links.tsx';
import { LeftOut, Parts, RequestFacts, Window } from './request.tsx';

interface Loaded {
  readonly now: ExplainedRequest;
  readonly before: ExplainedRequest | null;
  readonly previous: number | null;
}

/** The exact request of an answer, its definition, and the changes since the previous one. */
export function Why({
  id,
  index,
  agent,
}: {
  readonly id: string;
  readonly index: number;
  readonly agent: string;
}) {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    const previous = previousAnswer(opened.value?.thread.entries ?? [], index, agent);
    const before = previous === null ? Promise.resolve(null) : requests.view(id, agent, previous);
    Promise.all([requests.view(id, agent, index), before]).then(
      ([now, earlier]) => setLoaded({ now, before: earlier, previous }),
      (error: Error) => setFault(error.message),
    );
  }, [id, index, agent]);
  if (fault) return <p class="fault aside">{fault}</p>;
  if (!loaded) return <p class="muted aside">…</p>;
  return (
    <div class="account">
      <Window request={loaded.now} />
      <RequestFacts request={loaded.now} />
      <LeftOut request={loaded.now} />
      <DefinitionSection id={id} agent={agent} index={index} now={loaded.now} />
      <Changes {...loaded} />
      <Parts request={loaded.now} />
    </div>
  );
}

interface ChangesProps {
  readonly now: ExplainedRequest;
  /** The request of the previous answer; null: there is none. */
  readonly before: ExplainedRequest | null;
  readonly previous: number | null;
}

/** The messages that differ from the request of the agent's previous answer. */
function Changes({ now, before, previous }: ChangesProps) {
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
        <span class="muted"> {oneLine(messageText(placed.message), 140)}</span>
      </span>
    </li>
  );
}
