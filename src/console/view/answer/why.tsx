import { useEffect, useState } from 'preact/hooks';
import type { ExplainedRequest } from '../../../conversation/index.ts';
import { requests } from '../../api/requests.ts';
import { previousAnswer } from '../../model/why.ts';
import { opened } from '../../state/conversation.ts';
import { Changes } from './changes.tsx';
import { DefinitionSection } from './definition.tsx';
import { Facts, LeftOut, Parts, Window } from './request.tsx';

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
      <Facts request={loaded.now} />
      <LeftOut request={loaded.now} />
      <DefinitionSection id={id} agent={agent} index={index} now={loaded.now} />
      <Changes {...loaded} />
      <Parts request={loaded.now} />
    </div>
  );
}
