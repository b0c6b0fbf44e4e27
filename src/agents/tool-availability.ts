import type { Subject } from './tool-port.ts';

/**
 * Whether one agent may call a tool, before the arguments of a call are known. The prompt and the enforcement use the
 * same value, so an agent is never offered a tool that the policy then refuses.
 */

/** A call runs, waits for a person's approval, or is refused. */
export type Ruling = 'runs' | 'asks' | 'forbidden';

export interface ToolAvailability {
  /** The first rule whose patterns all match decides. */
  readonly rules: readonly {
    readonly match: Readonly<Record<string, string>>;
    readonly ruling: Ruling;
  }[];
  readonly otherwise: Ruling;
  readonly subject?: Subject;
}

export const ALWAYS_RUNS: ToolAvailability = { rules: [], otherwise: 'runs' };

/** No call of this tool can run. */
export function isForbidden({ rules, otherwise }: ToolAvailability): boolean {
  return otherwise === 'forbidden' && rules.every(({ ruling }) => ruling === 'forbidden');
}

const WORDS: Readonly<Record<Ruling, string>> = {
  runs: 'at once',
  asks: "after a person's approval",
  forbidden: 'never: forbidden to you',
};

/** The tools of an agent for its prompt: one line per ruling, in a stable order. */
export function describeTools(tools: ReadonlyMap<string, ToolAvailability>): string {
  const names = [...tools.keys()].sort();
  const plain = (Object.keys(WORDS) as Ruling[]).flatMap((ruling) => {
    const own = names.filter((name) => onlyRuling(tools.get(name)) === ruling);
    return own.length > 0 ? [`- ${WORDS[ruling]}: ${own.map(code).join(', ')}`] : [];
  });
  const byArguments = names.flatMap((name) => {
    const tool = tools.get(name);
    return tool && onlyRuling(tool) === null ? [`- by its arguments: ${code(name)} ${conditions(tool)}`] : [];
  });
  const notes = [
    { what: 'on a protected path (`.git`, `.npmrc`, the configuration and others)', writes: true },
    { what: 'on a path that may hold secrets (`.npmrc`, `*.pem` and others)', writes: false },
  ].flatMap(({ what, writes }) => {
    const guarded = names
      .filter((name) => runsUnapproved(tools.get(name), writes))
      .map(code)
      .join(', ');
    return guarded === ''
      ? []
      : [`- ${what} only after a person's approval, unless a pattern names it: ${guarded}`];
  });
  return ['Your tools now, and when a call of them is run:', ...plain, ...byArguments, ...notes].join('\n');
}

function runsUnapproved(tool: ToolAvailability | undefined, writes: boolean): boolean {
  if (tool?.subject?.kind !== 'path' || tool.subject.writes !== writes) return false;
  return [tool.otherwise, ...tool.rules.map(({ ruling }) => ruling)].includes('runs');
}

/** The ruling for every call; null: it depends on the arguments. */
function onlyRuling(tool: ToolAvailability | undefined): Ruling | null {
  if (!tool) return null;
  const { rules, otherwise } = tool;
  return rules.every(({ ruling }) => ruling === otherwise) ? otherwise : null;
}

function conditions({ rules, otherwise }: ToolAvailability): string {
  const cases = rules.map(({ match, ruling }) => {
    const patterns = Object.entries(match).map(([key, pattern]) => `${key} matches ${code(pattern)}`);
    return `where ${patterns.join(' and ')}, ${WORDS[ruling]}`;
  });
  return [...cases, `else ${WORDS[otherwise]}`].join('; ');
}

function code(text: string): string {
  return `\`${text}\``;
}
