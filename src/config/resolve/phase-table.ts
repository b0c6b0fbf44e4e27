import { BUILT_IN_PHASES, type PhaseSpec, type PhaseTable } from '../../conversation/index.ts';
import { nearest } from '../problems/nearest.ts';
import { didYouMean, type KeyPath, keyText, type Problems, show } from '../problems/problems.ts';
import type { PhaseFile } from '../schema/schema.ts';

/** The built-in phases with what the configuration adds or replaces. What a row leaves out is taken from the built-in one. */
export function mergePhases(
  phases: Readonly<Record<string, PhaseFile>>,
  locate: (path: KeyPath) => string,
  problems: Problems,
): PhaseTable {
  const builtIn: PhaseTable = BUILT_IN_PHASES;
  const table: Record<string, PhaseSpec> = { ...builtIn };
  for (const [name, phase] of Object.entries(phases)) {
    const before = Object.hasOwn(builtIn, name) ? builtIn[name] : undefined;
    table[name] = {
      description: phase.description ?? before?.description ?? '',
      next: phase.next ?? before?.next ?? [],
    };
  }
  const names = Object.keys(table);
  for (const [name, phase] of Object.entries(phases)) {
    for (const [place, next] of (phase.next ?? []).entries()) {
      if (names.includes(next)) continue;
      const path = ['phases', name, 'next', place];
      const expected = `a phase: one of ${names.join(', ')}`;
      const where = { source: locate(path), key: keyText(path) };
      problems.add({ ...where, seen: show(next), expected, ...didYouMean(nearest(next, names)) });
    }
  }
  return table;
}
