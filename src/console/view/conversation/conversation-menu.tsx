import { useState } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import { withoutAnsi } from '../../model/format.ts';
import { DOWNLOADS, download } from '../../state/commands.ts';
import { forgetRow, rows } from '../../state/conversations.ts';
import { isNew, label, markRead, markUnread, organized, pin, pins } from '../../state/list.ts';
import { openPalette } from '../../state/palette.ts';
import { go, linkTo, route } from '../../state/route.ts';
import { attempt, isOperator, notice } from '../../state/session.ts';
import { Button, Confirm, closing, Dialog, Menu, onSubmit, onText } from '../parts/controls.tsx';
import { Icon } from '../parts/parts.tsx';

/** The menu of a conversation: below the dots in its head, and as a dialog in the list. Both have the same actions. */
export function ConversationMenu({ id }: { readonly id: string }) {
  const [times, setTimes] = useState(0);
  return (
    <Menu
      class="quiet at-end"
      aria-label="More"
      title="More"
      face={<Icon name="more" />}
      onHide={() => setTimes(times + 1)} // it begins anew
      items={(then) => <Actions key={times} {...{ id, then }} />}
    />
  );
}

export function RowMenu() {
  const row = rows.value.find(({ id }) => id === organized.value);
  if (!row) return null;
  const onClose = () => (organized.value = null);
  return (
    <Dialog key={row.id} class="row-menu" label={`Conversation ${row.title ?? row.id}`} onClose={onClose}>
      {(close) => (
        <>
          <h2 dir="auto">{row.title ?? row.id}</h2>
          <div class="buttons">
            <Actions id={row.id} then={closing(close)} isRenaming />
            <Button onClick={close}>Close</Button>
          </div>
        </>
      )}
    </Dialog>
  );
}

interface ActionsProps {
  readonly id: string;
  /** Closes the menu before an action. */
  readonly then: (action?: () => unknown) => () => void;
  readonly isRenaming?: boolean;
}

function Actions({ id, then, isRenaming = false }: ActionsProps) {
  const [isAsked, ask] = useState(false);
  const [isNaming, rename] = useState(isRenaming);
  const row = rows.value.find((one) => one.id === id);
  const isPinned = pins.value.has(id);
  const title = row?.title ?? '';
  const remove = async () => {
    if (!(await attempt(() => requests.delete(id)))) return;
    if (route.value.page === 'conversation' && route.value.id === id) go(linkTo.list);
    forgetRow(id);
    notice.value = { text: `Deleted: ${withoutAnsi(title || id)}`, hint: '', undo: null };
  };
  const field = row && <Rename title={title} onRename={(to) => then(() => label(row, { title: to }))()} />;
  if (isNaming && !isRenaming) return field;
  if (isAsked)
    return (
      <>
        <p>
          Delete <bdi>“{withoutAnsi(title || id)}”</bdi> and its files for all users? This cannot be undone.
        </p>
        <Confirm action="Delete" onConfirm={then(remove)} onCancel={then()} />
      </>
    );
  return (
    <>
      {row && (
        <>
          {isOperator.value && (isNaming ? field : <Button onClick={() => rename(true)}>Rename…</Button>)}
          <Button onClick={then(() => pin(row, !isPinned))}>{isPinned ? 'Unpin' : 'Pin'}</Button>
          <Button onClick={then(() => (isNew(row) ? markRead([row]) : markUnread(row)))}>
            {isNew(row) ? 'Mark as read' : 'Mark as unread'}
          </Button>
          {isOperator.value && (
            <Button onClick={then(() => label(row, { archived: !row.archived }))}>
              {row.archived ? 'Move out of the archive' : 'Archive'}
            </Button>
          )}
        </>
      )}
      <Button onClick={then(() => openPalette(`in:${id} `))}>Search this conversation</Button>
      {DOWNLOADS.map(({ format, label: text }) => (
        <Button key={format} onClick={then(() => download(id, format))}>
          {text}
        </Button>
      ))}
      {isOperator.value && (
        <Button class="danger" onClick={() => ask(true)}>
          Delete this conversation…
        </Button>
      )}
    </>
  );
}

function Rename({ title, onRename }: { title: string; onRename: (title: string) => void }) {
  const [text, setText] = useState(title);
  const wanted = text.trim();
  return (
    <form onSubmit={onSubmit(() => wanted !== '' && onRename(wanted))}>
      <input ref={select} aria-label="Title" maxLength={200} value={text} onInput={onText(setText)} />
      <button type="submit" disabled={wanted === '' || wanted === title}>
        Rename
      </button>
    </form>
  );
}

/** With its beginning in sight. */
function select(field: HTMLInputElement | null): void {
  field?.select();
  field?.focus();
  field?.scrollTo(0, 0);
}
