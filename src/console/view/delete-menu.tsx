import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { requests } from '../api/requests.ts';
import { forgetRow } from '../state/conversations.ts';
import { go, linkTo } from '../state/route.ts';
import { attempt, isOperator } from '../state/session.ts';
import { closeOnLeaving } from './menu.ts';
import { Icon } from './parts.tsx';

/** Deletes a conversation after a confirmation, because it cannot be undone. */
export function DeleteMenu({ id }: { readonly id: string }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  const isAsked = useSignal(false);
  useEffect(() => closeOnLeaving(menu.current), []);
  useEffect(() => keep.current?.focus(), [isAsked.value]); // the focused button was removed
  if (!isOperator.value) return null;
  const leave = () => menu.current?.removeAttribute('open');
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
      onToggle={() => {
        isAsked.value = false;
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
          <button
            type="button"
            onClick={() => {
              isAsked.value = true;
            }}
          >
            Delete this conversation…
          </button>
        )}
      </div>
    </details>
  );
}
