import type { ExplainedRequest } from '../../../conversation/index.ts';
import { jumpTo } from '../../state/jump.ts';

/** The text of a message and its calls. */
export function messageText(message: ExplainedRequest['messages'][number]): string {
  const calls = (message.tool_calls ?? []).map(
    (call) => `⚙ ${call.function.name} ${call.function.arguments}`,
  );
  return [message.content ?? '', ...calls].filter((text) => text !== '').join('\n');
}

const MOST_LINKS = 12;

/** Buttons that scroll to the entries. */
export function EntryLinks({
  entries,
  isRange,
}: {
  readonly entries: readonly number[];
  readonly isRange?: boolean;
}) {
  if (entries.length === 0) return null;
  const shown = entries.slice(0, MOST_LINKS);
  return (
    <span class="entry-links">
      {shown.map((index, place) => (
        <span key={index}>
          {place > 0 && (isRange ? ' to ' : ' ')}
          <button type="button" class="link" onClick={() => jumpTo(index)} aria-label={`Show entry ${index}`}>
            {index}
          </button>
        </span>
      ))}
      {entries.length > shown.length && <span class="muted"> and {entries.length - shown.length} more</span>}
    </span>
  );
}
