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
  else sessionStorage.setItem(TOKEN, token);
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
  localStorage.setItem(NAME, name);
}

/** A list of texts, stored on this machine. */
export function readList(name: string): readonly string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(name) ?? '[]');
    return Array.isArray(kept) ? kept.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

export function keepList(name: string, texts: readonly string[]): void {
  localStorage.setItem(name, JSON.stringify(texts));
}

/** A text that the storage has no room for is in the page alone. */
function store(name: string, text: string): void {
  try {
    sessionStorage.setItem(name, text);
  } catch {
    sessionStorage.removeItem(name); // an older text would be wrong
  }
}

/** The unsent text, stored until the tab is closed. `place`: a conversation, or empty for a new one. */
export function readDraft(place: string): string {
  return sessionStorage.getItem(DRAFT + place) ?? '';
}

export function keepDraft(place: string, text: string): void {
  if (text === '') sessionStorage.removeItem(DRAFT + place);
  else store(DRAFT + place, text);
}

/** How a person left the thread of a conversation, as JSON, stored until the tab is closed. */
export function readLeft(conversation: string): string {
  return sessionStorage.getItem(LEFT + conversation) ?? '{}';
}

export function keepLeft(conversation: string, left: object): void {
  store(LEFT + conversation, JSON.stringify(left));
}

/** The posts that are not confirmed, as JSON, stored until the tab is closed. */
export function readOutbox(): string {
  return sessionStorage.getItem(OUTBOX) ?? '[]';
}

export function keepOutbox(posts: readonly object[]): void {
  if (posts.length === 0) sessionStorage.removeItem(OUTBOX);
  else store(OUTBOX, JSON.stringify(posts));
}
