import pc from 'picocolors';

/** The colours of one output; all of them do nothing where colour is off. */
export type Palette = ReturnType<typeof pc.createColors>;

export const createPalette = (enabled: boolean): Palette => pc.createColors(enabled);

/** On a terminal only, and not where NO_COLOR asks for none or the terminal can do none. */
export function wantsColour(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
}

const VOICES = ['cyan', 'magenta', 'green', 'yellow', 'blue'] as const;

/** The same agent has the same colour, whatever else is on the screen. */
export function voiceOf(slug: string, palette: Palette): (text: string) => string {
  let sum = 0;
  for (const character of slug) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 9_973;
  const colour = palette[VOICES[sum % VOICES.length] ?? 'cyan'];
  return (text) => palette.bold(colour(text));
}
