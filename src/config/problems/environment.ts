/**
 * Names of the variables for keys of `parley.yaml`: `PARLEY_` and the key's path in capitals, without repeated words
 * (`context.contextMaxChars` → `PARLEY_CONTEXT_MAX_CHARS`). Callers pass the environment.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/** An empty variable counts as unset. */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === '' ? undefined : value;
}

export function variableOf(path: readonly string[]): string {
  const words = path.flatMap((part) => part.replaceAll(/([a-z])([A-Z])/g, '$1_$2').split(/[_-]/));
  const upper = words.map((word) => word.toUpperCase());
  return ['PARLEY', ...upper.filter((word, place) => word !== upper[place - 1])].join('_');
}
