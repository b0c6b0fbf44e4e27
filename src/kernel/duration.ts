const UNITS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

export const DURATION_PATTERN = /^([1-9]\d{0,5})([smhdw])$/;
export const DURATION_FORM = 'a whole number with s, m, h, d or w, such as 90d';

/** Milliseconds of `90d`; null: it is no duration. */
export function durationOf(text: string): number | null {
  const [, count, unit] = DURATION_PATTERN.exec(text) ?? [];
  return count && unit ? Number(count) * (UNITS[unit] ?? 0) : null;
}
