import { count, duration, money } from '../../model/format.ts';
import type { Lanes, Spending } from '../../model/timeline/lanes.ts';
import { Name } from '../parts/parts.tsx';

export function SpendingTable({ lanes }: { readonly lanes: Lanes }) {
  const rows = [...lanes.spending];
  const sum = (key: keyof Spending) => rows.reduce((total, [, spent]) => total + spent[key], 0);
  return (
    <table class="spending">
      <caption>Usage by agent</caption>
      <thead>
        <tr>
          <th scope="col">Agent</th>
          <th scope="col">Calls</th>
          <th scope="col">Tokens in</th>
          <th scope="col">out</th>
          <th scope="col">Cost</th>
          <th scope="col">Model</th>
          <th scope="col">Tools</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([slug, spent]) => (
          <tr key={slug}>
            <th scope="row">
              <Name id={slug} />
            </th>
            <td>{count(spent.calls)}</td>
            <td>{count(spent.inputTokens)}</td>
            <td>{count(spent.outputTokens)}</td>
            <td>{money(spent.usd, spent.unpricedCalls)}</td>
            <td>{duration(spent.modelMs)}</td>
            <td>{duration(spent.toolMs)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">All</th>
          <td>{count(sum('calls'))}</td>
          <td>{count(sum('inputTokens'))}</td>
          <td>{count(sum('outputTokens'))}</td>
          <td>{money(sum('usd'), sum('unpricedCalls'))}</td>
          <td>{duration(sum('modelMs'))}</td>
          <td>{duration(sum('toolMs'))}</td>
        </tr>
      </tfoot>
    </table>
  );
}
