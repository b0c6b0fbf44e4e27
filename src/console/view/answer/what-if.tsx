import { useEffect, useState } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import type { WhatIf } from '../../model/answers.ts';
import { when } from '../../model/format.ts';
import { isOperator, models, sender } from '../../state/session.ts';
import { Select } from '../parts/parts.tsx';
import { PanelForm } from './panel-form.tsx';
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

interface FormProps {
  readonly id: string;
  readonly agent: string;
  readonly index: number;
  readonly onStart: (whatIf: string) => void;
}

const MOST_RUNS = 20;
const STARTS = [
  ['turn', 'the first request of the turn'],
  ['answer', 'the request of this answer'],
] as const;

function WhatIfForm({ id, agent, index, onStart }: FormProps) {
  const recorded = useRecorded({ id, agent, index });
  const [model, setModel] = useState('');
  const [persona, setPersona] = useState<string | null>(null);
  const [runs, setRuns] = useState(1);
  const [start, setStart] = useState<WhatIf['start']>('turn');
  const isEdited = persona !== null && persona !== recorded.persona;
  const submit = async () => {
    const change = { ...(model !== '' && { model }), ...(isEdited && { persona }) };
    onStart((await requests.whatIf(id, { agent, at: index, start, runs, ...change, ...sender() })).id);
  };
  const isUnchanged = model === '' && !isEdited;
  return (
    <PanelForm class="panel-form" action="Start" isDisabled={isUnchanged} onSubmit={submit}>
      <p>
        What would another model or another persona have answered? The conversation does not change, and no
        tool runs.
      </p>
      <label>
        Model
        <Select
          value={model}
          options={[
            ['', recorded.model ? `unchanged (${recorded.model})` : 'unchanged'],
            ...models.value.filter((name) => name !== recorded.model).map((name) => [name, name] as const),
          ]}
          onChoose={setModel}
        />
      </label>
      <label>
        Persona{isEdited && ' (edited)'}
        <textarea
          rows={8}
          disabled={recorded.persona === null}
          value={persona ?? recorded.persona ?? ''}
          onInput={(event) => setPersona(event.currentTarget.value)}
        />
      </label>
      <div class="pair">
        <label>
          Begin at
          <Select value={start} options={STARTS} onChoose={(chosen) => setStart(chosen as WhatIf['start'])} />
        </label>
        <label>
          Runs of each side
          <input
            type="number"
            min={1}
            max={MOST_RUNS}
            required
            value={runs}
            onInput={(event) => setRuns(event.currentTarget.valueAsNumber || 1)}
          />
        </label>
      </div>
      <p class="muted">
        {runs === 1 ? '1 run' : `${runs} runs`} with the change and as many without it, for comparison. Each
        model call is paid.
      </p>
    </PanelForm>
  );
}

interface Recorded {
  readonly model: string;
  /** Null: not known yet. */
  readonly persona: string | null;
}

/** The model and the persona of the turn. */
function useRecorded({ id, agent, index }: Omit<FormProps, 'onStart'>): Recorded {
  const [recorded, setRecorded] = useState<Recorded>({ model: '', persona: null });
  useEffect(() => {
    requests.view(id, agent, index, ['persona']).then(
      ({ report }) => {
        const text = report.definition.texts?.persona;
        setRecorded({ model: report.model, persona: text === undefined ? '' : String(JSON.parse(text)) });
      },
      () => undefined, // starting shows why
    );
  }, [id, agent, index]);
  return recorded;
}
