import type { AgentSummary } from '../../client/index.ts';
import type { Palette } from './palette.ts';
import { renderTable } from './table.ts';

/** The roster as a table: who there is, when each answers, what each is for. */
export function renderAgents(agents: readonly AgentSummary[], palette: Palette): string {
  const rows = agents.map(({ slug, name, phases, modes, status, description }) => [
    slug,
    name,
    list(phases),
    list(modes),
    status,
    description,
  ]);
  return renderTable(['SLUG', 'NAME', 'PHASES', 'MODES', 'STATUS', 'DESCRIPTION'], rows, palette.dim);
}

const list = (names: readonly string[]) => (names.length === 0 ? '-' : names.join(','));
