import { signal } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import type { ConversationRow } from '../../model/answers.ts';
import { withoutAnsi } from '../../model/format.ts';
import { rows } from '../../state/conversations.ts';
import { isNew, markRead, markUnread, pin, pins } from '../../state/marks.ts';
import { attempt, isOperator, notice, sender } from '../../state/session.ts';

/** What can be done with a conversation of the list; null: closed. */
const chosen = signal<string | null>(null);

export function openRowMenu(id: string): void {
  chosen.value = id;
}

export function RowMenu() {
  const row = rows.value.find(({ id }) => id === chosen.value);
  return row ? <Menu key={row.id} row={row} /> : null;
}

function Menu({ row }: { readonly row: ConversationRow }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const isPinned = pins.value.has(row.id);
  const close = () => dialog.current?.close();
  const then =
    <T extends readonly unknown[]>(action: (...given: T) => void) =>
    (...given: T) => {
      action(...given);
      close();
    };
  return (
    <dialog
      ref={dialog}
      class="row-menu"
      aria-label={`Conversation ${row.title ?? row.id}`}
      onClose={() => {
        chosen.value = null;
      }}
    >
      <h2>
        <bdi>{row.title ?? row.id}</bdi>
      </h2>
      {isOperator.value && (
        <Rename title={row.title ?? ''} onRename={then((title) => void label(row, { title }))} />
      )}
      <div class="buttons">
        <button type="button" onClick={then(() => pin(row.id, !isPinned))}>
          {isPinned ? 'Unpin' : 'Pin'}
        </button>
        <button type="button" onClick={then(() => (isNew(row) ? markRead([row]) : markUnread(row)))}>
          {isNew(row) ? 'Mark as read' : 'Mark as unread'}
        </button>
        {isOperator.value && (
          <button
            type="button"
            onClick={() => {
              close();
              focusBeside(row.id);
              void archive(row, row.archived !== true);
            }}
          >
            {row.archived ? 'Move out of the archive' : 'Archive'}
          </button>
        )}
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </dialog>
  );
}

/** False: it was refused. */
function label({ id }: ConversationRow, change: { title?: string; archived?: boolean }): Promise<boolean> {
  return attempt(() => requests.label(id, { ...change, ...sender() }));
}

/** Archives it or moves it out of the archive, and offers to undo that. */
async function archive(row: ConversationRow, archived: boolean): Promise<void> {
  if (!(await label(row, { archived }))) return;
  const undo = () => void archive(row, !archived);
  const done = archived ? 'Archived' : 'Moved out of the archive';
  notice.value = { text: `${done}: ${withoutAnsi(row.title ?? row.id)}`, hint: '', undo };
}

/** The next row, or the one before the last: the row itself leaves the list. */
function focusBeside(id: string): void {
  const here = document.getElementById(`title-${id}`)?.closest('li');
  const beside = here?.nextElementSibling ?? here?.previousElementSibling;
  beside?.querySelector<HTMLElement>('.row')?.focus();
}

interface RenameProps {
  readonly title: string;
  readonly onRename: (title: string) => void;
}

function Rename({ title, onRename }: RenameProps) {
  const [text, setText] = useState(title);
  const wanted = text.trim();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (wanted !== '') onRename(wanted);
      }}
    >
      <input
        aria-label="Title"
        maxLength={200}
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <button type="submit" disabled={wanted === '' || wanted === title}>
        Rename
      </button>
    </form>
  );
}
