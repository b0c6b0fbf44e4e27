import { computed, effect, signal } from '@preact/signals';
import type { Entry } from '../../conversation/index.ts';
import { keptSet } from '../api/browser.ts';
import { requests } from '../api/requests.ts';
import { shortLine, withoutAnsi } from '../model/format.ts';
import { type InboxItem, inboxOf } from '../model/list/inbox.ts';
import { isListed, rows } from './conversations.ts';
import { go, linkTo } from './route.ts';
import { notice, type Right, rights } from './session.ts';

/** What needs a person, what this person has answered or dismissed, and how the page tells them: title, icon, notification, sound. */

/** Answered in this tab; the list may be older. */
const answered = signal<ReadonlySet<string>>(new Set());
/** Failures that are dismissed in this browser. */
const dismissed = keptSet('parley.dismissed');

const all = computed(() => inboxOf(rows.value));
export const inbox = computed<readonly InboxItem[]>(() =>
  all.value.filter(({ key }) => !answered.value.has(key) && !dismissed.texts.value.has(key)),
);

export const RIGHTS: Readonly<Record<InboxItem['kind'], Right>> = {
  approval: 'approve',
  form: 'approve',
  outcome: 'approve',
  question: 'post',
  input: 'post',
  failed: 'post',
  limited: 'operate',
};

export const mayAnswer = ({ kind }: InboxItem): boolean => rights[RIGHTS[kind]].value;

/** What this person may answer: it is counted, and told. */
export const needed = computed<readonly InboxItem[]>(() => inbox.value.filter(mayAnswer));

/** `did`: said, unless a notice says more. */
export function leaveOut({ key, conversation }: InboxItem, did: string): void {
  answered.value = new Set([...answered.value, key]);
  notice.value ??= { text: did, hint: '', undo: null, href: linkTo.conversation(conversation) };
}

/** Keys of things that are over are forgotten. */
export function dismiss(items: readonly InboxItem[]): void {
  const current = new Set(all.value.map(({ key }) => key));
  const kept = [...dismissed.texts.value].filter((key) => !isListed.value || current.has(key));
  dismissed.keep([...kept, ...items.map(({ key }) => key)]);
  const undo = () => dismissed.keep(kept);
  const [first] = items;
  const what = items.length === 1 && first ? shortLine(withoutAnsi(first.title)) : `${items.length} items`;
  notice.value = { text: `Dismissed: ${what}`, hint: '', undo };
}

/** Entries before one that may say why it is there. */
const BEFORE = 60;

/** The entry of an item and as many before it as an answer holds, the last one first; empty: the list does not name it. */
export async function readEntries(item: InboxItem, before = BEFORE): Promise<readonly Entry[]> {
  const { conversation, entry } = item;
  if (entry === null) return [];
  const from = Math.max(0, entry - before);
  const page = await requests.entries(conversation, from, entry - from + 1);
  if (page.entries.at(-1)?.index === entry) return [...page.entries].reverse();
  return before > 0 ? readEntries(item, Math.floor(before / 4)) : [];
}

export type Alert = 'notification' | 'sound';

export const heading = signal('');
const chosen = keptSet('parley.alerts');
export const chosenAlerts = chosen.texts;
export const isNotificationRefused = signal(false);

/** False: the browser offers notifications to no page at this address. */
export const hasNotifications = 'Notification' in window && window.isSecureContext;

export async function chooseAlert(alert: Alert, isOn: boolean): Promise<void> {
  if (alert === 'notification' && isOn) {
    isNotificationRefused.value = (await Notification.requestPermission()) !== 'granted';
    if (isNotificationRefused.value) return;
  }
  chosen.put(alert, isOn);
  if (alert === 'sound' && isOn) beep();
}

const ICON = new URL('../icon.svg', import.meta.url).href;
const MARKED_ICON = new URL('../icon-marked.svg', import.meta.url).href;

export function keepAlerting(): () => void {
  const endMark = effect(() => {
    const count = needed.value.length;
    document.title = `${count > 0 ? `(${count}) ` : ''}${heading.value === '' ? '' : `${heading.value} · `}Parley`;
    const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
    const wanted = count > 0 ? MARKED_ICON : ICON;
    if (icon && icon.href !== wanted) icon.href = wanted;
  });
  let known: ReadonlySet<string> | null = null;
  const endNews = effect(() => {
    if (!isListed.value) return;
    const before = known; // null: this is the first list, and nothing in it is news
    const items = needed.value;
    known = new Set([...(before ?? []), ...items.map(({ key }) => key)]);
    void tell(items.filter(({ key }) => before?.has(key) === false));
  });
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
    const shown = new Notification(KIND_LABELS[item.kind], { body: shortLine(item.title), tag: item.key });
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
  form: 'Answer needed',
  outcome: 'Outcome unknown',
  question: 'Answer needed',
  input: 'A run waits for a message',
  failed: 'A turn failed',
  limited: 'A limit was reached',
};

function beep(): void {
  const context = new AudioContext();
  const volume = new GainNode(context, { gain: 0.08 });
  const tone = new OscillatorNode(context, { frequency: 880 });
  tone.connect(volume).connect(context.destination);
  tone.start();
  tone.stop(context.currentTime + 0.15);
  tone.onended = () => void context.close();
}
