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

function renderReport({ messages, report }: View, palette: Palette): string {
  const facts = Object.entries(report).map(([name, value]) => `${name}: ${shown(value)}`);
  return palette.dim(
    [`── report ──`, plural(messages.length, 'message'), ...facts.map(printable)].join('\n'),
  );
}

function shown(value: unknown): string {
  if (Array.isArray(value) && value.length === 0) return 'none';
  return typeof value === 'string' || typeof value === 'number' ? String(value) : JSON.stringify(value);
}
