import { EXPORT_FORMATS, type ExportFormat, exportEntries } from '../../conversation/index.ts';
import { escapeHidden, ParleyError } from '../../kernel/index.ts';
import type { Application, RouteContext } from '../context.ts';
import { readLog } from '../progress/log.ts';
import { EXPORTS } from './routes.ts';

/** A whole conversation as a file. */

export function addExportRoute(app: Application, routes: RouteContext): void {
  app.get('/api/conversations/:conversation/export', async (context) => {
    const format = formatOf(context.req.query('format') ?? 'markdown');
    const conversation = context.req.param('conversation');
    const entries = await readLog(routes.daemon(context), conversation, 0);
    const { type, extension } = EXPORTS[format];
    const text = exportEntries(entries, format);
    const title = entries.findLast((entry) => entry.type === 'title-set')?.title ?? null;
    return context.body(format === 'markdown' ? text : escapeHidden(text), 200, {
      'content-type': `${type}; charset=utf-8`,
      'content-disposition': disposition(titledName(title, conversation), conversation, extension),
    });
  });
}

function formatOf(given: string): ExportFormat {
  const format = EXPORT_FORMATS.find((one) => one === given);
  if (format) return format;
  throw new ParleyError('BAD_REQUEST', `${JSON.stringify(given)} is no format of an export`, {
    hint: `use ?format= with one of ${EXPORT_FORMATS.join(', ')}`,
  });
}

/** Code points of a title in the name of a file. */
const LONGEST_TITLE = 60;

/** The name of a file without its extension: the title in letters, digits and `-`, then the id. */
function titledName(title: string | null, id: string): string {
  const words = (title ?? '').normalize('NFC').match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  const short = [...words.join('-')].slice(0, LONGEST_TITLE).join('').replace(/-$/, '');
  return short === '' ? id : `${short}-${id}`;
}

/** RFC 6266: a name that is not ASCII has another one beside it, for programs that know only that. */
function disposition(name: string, id: string, extension: string): string {
  if (/^[ -~]+$/.test(name)) return `attachment; filename="${name}.${extension}"`;
  return `attachment; filename="${id}.${extension}"; filename*=UTF-8''${encodeURIComponent(`${name}.${extension}`)}`;
}
