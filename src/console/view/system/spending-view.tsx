import { useMemo, useState } from 'preact/hooks';
import { count, money } from '../../model/format.ts';
import { type Chart, chartOf, type Day, sumsOf, type Unit } from '../../model/system/spending.ts';
import { participants } from '../../state/conversation.ts';
import { DAYS, type System } from '../../state/system.ts';
import { Name, Select } from '../parts/parts.tsx';

const UNITS = [
  ['usd', 'Cost'],
  ['tokens', 'Tokens'],
] as const;

/** What model calls used by day and agent: a chart, and a table. */
export function SpendingView({ status: { spent = [], at } }: System) {
  const sums = useMemo(() => sumsOf(spent), [spent]);
  const [chosen, choose] = useState<Unit | null>(null);
  const unit = chosen ?? (sums.some(({ usd }) => usd > 0) ? 'usd' : 'tokens');
  const chart = useMemo(() => chartOf(spent, unit, at, DAYS), [spent, unit, at.slice(0, 10)]);
  return (
    <section aria-labelledby="used">
      <header class="part-head">
        <h3 id="used">Used in {DAYS} days</h3>
        <Select
          label="Unit of the chart"
          value={unit}
          options={UNITS}
          onChoose={(value) => choose(value as Unit)}
        />
      </header>
      {sums.length === 0 ? (
        <p class="muted">No model was called.</p>
      ) : (
        <>
          <p class="most">up to {amount(chart.most, unit)} a day</p>
          <Bars chart={chart} unit={unit} />
          <table class="spending">
            <thead>
              <tr>
                <th scope="col">Agent</th>
                <th scope="col">Calls</th>
                <th scope="col">Tokens</th>
                <th scope="col">Cost</th>
              </tr>
            </thead>
            <tbody>
              {sums.map(({ agent, calls, tokens, usd, unpricedCalls }) => (
                <tr key={agent}>
                  <th scope="row">
                    <span class={`swatch c${participants.value.get(agent)?.colour ?? 0}`} />
                    <Name id={agent} />
                  </th>
                  <td>{count(calls)}</td>
                  <td>{count(tokens)}</td>
                  <td>{money(usd, unpricedCalls)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}

function Bars({ chart: { days, most }, unit }: { readonly chart: Chart; readonly unit: Unit }) {
  return (
    <ol class="day-bars" aria-label={`${unit === 'usd' ? 'Cost' : 'Tokens'} by day`}>
      {days.map((day) => (
        <li key={day.day} title={describe(day, unit)}>
          <span class="unseen">{describe(day, unit)}</span>
          <span class="bar" aria-hidden="true">
            {day.parts.map(({ agent, value }) => (
              <span
                key={agent}
                class={`part c${participants.value.get(agent)?.colour ?? 0}`}
                style={{ height: `${(value / most) * 100}%` }}
              />
            ))}
          </span>
          <span class="day" aria-hidden="true">
            {Number(day.day.slice(8))}
          </span>
        </li>
      ))}
    </ol>
  );
}

function describe({ day, total }: Day, unit: Unit): string {
  const date = new Date(day).toLocaleDateString([], { day: 'numeric', month: 'short', timeZone: 'UTC' });
  return `${date}: ${amount(total, unit)}`;
}

function amount(value: number, unit: Unit): string {
  return unit === 'usd' ? money(value) : `${count(Math.round(value))} tokens`;
}
