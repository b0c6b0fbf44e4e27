import { signal } from '@preact/signals';
import { loading, opened, selected, version } from './conversation.ts';
import { isFiltered, isFilterOpen, narrow } from './list.ts';
import { focusSelected, go, lastConversation, linkTo, route } from './route.ts';
import { notice } from './session.ts';

/**
 * The keys of the page, and its stray clicks. While a person types, only Esc works; it leaves the field.
 *
 * KEYS-1 An Esc within a moment of another one leaves no page: people who close something with two quick ones keep their place.
 * KEYS-2 A key that an input method uses, such as Esc while it composes a word, does nothing else.
 * KEYS-3 Typed words decide nothing: a key that answers, approves or dismisses acts only as the first one after an arrow key or Tab
 *    selected the entry, or a click its row in the inbox, or Esc left a field of its call. Where it does not, the next arrow key selects what it meant. A character within a moment of another one, wherever that was typed, leaves no page either. A call whose end
 *    was not in sight is not answered: its key leads there, and after a moment acts once more.
 * KEYS-4 The keys of one character can be turned off in this browser (WCAG 2.2, 2.1.4).
 * KEYS-5 Keys belong to the uppermost layer: a dialog or a menu, which the browser closes, then the page.
 * KEYS-6 A control that leaves the page with the focus gives it to the call or the entry around it.
 */

/** KEYS-1, KEYS-3, and for stray clicks. */
const MOMENT_MS = 500;
const MOVES = 'jkgG';
const SELECTS: ReadonlySet<string> = new Set(['ArrowDown', 'ArrowUp', 'Tab']);
/** `isQuick`: it came within a moment of the one before. */
const NEVER = { at: Number.NEGATIVE_INFINITY, isQuick: false, key: '' };
/** The last Esc, whatever it closed. */
let lastEscape = NEVER;
let lastCharacter = NEVER;
let characterBefore = '';
/** KEYS-3: whether the last key selected an entry, and the one before it. */
let [isSelected, wasSelected] = [false, false];
/** KEYS-3: when a key led to the end of a call. */
let readOnAt = Number.NEGATIVE_INFINITY;
/** KEYS-3: what the last key would have answered, and the way of the arrow key that then stayed there: its opposite stays, too. */
let [refusedAt, stayedBy]: [HTMLElement | null, number] = [null, 0];
/** The call that was answered last: arrow keys go on from it while its entry has the focus. */
let answered: Element | null = null;

/** KEYS-4 */
const SINGLE_KEYS = 'parley.keys';
export const hasSingleKeys = signal(localStorage.getItem(SINGLE_KEYS) !== 'off');

export function allowSingleKeys(isAllowed: boolean): void {
  hasSingleKeys.value = isAllowed;
  localStorage.setItem(SINGLE_KEYS, isAllowed ? 'on' : 'off');
}

interface Handlers {
  /** Opens the palette with a text, also while a person types. */
  readonly search: (text?: string) => void;
  readonly help: () => void;
  readonly actionOf: (key: string) => (() => unknown) | undefined;
}

export function listenToKeys({ search, ...handlers }: Handlers): () => void {
  const onKey = (event: KeyboardEvent) => {
    if (event.isComposing) return; // KEYS-2
    const isOpen = document.querySelector('dialog[open], :popover-open') !== null; // KEYS-5
    const at = route.value;
    const isWithControl = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    const key = isWithControl ? event.key.toLowerCase() : null;
    if (key === 'k' || (key === 'f' && at.page === 'conversation' && !isOpen)) {
      event.preventDefault(); // browsers search the page, which has a part of the thread only, or the web
      return search(key === 'f' && at.page === 'conversation' ? `in:${at.id} ` : '');
    }
    if (isOpen) return;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const isHandled = isWriting(event.target) ? leaveField(event) : act(event, handlers);
    if (isHandled) event.preventDefault();
  };
  const ended = new AbortController();
  const first = { capture: true, signal: ended.signal };
  document.addEventListener('keydown', notePressed, first); // menus keep theirs from bubbling
  document.addEventListener('keydown', onKey, { signal: ended.signal });
  const onPress = ({ target }: Event) => {
    [isSelected, refusedAt] = [target instanceof Element && target.closest('.inbox-line') !== null, null];
  };
  document.addEventListener('pointerdown', onPress, first);
  document.addEventListener('focusout', keepFocus, first);
  return () => ended.abort();
}

