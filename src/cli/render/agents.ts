import type { AgentSummary } from '../../client/index.ts';
import type { Palette } from './palette.ts';
import { renderTable } from './table.ts';
import { printable } from './text.ts';

/** The roster as a table: who there is, when each answers, what each is for. */
export function renderAgents(agents: readonly AgentSummary[], palette: Palette): string {
  const rows = agents.map(({ slug, name, phases, modes, status, description, ...rest }) => [
    slug,
    name,
    list(phases),
    list(modes),
    statusText(status, rest.connected),
    description,
    modelText(rest),
  ]);
  return renderTable(
    ['SLUG', 'NAME', 'PHASES', 'MODES', 'STATUS', 'DESCRIPTION', 'MODEL'],
    rows,
    palette.dim,
  );
}

/** A turn may wait for a program that is not connected. */
function statusText(status: string, connected: boolean | undefined): string {
  return connected === false && status !== 'not connected' ? `${status}, not connected` : status;
}

const list = (names: readonly string[]) => (names.length === 0 ? '-' : names.join(','));

function modelText({
  model,
  parameters,
  headers,
}: Pick<AgentSummary, 'model' | 'parameters' | 'headers'>): string {
  if (model === undefined) return '-';
  const added = [parametersText(parameters), headersText(headers)].filter((text) => text !== null);
  return added.length === 0 ? model : `${model} (${added.join('; ')})`;
}

/** `temperature 0.2, stop ["END"]`; null: none. */
export function parametersText(parameters: Readonly<Record<string, unknown>> = {}): string | null {
  const texts = Object.entries(parameters).map(([name, value]) => {
    return `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`;
  });
  return texts.length === 0 ? null : printable(texts.join(', '));
}

export function headersText(headers: readonly string[] = []): string | null {
  return headers.length === 0 ? null : `${headers.join(', ')} (values hidden)`;
}
