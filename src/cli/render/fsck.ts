import type { FsckReport } from '../dependencies.ts';
import type { Palette } from './palette.ts';
import { indent } from './text.ts';

/** What was found, for people; `planned`: with what a repair would do about it. */
export function renderFsck(reports: readonly FsckReport[], palette: Palette, planned: boolean): string {
  const lines = reports.flatMap(({ conversation, findings }) =>
    findings.flatMap(({ kind, text, repair, repaired }) => {
      const mark = repaired ? palette.green('mended') : palette.red('found ');
      const [first = '', ...rest] = text.split('\n');
      const found = [`${mark}  ${palette.bold(conversation)} ${kind}: ${first}`, ...rest];
      if (repaired || !planned) return found;
      return [
        ...found,
        indent(repair === null ? 'a repair can do nothing about it' : `a repair ${repair}`, '        '),
      ];
    }),
  );
  return [...lines, summary(reports)].join('\n');
}

function summary(reports: readonly FsckReport[]): string {
  const all = reports.flatMap(({ findings }) => [...findings]);
  const left = all.filter(({ repaired }) => !repaired);
  const of = `${reports.length} conversation${reports.length === 1 ? '' : 's'}`;
  if (left.length === 0) return all.length === 0 ? `${of}: sound` : `${of}: sound now, ${all.length} mended`;
  const mendable = left.filter(({ repair }) => repair !== null).length;
  const hint = mendable === 0 ? 'none of it can be mended here' : `${mendable} can be mended with --repair`;
  return `${of}: ${left.length} found; ${hint} (docs/troubleshooting.md)`;
}
