import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import { forgetRow } from '../../state/conversations.ts';
import { openPalette } from '../../state/palette.ts';
import { go, linkTo } from '../../state/route.ts';
import { attempt, isOperator } from '../../state/session.ts';
import { closeOnLeaving } from '../parts/menu.ts';
import { Icon } from '../parts/parts.tsx';

const DOWNLOADS = [
  { format: 'markdown', label: 'Download as Markdown' },
  { format: 'openai', label: 'Download as JSON (OpenAI messages)' },
] as const;

/** Searches or downloads a conversation, or deletes it after a confirmation, because that cannot be undone. */
export function ConversationMenu({ id }: { readonly id: string }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  const isAsked = useSignal(false);
  useEffect(() => closeOnLeaving(menu.current), []);
  useEffect(() => keep.current?.focus(), [isAsked.value]); // the focused button was removed
  const leave = () => menu.current?.removeAttribute('open');
  const download = (format: string) => {
    leave();
    void attempt(async () => saveAs(await requests.exported(id, format)));
  };
  const remove = async () => {
    leave();
    if (!(await attempt(() => requests.delete(id)))) return;
    go(linkTo.list);
    forgetRow(id);
  };
  return (
    <details
      class="menu at-end"
      ref={menu}
      onToggle={({ currentTarget }) => {
        if (!currentTarget.open) isAsked.value = false;
      }}
    >
      <summary class="button quiet" aria-label="More">
        <Icon name="more" />
      </summary>
      <div class="menu-list">
        {isAsked.value ? (
          <>
            <p>Delete this conversation and its files for all users? This cannot be undone.</p>
            <button type="button" class="danger" onClick={() => void remove()}>
              Delete
            </button>
            <button type="button" ref={keep} onClick={leave}>
              Cancel
            </button>
          </>
        ) : (
          <>
            <button
              type="button"
              onClick={() => {
                leave();
                openPalette(id);
              }}
            >
              Search this conversation
            </button>
            {DOWNLOADS.map(({ format, label }) => (
              <button type="button" key={format} onClick={() => download(format)}>
                {label}
              </button>
            ))}
            {isOperator.value && (
              <button
                type="button"
                class="danger"
                onClick={() => {
                  isAsked.value = true;
                }}
              >
                Delete this conversation…
              </button>
            )}
          </>
        )}
      </div>
    </details>
  );
}

/** A link would carry no token. */
function saveAs({ name, content }: { readonly name: string; readonly content: Blob }): void {
  const link = document.createElement('a');
  link.download = name;
  link.href = URL.createObjectURL(content);
  link.click();
  URL.revokeObjectURL(link.href);
}
