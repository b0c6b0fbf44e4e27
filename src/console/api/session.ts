/** The token that this tab was given: kept as long as the tab, sent with every request, put nowhere else. */

const TOKEN = 'parley.token';
const NAME = 'parley.name';

export function readToken(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function keepToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, token);
}

/** How a person signs, on this machine. */
export function readName(): string {
  return localStorage.getItem(NAME) ?? '';
}

export function keepName(name: string): void {
  localStorage.setItem(NAME, name);
}