function notePressed(event: KeyboardEvent): void {
  const { key, target, timeStamp: at } = event;
  // A held Enter presses a button once, and one with Shift, which starts lines elsewhere, sends no half of a text.
  const isExtra = event.shiftKey
    ? target instanceof HTMLInputElement
    : target instanceof HTMLButtonElement && event.repeat;
  if (key === 'Enter' && isExtra) event.preventDefault();
  const after = (last: typeof NEVER) => ({ at, isQuick: at - last.at < MOMENT_MS, key });
  if (key === 'Escape') lastEscape = after(lastEscape);
  if (isCharacter(event)) [characterBefore, lastCharacter] = [lastCharacter.key, after(lastCharacter)];
  if (!key.startsWith('Arrow')) refusedAt = null;
  if (key !== 'Shift') [isSelected, wasSelected] = [SELECTS.has(key), isSelected];
}

/** KEYS-6 */
function keepFocus({ target }: FocusEvent): void {
  if (!(target instanceof Element)) return;
  const [call, entry] = ['.ask-card', 'article'].map((around) => target.closest<HTMLElement>(around));
  setTimeout(() => {
    if (target.isConnected || document.activeElement !== document.body) return;
    const isOpen = call?.isConnected && !call.matches('.answered');
    (isOpen ? call : entry)?.focus({ preventScroll: true });
  });
}

function isCharacter({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  return key.length === 1 && !ctrlKey && !metaKey && !altKey;
}

export function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof Element && target.closest('input:not([type="checkbox"]), textarea, select') !== null
  );
}

function leaveField({ key, target }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.id === 'search' && (key === 'ArrowDown' || key === 'Enter')) return moveAmong('.rows .row', 1);
  if (key !== 'Escape') return false;
  if (target.id === 'search') narrow({ text: '' });
  target.blur();
  isSelected = target.closest('.ask-card') !== null;
  const around = target.closest<HTMLElement>('article');
  if (around) around.focus();
  else focusSelected();
  return true;
}

/** The keys besides those of actions. */
const KEYS: Readonly<Record<string, (event: KeyboardEvent) => boolean>> = {
  j: () => move(1),
  ArrowDown: () => move(1),
  k: () => move(-1),
  ArrowUp: () => move(-1),
  g: () => moveTo(0),
  G: () => moveTo(Number.MAX_SAFE_INTEGER),
  Enter: (event) => explain(event),
  o: () => unfold(),
  Escape: () => leave(),
};

function act(event: KeyboardEvent, { help, actionOf }: Omit<Handlers, 'search'>): boolean {
  const isTyped = isCharacter(event);
  if (isTyped && !hasSingleKeys.value) return false; // KEYS-4
  if (pressShortcut(event)) return true;
  if (isTyped && lastCharacter.isQuick && !MOVES.includes(event.key)) return false; // KEYS-3
  const action = event.key === '?' ? help : (KEYS[event.key] ?? actionOf(event.key));
  return action !== undefined && action(event) !== false;
}

/** The control of the selected entry or conversation, or of the call with the focus, that has this key, if it is the only one. */
function pressShortcut({ key, repeat, timeStamp }: KeyboardEvent): boolean {
  const focused = document.activeElement?.closest('.ask-card, article, .rows li');
  const place = focused ?? document.querySelector('.inbox-entry .detail, .thread');
  if (repeat || !place || !/^[a-z1-9]$/.test(key)) return false;
  const [control, ...others] = place.querySelectorAll<HTMLElement>(
    `[aria-keyshortcuts="${key}"]:is(:enabled, .edit-arguments *, [aria-busy="true"])${MORE[key] ?? ''}`,
  );
  if (!control) return false;
  const isOfWord = lastCharacter.isQuick && timeStamp - lastEscape.at < MOMENT_MS;
  if (!focused || ((!wasSelected || isOfWord) && !document.activeElement?.matches('.row'))) {
    if (lastCharacter.isQuick && !MOVES.includes(characterBefore)) return true; // of a word
    if (others.length === 0)
      [refusedAt, stayedBy] = [control.closest<HTMLElement>('.ask-card:focus, article'), 0];
    return tell(`Press an arrow key or Tab, then ${key}.`);
  }
  if (others.length > 0 || control.ariaBusy === 'true') {
    isSelected = true;
    const several = `Several calls wait here. Reach one with ↓, then press ${key}.`;
    return tell(others.length > 0 ? several : `${key} answers this call once its difference is shown.`);
  }
  const readOn = control.closest('.ask-card')?.querySelector<HTMLElement>('.read-on button');
  if (readOn || timeStamp - readOnAt < MOMENT_MS) {
    [isSelected, readOnAt] = [true, timeStamp];
    readOn?.click();
  } else if (control.matches('input, select, textarea')) control.focus();
  else control.click();
  return true;
}

/** A call without buttons, as what it would change is being read. */
const BEING_READ = ', .whole-call[aria-busy="true"]';
/** Besides buttons: fields, and arguments that are being edited, which only their own buttons end. */
const MORE: Readonly<Record<string, string>> = {
  r: ', .edit-arguments label:first-child :is(input, select)',
  a: BEING_READ,
  d: `, div.edit-arguments${BEING_READ}`,
};

