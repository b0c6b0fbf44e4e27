import type { TeamChange } from './entry.ts';

const MOST_PARTS = 4;

/** In one line: `pm: persona, model`. */
export function teamChangeText({
  agent,
  change,
  parts,
}: Pick<TeamChange, 'agent' | 'change'> & { readonly parts: readonly string[] }): string {
  if (change !== 'changed') return `${agent} ${change}`;
  const more = parts.length > MOST_PARTS ? ` and ${parts.length - MOST_PARTS} more` : '';
  return `${agent}: ${parts.slice(0, MOST_PARTS).join(', ')}${more}`;
}
