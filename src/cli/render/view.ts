import type { View, ViewMessage } from '../../client/index.ts';
import type { Palette } from './palette.ts';
import { plural, printable } from './text.ts';

/** What an agent's model is sent, for people: each message under its role, then what the builder reports. */
export function renderView(view: View, palette: Palette): string {
  const messages = view.messages.map((message, place) => renderMessage(message, place, palette));
  return [...messages, renderReport(view, palette)].join('\n\n');
}

function renderMessage(message: ViewMessage, place: number, palette: Palette): string {
  const id = message.tool_call_id === undefined ? '' : ` ${message.tool_call_id}`;
  const calls = (message.tool_calls ?? []).map((call) =>
    palette.dim(printable(`⚙ ${call.id} ${call.function.name} ${call.function.arguments}`)),
  );
  const body = message.content === null || message.content === '' ? [] : [printable(message.content)];
  return [palette.bold(`── ${place} ${message.role}${id} ──`), ...body, ...calls].join('\n');
}

/** What a person can read; the rest of the report is there with `--json`. */
function renderReport({ messages, report }: View, palette: Palette): string {
  const facts = Object.entries(report).flatMap(([name, value]) => {
    const text = shown(value);
    return text === null ? [] : [printable(`${name}: ${text}`)];
  });
  return palette.dim([`── report ──`, plural(messages.length, 'message'), ...facts].join('\n'));
}

function shown(value: unknown): string | null {
  if (Array.isArray(value)) {
    if (value.length === 0) return 'none';
    return value.every((item) => typeof item !== 'object') ? value.join(', ') : null;
  }
  return value === null || typeof value === 'object' ? null : String(value);
}
