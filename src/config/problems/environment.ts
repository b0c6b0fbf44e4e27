/**
 * The names of the variables that stand for keys of `parley.yaml`: `PARLEY_` and the key's path in capitals; a word that
 * would stand twice in a row stands once (`context.contextMaxChars` → `PARLEY_CONTEXT_MAX_CHARS`). The environment
 * itself is handed in.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/** An unset variable and an empty one are the same: nothing was said. */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === '' ? undefined : value;
}

export function variableOf(path: readonly string[]): string {
  const words = path.flatMap((part) => part.replaceAll(/([a-z])([A-Z])/g, '$1_$2').split(/[_-]/));
  const upper = words.map((word) => word.toUpperCase());
  return ['PARLEY', ...upper.filter((word, place) => word !== upper[place - 1])].join('_');
}
