import type { Subject } from './tool-port.ts';

/**
 * How a tool stands for one agent, before anybody knows the arguments of a call. What is shown to the model and what is
 * enforced come from the same value, so that no agent is offered what it will be refused.
 */

/** What becomes of a call: it is run, a person is asked first, or it is refused. */
export type Ruling = 'runs' | 'asks' | 'forbidden';

export interface ToolAvailability {
  /** Tried in order; the first whose every pattern fits its argument decides. */
  readonly rules: readonly {
    readonly match: Readonly<Record<string, string>>;
    readonly ruling: Ruling;
  }[];
  readonly otherwise: Ruling;
  readonly subject?: Subject;
}

export const ALWAYS_RUNS: ToolAvailability = { rules: [], otherwise: 'runs' };

/** No call of it can ever be run. */
export function isForbidden({ rules, otherwise }: ToolAvailability): boolean {
  return otherwise === 'forbidden' && rules.every(({ ruling }) => ruling === 'forbidden');
}

const WORDS: Readonly<Record<Ruling, string>> = {
  runs: 'at once',
  asks: "after a person's approval",
  forbidden: 'never: forbidden to you',
};

/** The tools of an agent as its prompt names them, a line for each ruling; in a stable order. */
export function describeTools(tools: ReadonlyMap<string, ToolAvailability>): string {
  const names = [...tools.keys()].sort();
  const plain = (Object.keys(WORDS) as Ruling[]).flatMap((ruling) => {
    const own = names.filter((name) => simple(tools.get(name)) === ruling);
    return own.length > 0 ? [`- ${WORDS[ruling]}: ${own.map(code).join(', ')}`] : [];
  });
  const byArguments = names.flatMap((name) => {
    const standing = tools.get(name);
    return standing && simple(standing) === null
      ? [`- by its arguments: ${code(name)} ${conditions(standing)}`]
      : [];
  });
  const guarded = names.filter((name) => mayWriteAtOnce(tools.get(name))).map(code);
  const note = `- on a protected path (\`.git\`, \`.env\`, the configuration and others) only after a person's approval, unless a pattern names it: ${guarded.join(', ')}`;
  const notes = guarded.length > 0 ? [note] : [];
  return ['Your tools now, and when a call of them is run:', ...plain, ...byArguments, ...notes].join('\n');
}

function mayWriteAtOnce(standing: ToolAvailability | undefined): boolean {
  if (standing?.subject?.kind !== 'path' || !standing.subject.writes) return false;
  return [standing.otherwise, ...standing.rules.map(({ ruling }) => ruling)].includes('runs');
}

/** The one ruling for every call; null: it depends. */
function simple(standing: ToolAvailability | undefined): Ruling | null {
  if (!standing) return null;
  const { rules, otherwise } = standing;
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
