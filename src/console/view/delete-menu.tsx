import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { requests } from '../api/requests.ts';
import { refresh } from '../state/conversations.ts';
import { go, linkTo } from '../state/route.ts';
import { attempt, identity } from '../state/session.ts';
import { closeOnLeaving } from './menu.ts';
import { Icon } from './parts.tsx';

/** What is seldom done to a conversation: deleting it, which is asked twice, since nothing brings it back. */
export function DeleteMenu({ id }: { readonly id: string }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  const isAsked = useSignal(false);
  useEffect(() => closeOnLeaving(menu.current), []);
  useEffect(() => keep.current?.focus(), [isAsked.value]); // what had the focus is gone
  if (identity.value?.role !== 'operate') return null;
  const leave = () => menu.current?.removeAttribute('open');
  const remove = async () => {
    leave();
    if (!(await attempt(() => requests.delete(id)))) return;
    go(linkTo.list);
    await refresh();
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
            <p>Delete it for everybody, with all that was kept for it? Nothing brings it back.</p>
            <button type="button" class="danger" onClick={() => void remove()}>
              Delete for ever
            </button>
            <button type="button" ref={keep} onClick={leave}>
              Keep it
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
