/** The id of a call in requests (V7, L10): providers repeat their own ids. */

interface Place {
  readonly index: number;
  readonly position: number;
}

export function wireCallId({ index, position }: Place): string {
  return `c${index}_${position}`;
}

/** The inverse; null: it is no id of a call. */
export function placeOfCallId(id: string): Place | null {
  const [, index, position] = /^c(\d{1,15})_(\d{1,15})$/.exec(id) ?? [];
  return index === undefined ? null : { index: Number(index), position: Number(position) };
}
