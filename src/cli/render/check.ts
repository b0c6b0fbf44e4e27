import type { Check } from '../doctor/check.ts';
import type { Palette } from './palette.ts';
import { indent } from './text.ts';

export function renderCheck({ name, status, message, fix }: Check, palette: Palette): string {
  const mark = { ok: palette.green('ok  '), warn: palette.yellow('warn'), fail: palette.red('fail') }[status];
  const [first = '', ...rest] = message.split('\n');
  const lines = [`${mark}  ${palette.bold(name)}: ${first}`, ...rest.map((line) => `      ${line}`)];
  if (fix !== undefined) lines.push(indent(`→ ${fix}`, '      '));
  return lines.join('\n');
}
