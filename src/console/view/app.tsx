import { useSignalEffect } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { announcement, close, open } from '../state/conversation.ts';
import { keepListed } from '../state/conversations.ts';
import { listenToKeys } from '../state/keys.ts';
import { route } from '../state/route.ts';
import { access, notice } from '../state/session.ts';
import { ConversationPage } from './conversation-page.tsx';
import { Help } from './help.tsx';
import { NewPage } from './new-page.tsx';
import { Icon } from './parts.tsx';
import { Sidebar } from './sidebar.tsx';
import { TokenGate } from './token-gate.tsx';

export function App() {
  if (access.value === 'asking') return <main class="gate" aria-busy="true" />;
  if (access.value !== 'granted') return <TokenGate />;
  return <Console />;
}

function Console() {
  useEffect(keepListed, []);
  useEffect(listenToKeys, []);
  useSignalEffect(() => {
    const at = route.value;
    if (at.page === 'conversation') open(at.id);
    else close();
  });
  const { page } = route.value;
  return (
    <div class={`console at-${page}`}>
      <Sidebar />
      {page === 'conversation' && <ConversationPage />}
      {page === 'new' && <NewPage />}
      {page === 'list' && (
        <main class="empty">
          <p>Choose a conversation, or begin one.</p>
          <p class="muted">
            Press <kbd>?</kbd> for the keys.
          </p>
        </main>
      )}
      <NoticeBar />
      <Help />
      <div class="unseen" aria-live="polite">
        {announcement}
      </div>
    </div>
  );
}

const NOTICE_MS = 10_000;

/** What was refused is hidden by the next success, in another place, and after a while. */
function NoticeBar() {
  const at = route.value;
  const here = at.page === 'conversation' ? at.id : at.page;
  const hide = () => {
    notice.value = null;
  };
  useEffect(() => hide, [here]);
  useEffect(() => {
    const late = setTimeout(hide, NOTICE_MS);
    return () => clearTimeout(late);
  }, [notice.value]);
  if (!notice.value) return null;
  const { text, hint } = notice.value;
  return (
    <div class="notice" role="alert">
      <p>
        {text}
        {hint && <span class="muted">{hint}</span>}
      </p>
      <button type="button" class="quiet" aria-label="Dismiss" onClick={hide}>
        <Icon name="close" />
      </button>
    </div>
  );
}
