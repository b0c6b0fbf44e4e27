import { type ReadonlySignal, signal } from '@preact/signals';
import { parseJson } from '../../kernel/json.ts';

/** What the browser keeps for its tabs, and whether this one is visible. A cookie, which the page cannot read, proves who signed in. */

const SESSION = 'parley.session';
const DRAFT = 'parley.draft.';
const DRAFTS_OF = 'parley.drafts-of';

/** Tells one sign-in of this browser from the next; no secret. */
export function sessionMark(): string {
  return localStorage.getItem(SESSION) ?? '';
}

export function markSession(): void {
  store(localStorage, SESSION, crypto.getRandomValues(new Uint32Array(2)).join('-'));
}

/** Another tab signed in or out: what the page knows is that of the person before. */
onStored(SESSION, () => location.reload());

/** Calls back when another tab stores this. */
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

/** A list that is kept; empty, it takes no room. `read`: its values, of what is stored. */
export function keptList<T>(name: string, storage: Storage, read: (stored: unknown[]) => readonly T[]) {
  const list = signal(read([readValue(name, storage) ?? []].flat()));
  const keep = (next: readonly T[]) => {
    list.value = next;
    keepValue(name, next.length > 0 ? next : null, storage);
  };
  return { list: list as ReadonlySignal<readonly T[]>, keep };
}

/** Texts that are kept on this machine and shared by its tabs. Of more than `most`, the first ones are forgotten. */
export function keptSet(name: string, most = 10_000) {
  const read = (): ReadonlySet<string> => {
    const kept = readValue(name);
    return new Set(Array.isArray(kept) ? kept.filter((one) => typeof one === 'string') : []);
  };
  const texts = signal(read());
  onStored(name, () => (texts.value = read()));
  const keep = (all: Iterable<string>) => {
    texts.value = new Set([...all].slice(-most));
    keepValue(name, [...texts.value]);
  };
  const put = (text: string, isIn: boolean) => {
    const others = [...read()].filter((other) => other !== text);
    keep(isIn ? [...others, text] : others);
  };
  return { texts: texts as ReadonlySignal<ReadonlySet<string>>, keep, put };
}

/** A text that the storage has no room for is in the page alone. */
export function store(storage: Storage, name: string, text: string): void {
  try {
    storage.setItem(name, text);
  } catch {
    if (storage === sessionStorage) storage.removeItem(name); // an older text would be wrong
  }
}

/** The unsent text, stored until the tab is closed. `place`: a conversation, or empty for a new one. */
export function readDraft(place: string): string {
  return sessionStorage.getItem(DRAFT + place) ?? '';
}

/** The places with an unsent text that is more than spaces. */
export const drafted = signal<ReadonlySet<string>>(
  new Set(
    Object.entries(sessionStorage)
      .filter(([name, text]) => name.startsWith(DRAFT) && String(text).trim() !== '')
      .map(([name]) => name.slice(DRAFT.length)),
  ),
);

export function keepDraft(place: string, text: string): void {
  const others = [...drafted.value].filter((other) => other !== place);
  const isDrafted = text.trim() !== '';
  if (drafted.value.has(place) !== isDrafted)
    drafted.value = new Set(isDrafted ? [...others, place] : others);
  if (text === '') sessionStorage.removeItem(DRAFT + place);
  else store(sessionStorage, DRAFT + place, text);
}

/** Forgets the unsent texts of another person, who was signed in to this tab before. */
export function keepDraftsOf(person: string): void {
  const before = sessionStorage.getItem(DRAFTS_OF) ?? person;
  if (before !== person) for (const place of drafted.value) keepDraft(place, '');
  store(sessionStorage, DRAFTS_OF, person);
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
