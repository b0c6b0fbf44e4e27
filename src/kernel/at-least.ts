/** Compares the numbers of a version such as `2.10.27-beta.1` with the least one that will do. */
export function isAtLeast(version: string, least: readonly number[]): boolean {
  const parts = version.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0);
  for (const [place, number] of least.entries()) {
    const part = parts[place] ?? 0;
    if (part !== number) return part > number;
  }
  return true;
}
