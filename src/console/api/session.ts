import { signal } from '@preact/signals';

/** Browser storage. The token is stored until the tab is closed, and is sent only to the daemon. */

const TOKEN = 'parley.token';
const DRAFT = 'parley.draft.';
const LEFT = 'parley.left.';
const OUTBOX = 'parley.outbox';
const NAME = 'parley.name';

export function readToken(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function keepToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(TOKEN);
  else store(sessionStorage, TOKEN, token);
}

/** Reads the one-time code (`#code=…`) and removes it from the address; null: there is none. */
export function takeCode(): string | null {
  const code = /^#code=([\w.-]+)$/.exec(location.hash)?.[1] ?? null;
  if (code !== null) history.replaceState(null, '', '#/');
  return code;
}

/** The person's name on messages, stored on this machine. */
export function readName(): string {
  return localStorage.getItem(NAME) ?? '';
}

export function keepName(name: string): void {
  store(localStorage, NAME, name);
}

/** A value that is kept as JSON on this machine; null: none, or a text that is not JSON. */
export function readValue(name: string): unknown {
  return parsed(localStorage.getItem(name));
}

export function keepValue(name: string, value: object): void {
  store(localStorage, name, JSON.stringify(value));
}

/** A list of texts, stored on this machine. */
export function readList(name: string): readonly string[] {
  const kept = readValue(name);
  return Array.isArray(kept) ? kept.filter((one) => typeof one === 'string') : [];
}

/** Another version of the page, or another program of this address, may have stored anything. */
function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return null;
  }
}

/** A text that the storage has no room for is in the page alone. */
function store(storage: Storage, name: string, text: string): void {
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

/** How a person left the thread of a conversation, stored until the tab is closed. */
export function readLeft(conversation: string): unknown {
  return parsed(sessionStorage.getItem(LEFT + conversation));
}

export function keepLeft(conversation: string, left: object): void {
  store(sessionStorage, LEFT + conversation, JSON.stringify(left));
}

/** The posts that are not confirmed, stored until the tab is closed. */
export function readOutbox(): readonly unknown[] {
  const kept = parsed(sessionStorage.getItem(OUTBOX));
  return Array.isArray(kept) ? kept : [];
}

export function keepOutbox(posts: readonly object[]): void {
  if (posts.length === 0) sessionStorage.removeItem(OUTBOX);
  else store(sessionStorage, OUTBOX, JSON.stringify(posts));
}
