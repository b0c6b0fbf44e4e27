import { useEffect, useState } from 'preact/hooks';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { requests } from '../../api/requests.ts';
import type { WhatIf, WhatIfResult, WhatIfRun, WhatIfTurn } from '../../model/answers.ts';
import { argumentsBlock, count, duration, money } from '../../model/format.ts';
import { attempt } from '../../state/session.ts';
import { EntryLinks } from './entry-links.tsx';

export function changeOf({ change: { model, persona } }: WhatIf): string {
  return [...(model === null ? [] : [`model ${model}`]), ...(persona ? ['another persona'] : [])].join(
    ' and ',
  );
}

const POLL_MS = 1_000;
const isOver = ({ state }: WhatIf) => state !== 'queued' && state !== 'running';

/** The progress, polled until the end, and the results. */
export function WhatIfProgress({ id, whatIf }: { readonly id: string; readonly whatIf: string }) {
  const [result, setResult] = useState<WhatIfResult | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isLeft = false;
    const poll = async () => {
      const found = await requests.whatIfResult(id, whatIf);
      if (isLeft) return;
      setResult(found);
      if (!isOver(found)) timer = setTimeout(again, POLL_MS);
    };
    const again = () => void poll().catch((error: Error) => setFault(error.message));
    again();
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [id, whatIf]);
  return (
    <>
      {fault && <p class="fault">{fault}</p>}
      {!fault && !result && <p class="muted">…</p>}
      {result && (
        <>
          <Progress id={id} result={result} />
          {result.results.map((turn) => (
            <Turn key={turn.at} turn={turn} change={changeOf(result)} />
          ))}
        </>
      )}
    </>
  );
}

function Progress({ id, result }: { readonly id: string; readonly result: WhatIfResult }) {
  const { state, reason, done, total } = result;
  return (
    <section>
      <h3>What if: {changeOf(result)}</h3>
      <p role="status">
        {state}
        {reason !== undefined && ` (${reason})`}, {count(done)} of {count(total)} runs
      </p>
      {!isOver(result) && (
        <p class="running">
          <progress value={done} max={total} aria-label="Runs that ended" />
          <button type="button" onClick={() => void attempt(() => requests.whatIfStop(id, result.id))}>
            Stop
          </button>
        </p>
      )}
    </section>
  );
}

function Turn({
  turn: { at, recorded, control, changed, failure, truncated },
  change,
}: {
  readonly turn: WhatIfTurn;
  readonly change: string;
}) {
  return (
    <section>
      <h3>
        The turn of entry <EntryLinks entries={[at]} />
      </h3>
      {failure && <p class="fault">{failure.message}</p>}
      {truncated && <p class="muted">The texts are cut, because they are too large for one answer.</p>}
      <div class="sides">
        <div class="side">
          <h4>Recorded</h4>
          <Outcome outcome={recorded} />
        </div>
        <Side title="Unchanged" runs={control} />
        <Side title={change} runs={changed} />
      </div>
    </section>
  );
}

function Side({ title, runs }: { readonly title: string; readonly runs: readonly WhatIfRun[] }) {
  return (
    <div class="side">
      <h4>{title}</h4>
      {runs.length === 0 && <p class="muted">no run yet</p>}
      {runs.map((run, place) => (
        <Outcome key={place} outcome={run} run={run} />
      ))}
    </div>
  );
}

const VERDICTS: Readonly<Record<WhatIfRun['verdict'], string>> = {
  same: 'same as recorded',
  different: 'different answer',
  diverged: 'another call, which has no recorded result',
  failed: 'failed',
  interrupted: 'interrupted',
};

function Outcome({
  outcome,
  run,
}: {
  readonly outcome: WhatIfTurn['recorded'] | WhatIfRun;
  readonly run?: WhatIfRun;
}) {
  const { content, toolCalls, used } = outcome;
  return (
    <div class="outcome">
      {run && <p class={`verdict ${run.verdict}`}>{VERDICTS[run.verdict]}</p>}
      {run?.message && <p class="fault">{run.message}</p>}
      {content && <p class="text">{escapeHidden(content)}</p>}
      {toolCalls.map((call, place) => (
        <pre key={place}>
          ⚙ {escapeHidden(call.name)} {argumentsBlock(call.arguments)}
        </pre>
      ))}
      <p class="meta">
        {count(used.inputTokens)} in, {count(used.outputTokens)} out · {costOf(used)}
        {run && ` · ${duration(run.duration)}`}
      </p>
    </div>
  );
}

function costOf({ usd, unpricedCalls }: WhatIfRun['used']): string {
  const cost = money(usd, unpricedCalls);
  return cost === 'unknown' ? 'cost unknown' : cost === '-' ? 'no cost' : cost;
}
