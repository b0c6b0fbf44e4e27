import type { Toolbox } from '../../src/agents/index.ts';

export type ToolDefinition =
  ReturnType<Toolbox['definitions']> extends ReadonlyMap<string, infer D> ? D : never;

/** A tool without parameters. */
export function toolNamed(name: string, more: Partial<ToolDefinition> = {}): ToolDefinition {
  return { name, risk: 'risky', description: name, parameters: {}, ...more };
}

/** A toolbox without tools, with these parts of its own. */
export function toolboxOf(parts: Partial<Toolbox> = {}): Toolbox {
  return {
    definitions: () => new Map(),
    check: () => null,
    run: async () => ({ kind: 'aborted' }),
    close: async () => undefined,
    ...parts,
  };
}
