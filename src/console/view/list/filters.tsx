import { SHOWN, type Shown } from '../../model/list/list.ts';
import { filter, found, isFiltered, narrow } from '../../state/list.ts';
import { isNew, markRead } from '../../state/marks.ts';
import { agents, phases } from '../../state/session.ts';

export function Filters() {
  const { shown, agent, phase } = filter.value;
  return (
    <fieldset class="filters" aria-label="Filters">
      <Choice
        label="Show"
        value={shown}
        options={Object.entries(SHOWN)}
        onChange={(value) => narrow({ shown: value as Shown })}
      />
      <Choice
        label="Agent"
        value={agent}
        options={[['', 'Agent'], ...agents.value.map(({ slug, name }) => [slug, name] as const)]}
        onChange={(value) => narrow({ agent: value })}
      />
      <Choice
        label="Phase"
        value={phase}
        options={[['', 'Phase'], ...phases.value.map((one) => [one.phase, one.phase] as const)]}
        onChange={(value) => narrow({ phase: value })}
      />
      {(isFiltered.value || unread().length > 0) && (
        <p class="actions">
          {isFiltered.value && (
            <button type="button" class="link" onClick={() => narrow({ shown: 'all', agent: '', phase: '' })}>
              Show all
            </button>
          )}
          {unread().length > 0 && (
            <button type="button" class="link at-end" onClick={() => markRead(unread())}>
              Mark all as read
            </button>
          )}
        </p>
      )}
    </fieldset>
  );
}

/** Of those that the filter shows. */
const unread = () => found.value.filter(isNew);

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  readonly onChange: (value: string) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <select aria-label={label} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
      {options.map(([name, text]) => (
        <option key={name} value={name}>
          {text}
        </option>
      ))}
    </select>
  );
}
