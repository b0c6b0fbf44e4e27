import { useEffect, useState } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import type { WhatIf } from '../../api/what-if.ts';
import { when } from '../../model/format.ts';
import { isOperator } from '../../state/session.ts';
import { WhatIfForm } from './what-if-form.tsx';
import { changeOf, WhatIfProgress } from './what-if-result.tsx';

interface WhatIfsProps {
  readonly id: string;
  readonly agent: string;
  readonly index: number;
}

const MOST_LISTED = 10;

/** Sends the request of an answer again with a change, and shows the results beside the recorded answer. */
export function WhatIfs({ id, agent, index }: WhatIfsProps) {
  const [shown, setShown] = useState<string | null>(null);
  const [earlier, setEarlier] = useState<readonly WhatIf[]>([]);
  useEffect(() => {
    requests.whatIfs(id).then(
      ({ whatIfs }) => setEarlier(whatIfs.filter((one) => one.agent === agent)),
      () => undefined, // the form shows why the daemon refuses
    );
  }, [id, agent, shown]);
  if (!isOperator.value) return <p class="muted aside">Your token may not start a what-if.</p>;
  if (shown !== null) {
    return (
      <div class="account">
        <p>
          <button type="button" class="link" onClick={() => setShown(null)}>
            Try another change
          </button>
        </p>
        <WhatIfProgress key={shown} id={id} whatIf={shown} />
      </div>
    );
  }
  return (
    <div class="account">
      <WhatIfForm {...{ id, agent, index }} onStart={setShown} />
      {earlier.length > 0 && (
        <section>
          <h3>Earlier what-ifs of this agent</h3>
          <ul class="plain">
            {earlier.slice(0, MOST_LISTED).map((one) => (
              <li key={one.id}>
                <button type="button" class="link" onClick={() => setShown(one.id)}>
                  {changeOf(one)}
                </button>{' '}
                <span class="muted">
                  {one.state}, {when(one.startedAt, Date.now())}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}
