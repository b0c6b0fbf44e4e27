import { useEffect } from 'preact/hooks';
import { heading } from '../../state/alerts.ts';
import { isAway } from '../../state/session.ts';
import { problems, type System, system } from '../../state/system.ts';
import { BackLink } from '../parts/parts.tsx';
import { Daemons, Models, Servers } from './daemons.tsx';
import { Letters } from './letters.tsx';
import { SpendingView } from './spending-view.tsx';
import { Team } from './team.tsx';

/** The agents, what they cost, and the state of the daemons and of all that these are connected to. */
export function SystemPage() {
  useEffect(() => {
    heading.value = 'Team and system';
    return () => {
      heading.value = '';
    };
  }, []);
  const now = system.value;
  return (
    <main class="page system" aria-busy={now === null && !isAway.value}>
      <header class="head">
        <BackLink />
        <h2 tabIndex={-1}>Team and system</h2>
      </header>
      {(now || isAway.value) && (
        <div class="system-body">
          <Health />
          {now && <Parts {...now} />}
        </div>
      )}
    </main>
  );
}

function Parts(now: System) {
  return (
    <div class="system-parts">
      <div>
        <Team {...now} />
        <SpendingView {...now} />
        <Letters {...now} />
      </div>
      <div>
        <Daemons {...now} />
        <Models {...now} />
        <Servers {...now} />
      </div>
    </div>
  );
}

function Health() {
  const found = problems.value;
  return (
    <section class={`health ${found.length > 0 ? 'wrong' : 'well'}`} aria-label="Health" role="status">
      {found.length === 0 && <p>Everything works.</p>}
      {found.length > 0 && (
        <ul>
          {found.map(({ text, detail }) => (
            <li key={text}>
              {text}
              {detail && <span class="muted">{detail}</span>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