function tell(text: string): true {
  notice.value = { text, hint: '' };
  return true;
}

function move(by: number): boolean {
  const here = document.activeElement;
  const inList = here?.closest('.rows');
  const from = here?.matches('article') && here.contains(answered) ? answered : null;
  const meant = refusedAt?.isConnected && stayedBy !== by ? refusedAt : null;
  [answered, refusedAt, stayedBy] = stayedBy === 0 ? [null, meant, by] : [null, null, 0];
  if (meant) {
    meant.focus();
    return true;
  }
  if (moveAmongCalls(by, from)) return true;
  if (!inList && route.value.page === 'inbox') return moveAmong('.inbox-entry', by);
  if (inList || route.value.page !== 'conversation') return moveAmong('.rows .row', by);
  const at = indexOf(here?.closest('.thread .place')) ?? selected.value;
  const isMoved = moveTo(at === null ? lastInView() : at + by);
  if (from && selected.value === at) isSelected = false; // nothing follows, and a call that was skipped is not selected
  return isMoved;
}

const indexOf = (place: Element | null | undefined) => place && Number((place as HTMLElement).dataset.index);

/** Where a person reads who has selected nothing: the last entry that begins in view, or the end. */
function lastInView(): number {
  const end = document.querySelector('.thread')?.getBoundingClientRect().bottom ?? 0;
  const places = [...document.querySelectorAll('.thread .place')];
  const last = places.findLast((place) => place.getBoundingClientRect().top < end);
  return indexOf(last) ?? Number.MAX_SAFE_INTEGER;
}

/** Down through several calls that wait in the entry with the focus, and up again to the entry. */
function moveAmongCalls(by: number, from: Element | null): boolean {
  const entry = document.activeElement?.closest<HTMLElement>('.thread article');
  const calls = [...(entry?.querySelectorAll<HTMLElement>('.ask-card:not(.answered)') ?? [])];
  const stops = entry && (from || calls.length > 1) ? [entry, ...calls] : [];
  const isPassed = (stop: Element) =>
    from && by > 0
      ? stop.compareDocumentPosition(from) & Node.DOCUMENT_POSITION_FOLLOWING
      : stop.contains(document.activeElement);
  const next = stops[stops.findLastIndex(isPassed) + by];
  next?.focus();
  return next !== undefined;
}

function moveTo(place: number): boolean {
  if (loading.value) return whenLoaded(() => moveTo(place));
  const here = opened.value;
  const at = route.value;
  if (!here || here.thread.blocks.length === 0 || at.page !== 'conversation' || at.view !== 'thread')
    return false;
  selected.value = Math.min(here.thread.blocks.length - 1, Math.max(0, place));
  version.value++;
  focusSelected();
  return true;
}

/** The first entry is not there yet. */
function whenLoaded(action: () => void): true {
  const stop = loading.subscribe((now) => {
    if (now) return;
    queueMicrotask(() => stop());
    setTimeout(action);
  });
  return true;
}

function moveAmong(selector: string, by: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>(selector)];
  const focused = document.activeElement as HTMLElement | null;
  const left = Number(focused?.dataset.left ?? 0); // the place of an answered item, which the next one has taken
  const ofMenu = focused?.closest('.rows li')?.querySelector<HTMLElement>(selector);
  const found = rows.indexOf(ofMenu ?? focused?.closest<HTMLElement>(selector) ?? document.body);
  const at = found < 0 && by > 0 ? left - 1 : found < 0 ? left : found;
  rows[Math.min(rows.length - 1, Math.max(0, at + by))]?.focus();
  return rows.length > 0;
}

/** On a link or a button the key keeps its usual function. */
function explain({ target }: KeyboardEvent): boolean {
  if (!(target instanceof Element) || !target.matches('article')) return false;
  const link = target.querySelector<HTMLAnchorElement>('a.why, a.opens');
  link?.click();
  return link !== null;
}

function unfold(): boolean {
  const folds = document.activeElement?.closest('article')?.querySelectorAll('details') ?? [];
  const isOpen = [...folds].some((fold) => fold.open);
  for (const fold of folds) fold.open = !isOpen;
  return folds.length > 0;
}

/** What is next after an answer whose control has the focus, and disappears: another call of the entry, or a message. */
export function goOnAfter(): () => void {
  const card = document.activeElement?.closest('.ask-card');
  const entry = card?.closest('article');
  const isByKey = document.activeElement?.matches(':focus-visible') && !card?.matches('.question');
  answered = card?.closest('.call') ?? card ?? null;
  return () => {
    const focused = document.activeElement;
    if (focused !== entry && focused !== document.body && !card?.contains(focused)) return;
    const others = [...(entry?.querySelectorAll('.ask-card:not(.answered)') ?? [])];
    const hasNext = others.some((one) => one !== card);
    // Keys go on with what comes next, and a screen keyboard would cover the thread.
    if (isByKey || hasNext || !matchMedia('(hover: hover)').matches) entry?.focus();
    else focusOn('composer');
  };
}

