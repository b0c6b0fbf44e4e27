import { fileURLToPath } from 'node:url';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import { RULES } from './import-rules.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Checks `src/` of a folder against the rules. */
export async function cruiseSource(folder: string): Promise<ICruiseResult> {
  const before = process.cwd();
  try {
    const { output } = await cruise(['src'], {
      baseDir: folder,
      ruleSet: { forbidden: [...RULES] },
      validate: true,
      tsPreCompilationDeps: true, // type imports too
      doNotFollow: { path: 'node_modules' },
      enhancedResolveOptions: {
        exportsFields: ['exports'],
        conditionNames: ['import', 'node', 'types', 'default'],
      },
    });
    if (typeof output === 'string') throw new Error(`not a result: ${output.slice(0, 200)}`);
    return output;
  } finally {
    process.chdir(before); // `baseDir` changes it
  }
}

/** One line per violation: `rule: from → to`. */
export function violations(result: ICruiseResult): string[] {
  return result.summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`).sort();
}
