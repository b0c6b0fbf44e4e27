/** What the browser keeps. The token stays as long as the tab, is sent with every request and put nowhere else. */

const TOKEN = 'parley.token';
const DRAFT = 'parley.draft.';
const NAME = 'parley.name';

export function readToken(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function keepToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, token);
}

/** The code that the address brings (`#code=…`), which is removed from there; null: it brings none. */
export function takeCode(): string | null {
  const code = /^#code=([\w.-]+)$/.exec(location.hash)?.[1] ?? null;
  if (code !== null) history.replaceState(null, '', '#/');
  return code;
}

/** How a person signs, on this machine. */
export function readName(): string {
  return localStorage.getItem(NAME) ?? '';
}

export function keepName(name: string): void {
  localStorage.setItem(NAME, name);
}

/** What was begun and not sent, as long as the tab. `place`: a conversation, or empty for a new one. */
export function readDraft(place: string): string {
  return sessionStorage.getItem(DRAFT + place) ?? '';
}

export function keepDraft(place: string, text: string): void {
  if (text === '') sessionStorage.removeItem(DRAFT + place);
  else sessionStorage.setItem(DRAFT + place, text);
}