export function focusOn(id: string): boolean {
  const field = document.getElementById(id);
  field?.focus();
  return field !== null;
}

function leave(): boolean {
  const at = route.value;
  if (isFilterOpen.value && !isFiltered.value) isFilterOpen.value = false;
  else if (at.page === 'conversation' && (at.panel !== null || at.view === 'timeline')) {
    if (at.panel) selected.value = opened.value?.thread.placeOf(at.panel.index) ?? null;
    go(linkTo.conversation(at.id));
    focusSelected();
  } else if (at.page === 'conversation' && document.activeElement?.closest('.rows')) narrow({ text: '' });
  else if (lastEscape.isQuick || (at.page === 'conversation' && focusList())) return true;
  else if (at.page !== 'list') go((at.page === 'conversation' ? null : lastConversation) ?? linkTo.list);
  else return false;
  return true;
}

/** The row of the open conversation, else the first one. False: the list is not visible, as on a phone. */
function focusList(): boolean {
  const row =
    document.querySelector<HTMLElement>('.row[aria-current]') ?? document.querySelector<HTMLElement>('.row');
  row?.focus();
  return row !== null && document.activeElement === row;
}

/** Starts a message to an agent; `otherwise` is its text if none is written yet. Without an agent, the text alone. */
export function writeTo(slug: string, otherwise = ''): void {
  const to = `@${slug} `;
  write((text) => (slug === '' ? otherwise : text.startsWith(to) ? text : to + (text || otherwise)));
}

export function addToMessage(text: string): void {
  write((written) => [written, text].filter((part) => part !== '').join('\n\n'));
}

function write(change: (text: string) => string): void {
  const field = document.getElementById('composer');
  if (!(field instanceof HTMLTextAreaElement)) return;
  const text = change(field.value);
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value')?.set?.call(field, text);
  field.dispatchEvent(new Event('input', { bubbles: true }));
  field.focus();
}

/**
 * A click reaches only the button that the person saw there. What comes to the place of a pressed or pointed button (the next card of
 * a list, the confirmation of an action, a new label, a link below a menu) takes no click there for a moment. What comes to the place
 * of a link takes clicks: lists are scrolled.
 */

/** Interval of the check of the button under a resting pointer. Not every browser reports that a button was replaced. */
const LOOK_MS = 100;

type Pointed = ReturnType<typeof pointedAt>;

export function ignoreStrayClicks(): () => void {
  const ended = new AbortController();
  const options = { capture: true, signal: ended.signal };
  let at = { x: 0, y: 0 };
  /** The button that the pointer was moved to, what is there now, and since when. */
  let meant: Pointed = null;
  let shown: Pointed = null;
  let since = 0;
  const isNew = () => Date.now() - since < MOMENT_MS;
  const look = () => {
    const now = pointedAt(at.x, at.y);
    if (!isSame(now, shown)) since = Date.now();
    shown = now;
    if (meant && !isInside(meant.box, at.x, at.y)) meant = null;
    if (now?.button instanceof HTMLButtonElement) meant ??= now;
  };
  const follow = ({ clientX: x, clientY: y }: MouseEvent) => {
    if ((x !== at.x || y !== at.y) && !isNew()) meant = null;
    at = { x, y };
    look();
  };
  /** The second click of a double click is stray also after the moment. */
  const isStray = ({ detail }: MouseEvent) =>
    meant !== null && shown !== null && !isSame(meant, shown) && (detail > 1 || isNew());
  const onClick = (event: MouseEvent) => {
    if (event.detail === 0 || !event.isTrusted) return; // of a key
    follow(event);
    if (isStray(event)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (event.detail === 1 && shown !== null) {
      meant = null; // what is pressed now is
      look();
    }
  };
  const timer = setInterval(() => (meant ?? shown) && look(), LOOK_MS);
  addEventListener('pointerover', follow, options);
  addEventListener('click', onClick, options);
  return () => {
    clearInterval(timer);
    ended.abort();
  };
}

function pointedAt(x: number, y: number) {
  const button = document.elementFromPoint(x, y)?.closest<HTMLElement>('button, a');
  const label = button?.ariaLabel ?? button?.textContent ?? '';
  return button ? { button, label, box: button.getBoundingClientRect() } : null;
}

function isSame(one: Pointed, other: Pointed): boolean {
  return one?.button === other?.button && one?.label === other?.label;
}

function isInside({ left, right, top, bottom }: DOMRect, x: number, y: number): boolean {
  return x >= left && x <= right && y >= top && y <= bottom;
}
