import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { rows } from '../../state/conversations.ts';
import { isNew, markUnread, pin, pins } from '../../state/marks.ts';

/** What can be done with a conversation of the list; null: closed. */
const chosen = signal<string | null>(null);

export function openRowMenu(id: string): void {
  chosen.value = id;
}

export function RowMenu() {
  const row = rows.value.find(({ id }) => id === chosen.value);
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, [chosen.value]);
  if (!row) return null;
  const close = () => {
    chosen.value = null;
  };
  const isPinned = pins.value.has(row.id);
  const then = (action: () => void) => () => {
    action();
    dialog.current?.close();
  };
  return (
    <dialog ref={dialog} class="row-menu" aria-label="Conversation" onClose={close}>
      <h2>
        <bdi>{row.title ?? row.id}</bdi>
      </h2>
      <div class="buttons">
        <button type="button" onClick={then(() => pin(row.id, !isPinned))}>
          {isPinned ? 'Unpin' : 'Pin'}
        </button>
        {!isNew(row) && (
          <button type="button" onClick={then(() => markUnread(row))}>
            Mark as unread
          </button>
        )}
      </div>
      <form method="dialog">
        <button type="submit" class="quiet">
          Close
        </button>
      </form>
    </dialog>
  );
}
