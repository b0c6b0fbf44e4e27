import { effect, signal } from '@preact/signals';
import { keepValue, readList } from '../api/session.ts';
import { oneLine } from '../model/format.ts';
import type { InboxItem } from '../model/list/inbox.ts';
import { inbox, onNewItems } from './inbox.ts';
import { go, linkTo } from './route.ts';

/** Tells a person that something needs them: the page's title and icon, and, if chosen, a notification and a sound. */

export type Alert = 'notification' | 'sound';

const KEPT = 'parley.alerts';

/** The page's title without the count. */
export const heading = signal('');
export const chosenAlerts = signal<ReadonlySet<string>>(new Set(readList(KEPT)));
/** The browser refuses notifications for this page. */
export const isNotificationRefused = signal(false);

/** False: the browser offers notifications to no page at this address. */
export const hasNotifications = 'Notification' in window && window.isSecureContext;

export async function chooseAlert(alert: Alert, isOn: boolean): Promise<void> {
  if (alert === 'notification' && isOn) {
    isNotificationRefused.value = (await Notification.requestPermission()) !== 'granted';
    if (isNotificationRefused.value) return;
  }
  const others = [...chosenAlerts.value].filter((one) => one !== alert);
  chosenAlerts.value = new Set(isOn ? [...others, alert] : others);
  keepValue(KEPT, [...chosenAlerts.value]);
  if (alert === 'sound' && isOn) beep();
}

const ICON = new URL('../icon.svg', import.meta.url).href;
const MARKED_ICON = new URL('../icon-marked.svg', import.meta.url).href;

/** Runs until the returned function is called. */
export function keepAlerting(): () => void {
  const endMark = effect(() => {
    const count = inbox.value.length;
    document.title = `${count > 0 ? `(${count}) ` : ''}${heading.value === '' ? '' : `${heading.value} · `}Parley`;
    const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
    const wanted = count > 0 ? MARKED_ICON : ICON;
    if (icon && icon.href !== wanted) icon.href = wanted;
  });
  const endNews = onNewItems((items) => void tell(items));
  return () => {
    endMark();
    endNews();
  };
}

/** One tab of the browser tells it; without locks, each tab does. */
async function tell(items: readonly InboxItem[]): Promise<void> {
  const [first] = items;
  if (!first || chosenAlerts.value.size === 0) return;
  if (!navigator.locks) return alertOf(items);
  await navigator.locks.request(`parley ${first.key}`, { ifAvailable: true }, async (lock) => {
    if (lock === null) return;
    alertOf(items);
    await new Promise((resolve) => setTimeout(resolve, OTHER_TABS_MS));
  });
}

/** Other tabs get the same list within this time. */
const OTHER_TABS_MS = 60_000;

function alertOf(items: readonly InboxItem[]): void {
  const isSeen = document.visibilityState === 'visible' && document.hasFocus();
  if (chosenAlerts.value.has('sound')) beep();
  if (isSeen || !chosenAlerts.value.has('notification') || Notification.permission !== 'granted') return;
  for (const item of items.slice(0, MOST_NOTIFICATIONS)) {
    const shown = new Notification(KIND_LABELS[item.kind], { body: oneLine(item.title), tag: item.key });
    shown.onclick = () => {
      window.focus();
      go(linkTo.inbox);
      shown.close();
    };
  }
}

const MOST_NOTIFICATIONS = 3;

export const KIND_LABELS: Readonly<Record<InboxItem['kind'], string>> = {
  approval: 'Approval needed',
  outcome: 'Outcome unknown',
  question: 'Answer needed',
  failed: 'A turn failed',
  limited: 'A limit was reached',
};

/** Two short tones, without a file. */
function beep(): void {
  const context = new AudioContext();
  const volume = context.createGain();
  volume.gain.value = 0.08;
  volume.connect(context.destination);
  for (const [place, frequency] of [660, 880].entries()) {
    const tone = context.createOscillator();
    tone.frequency.value = frequency;
    tone.connect(volume);
    tone.start(context.currentTime + place * 0.12);
    tone.stop(context.currentTime + place * 0.12 + 0.1);
    if (place === 1) tone.onended = () => void context.close();
  }
}
