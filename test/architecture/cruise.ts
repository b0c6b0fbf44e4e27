import { fileURLToPath } from 'node:url';
import { cruise, type ICruiseResult, type IDependency } from 'dependency-cruiser';
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

/** Imports at run time, by importing module: those of types are erased. */
function importsAtRunTime({ modules }: ICruiseResult): ReadonlyMap<string, readonly IDependency[]> {
  return new Map(
    modules.map(({ source, dependencies }) => [
      source,
      dependencies.filter(({ dependencyTypes }) => !dependencyTypes.includes('type-only')),
    ]),
  );
}

/**
 * The imports that no browser can follow, `from → to`, of all modules that the console reaches (I9): those of Node, and
 * `kernel/index.ts`, which imports these.
 */
export function unfitForBrowsers(result: ICruiseResult): string[] {
  const imports = importsAtRunTime(result);
  const reached = new Set([...imports.keys()].filter((source) => source.startsWith('src/console/')));
  const faults: string[] = [];
  for (const source of reached) {
    for (const { resolved, dependencyTypes } of imports.get(source) ?? []) {
      if (dependencyTypes.includes('core') || resolved === 'src/kernel/index.ts')
        faults.push(`${source} → ${resolved}`);
      else if (resolved.startsWith('src/')) reached.add(resolved);
    }
  }
  return faults.sort();
}
