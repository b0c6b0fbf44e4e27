import { isDecision } from '../../model/list/inbox.ts';
import {
  type Alert,
  chooseAlert,
  chosenAlerts,
  hasNotifications,
  isNotificationRefused,
} from '../../state/alerts.ts';
import { isListed } from '../../state/conversations.ts';
import { dismiss, inbox } from '../../state/inbox.ts';
import { BackLink } from '../parts/parts.tsx';
import { InboxEntry } from './inbox-entry.tsx';

/** Answered ones make room for the others. */
const MOST_SHOWN = 30;

export function InboxPage() {
  const items = inbox.value;
  const ended = items.filter((item) => !isDecision(item));
  const more = items.length - MOST_SHOWN;
  return (
    <main class="page inbox" aria-busy={!isListed.value}>
      <header class="head">
        <BackLink />
        <h2 tabIndex={-1}>Inbox</h2>
        <AlertChoice alert="notification" label="Notify me" />
        <AlertChoice alert="sound" label="Sound" />
      </header>
      <div class="inbox-body">
        {isNotificationRefused.value && (
          <p class="muted" role="status">
            The browser refuses notifications of this page. Allow them in its settings for this address.
          </p>
        )}
        {isListed.value && items.length === 0 && (
          <div class="empty">
            <p>Nothing needs you.</p>
            <p class="muted">Approvals, questions and failures of all conversations appear here.</p>
          </div>
        )}
        <ul aria-label="What needs you">
          {items.slice(0, MOST_SHOWN).map((item) => (
            <InboxEntry key={item.key} item={item} />
          ))}
        </ul>
        {more > 0 && <p class="muted">{more} more: they appear when these are answered.</p>}
        {ended.length > 1 && (
          <p>
            <button type="button" class="quiet" onClick={() => dismiss(ended)}>
              Dismiss all {ended.length} failures and limits
            </button>
          </p>
        )}
        {items.length > 0 && (
          <p class="muted inbox-keys">
            <kbd>↓</kbd> <kbd>↑</kbd> next, previous; then <kbd>a</kbd> approve · <kbd>d</kbd> deny ·{' '}
            <kbd>1</kbd>… an option · <kbd>r</kbd> answer or retry · <kbd>x</kbd> dismiss · <kbd>Enter</kbd>{' '}
            open
          </p>
        )}
      </div>
    </main>
  );
}

function AlertChoice({ alert, label }: { readonly alert: Alert; readonly label: string }) {
  if (alert === 'notification' && !hasNotifications) return null;
  return (
    <label class="alert-choice">
      <input
        type="checkbox"
        checked={chosenAlerts.value.has(alert)}
        onChange={({ currentTarget }) => {
          const isOn = currentTarget.checked;
          currentTarget.checked = chosenAlerts.value.has(alert); // until the browser has agreed
          void chooseAlert(alert, isOn);
        }}
      />
      {label}
    </label>
  );
}
