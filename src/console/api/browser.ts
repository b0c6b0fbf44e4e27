import { computed, type ReadonlySignal, signal } from '@preact/signals';
import { parseJson } from '../../kernel/json.ts';

/** What the browser keeps for its tabs, and whether this one is visible. A cookie, which the page cannot read, proves who signed in. */

const SESSION = 'parley.session';

/** Tells one sign-in of this browser from the next. No other origin may know it: the cookie is sent below it alone (SIGN-IN-4). */
export const sessionMark = () => localStorage.getItem(SESSION) ?? '';
export const newMark = () => crypto.getRandomValues(new Uint32Array(4)).join('-');
export const markSession = (mark: string) => store(localStorage, SESSION, mark);
/** The address of the API for this browser. */
export const apiFor = (mark = sessionMark()) => (mark === '' ? 'api' : `s/${mark}/api`);

/** Another tab signed in or out: what the page knows is that of the person before. */
onStored(SESSION, () => location.reload());

export function onStored(name: string, changed: () => void): void {
  addEventListener('storage', ({ key }) => key === name && changed());
}

/** Reads the one-time code (`#code=…`) and removes it from the address; null: there is none. */
export function takeCode(): string | null {
  const code = /^#code=([\w.-]+)$/.exec(location.hash)?.[1] ?? null;
  if (code !== null) history.replaceState(null, '', '#/');
  return code;
}

/**
 * A value that is kept as JSON on this machine, or in `sessionStorage` until the tab is closed. Another version of the page, or
 * another program of this address, may have stored anything.
 */
export function readValue(name: string, storage = localStorage): unknown {
  return parseJson(storage.getItem(name) ?? '');
}

/** Null: none. */
export function keepValue(name: string, value: object | null, storage = localStorage): void {
  if (value === null) storage.removeItem(name);
  else store(storage, name, JSON.stringify(value));
}

/** A list that is kept, and shared by tabs if the storage is; empty, it takes no room. `read`: its values, of what is stored. */
export function keptList<T>(name: string, storage: Storage, read: (stored: unknown[]) => readonly T[]) {
  const stored = () => read([readValue(name, storage) ?? []].flat());
  const list = signal(stored());
  onStored(name, () => (list.value = stored()));
  const keep = (next: readonly T[]) => {
    list.value = next;
    keepValue(name, next.length > 0 ? next : null, storage);
  };
  return { list: list as ReadonlySignal<readonly T[]>, keep };
}

/** Texts that are kept on this machine and shared by its tabs. Of more than `most`, the first ones are forgotten. */
export function keptSet(name: string, most = 10_000) {
  const kept = keptList(name, localStorage, (stored) => stored.filter((one) => typeof one === 'string'));
  const texts = computed<ReadonlySet<string>>(() => new Set(kept.list.value));
  const keep = (all: Iterable<string>) => kept.keep([...new Set(all)].slice(-most));
  const put = (text: string, isIn: boolean) => {
    const others = kept.list.peek().filter((other) => other !== text);
    keep(isIn ? [...others, text] : others);
  };
  return { texts, keep, put };
}

/** A text that the storage has no room for is in the page alone. */
export function store(storage: Storage, name: string, text: string): void {
  try {
    storage.setItem(name, text);
  } catch {
    if (storage === sessionStorage) storage.removeItem(name); // an older text would be wrong
  }
}

/**
 * Unsent texts. Their place is a conversation, empty for a new one, or a field of a conversation.
 *
 * DRAFT-1 A text is in one tab. When its page is left, the text is stored on this machine, and the next page that shows its place takes
 *    it: of several, the newest.
 * DRAFT-2 A text is of its writer: it is forgotten when another person signs in.
 */
const DRAFT = 'parley.draft.';
const DRAFTS_OF = 'parley.drafts-of';
/** Null: not known yet. */
let writer: string | null = null;

const nameOfLeft = (place: string) => `${DRAFT}${writer}\n${place}`;
const textsLeft = (place: string) => [readValue(nameOfLeft(place)) ?? []].flat().map(String);

const placesIn = (storage: Storage, prefix: string) =>
  Object.entries(storage).flatMap(([name, text]) =>
    name.startsWith(prefix) && String(text).trim() !== '' ? name.slice(prefix.length) : [],
  );

/** The places with an unsent text that is more than spaces: in this tab, or left by another one. */
export const drafted = signal<ReadonlySet<string>>(new Set());
const findDrafts = () => {
  drafted.value = new Set([...placesIn(sessionStorage, DRAFT), ...placesIn(localStorage, nameOfLeft(''))]);
};
addEventListener('storage', ({ key }) => key?.startsWith(DRAFT) && findDrafts());

export function readDraft(place: string): string {
  const own = sessionStorage.getItem(DRAFT + place);
  const left = own === null ? textsLeft(place) : [];
  const text = own ?? left.pop() ?? '';
  if (own !== null || text === '') return text;
  keepValue(nameOfLeft(place), left.length > 0 ? left : null);
  keepDraft(place, text);
  return text;
}

export function keepDraft(place: string, text: string): void {
  const others = [...drafted.value].filter((other) => other !== place);
  const isDrafted = text.trim() !== '';
  if (drafted.value.has(place) !== isDrafted)
    drafted.value = new Set(isDrafted ? [...others, place] : others);
  if (text === '') sessionStorage.removeItem(DRAFT + place);
  else store(sessionStorage, DRAFT + place, text);
}

/** Of a conversation, with its fields. */
export function forgetDrafts(conversation: string): void {
  for (const place of drafted.peek()) {
    if (place.split('/', 1)[0] !== conversation) continue;
    keepDraft(place, '');
    keepValue(nameOfLeft(place), null);
  }
}

/** DRAFT-1. A text that this machine has no room for stays in the tab. */
addEventListener('pagehide', () => {
  for (const place of writer === null ? [] : placesIn(sessionStorage, DRAFT)) {
    const texts = [...textsLeft(place), readDraft(place)];
    keepValue(nameOfLeft(place), texts);
    if (textsLeft(place).length === texts.length) sessionStorage.removeItem(DRAFT + place);
  }
});
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) for (const place of drafted.value) readDraft(place); // the page still shows them
});

/** DRAFT-2 */
export function keepDraftsOf(person: string): void {
  writer = person;
  const isOther = (sessionStorage.getItem(DRAFTS_OF) ?? person) !== person;
  for (const place of isOther ? placesIn(sessionStorage, DRAFT) : []) keepDraft(place, '');
  for (const name of Object.keys(localStorage))
    if (name.startsWith(DRAFT) && !name.startsWith(nameOfLeft(''))) localStorage.removeItem(name);
  store(sessionStorage, DRAFTS_OF, person);
  findDrafts();
}

/** Acts now, at intervals, and when the page is shown again; never while it is hidden. Runs until the returned function is called. */
export function whileVisible(action: () => unknown, everyMs: number): () => void {
  const act = () => document.visibilityState === 'visible' && void action();
  document.addEventListener('visibilitychange', act);
  const timer = setInterval(act, everyMs);
  act();
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', act);
  };
}
