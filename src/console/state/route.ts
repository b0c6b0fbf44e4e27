import { signal } from '@preact/signals';
import { loading, opened, selected, version } from './conversation.ts';

/** The page in the address, so that links and the browser's buttons work. */
export type Route =
  /** `unknown`: an address that the console does not have. */
  | { readonly page: 'list' | 'new' | 'inbox' | 'system' | 'turns' | 'unknown' }
  | {
      readonly page: 'conversation';
      readonly id: string;
      readonly view: 'thread' | 'timeline';
      readonly panel: Panel | null;
      /** The entry that the thread shows; null: where the person left it, or its end. */
      readonly entry: number | null;
    };

export type Panel = { readonly kind: 'why' | 'what-if' | 'fork'; readonly index: number };

const PANELS: readonly string[] = ['why', 'what-if', 'fork'] satisfies Panel['kind'][];

function routeOf(hash: string): Route {
  const [first = '', id = '', view = '', at = ''] = hash.replace(/^#\/?|\?.*/g, '').split('/');
  if (first === 'new' || first === 'inbox' || first === 'system' || first === 'turns') return { page: first };
  if (first === '' || !hash.startsWith('#/')) return { page: 'list' }; // `#code=…` is not a page
  // As `NAME_PATTERN`: any other name would end the stream of all tabs.
  if (first !== 'c' || !/^[\w-]{1,128}$/.test(decoded(id))) return { page: 'unknown' };
  const index = /^\d+$/.test(at) ? Number(at) : null;
  const isPanel = PANELS.includes(view) && index !== null;
  const isEntry = view === 'entry' && index !== null;
  if (!['', 'timeline'].includes(view) && !isPanel && !isEntry) return { page: 'unknown' };
  return {
    page: 'conversation',
    id: decoded(id),
    view: view === 'timeline' ? 'timeline' : 'thread',
    panel: isPanel ? { kind: view as Panel['kind'], index } : null,
    entry: view === 'entry' ? index : null,
  };
}

const decoded = (name: string): string =>
  name.replace(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

export const linkTo = {
  list: '#/',
  new: '#/new',
  inbox: '#/inbox',
  system: '#/system',
  turns: '#/turns',
  conversation: (id: string) => `#/c/${encodeURIComponent(id)}`,
  timeline: (id: string) => `#/c/${encodeURIComponent(id)}/timeline`,
  entry: (id: string, index: number) => `#/c/${encodeURIComponent(id)}/entry/${index}`,
  panel: (id: string, { kind, index }: Panel) => `#/c/${encodeURIComponent(id)}/${kind}/${index}`,
};

export const route = signal<Route>(routeOf(location.hash));
let read = location.hash;
/** The conversation that the person left for this page; null: none. */
export let lastConversation: string | null = null;
addEventListener('hashchange', () => {
  if (route.value.page === 'conversation') lastConversation = linkTo.conversation(route.value.id);
  else if (route.value.page === 'list') lastConversation = null;
  read = location.hash;
  route.value = routeOf(read);
});

export function go(link: string): void {
  location.hash = link;
}

/** The position of the block that a jump led to: it is marked for a moment. */
export const pointed = signal<number | null>(null);
let pointing: ReturnType<typeof setTimeout> | undefined;

/** Scrolls to an entry in the thread, selects it and marks it for a moment. */
export function jumpTo(index: number, { keepFocus = false } = {}): void {
  const here = opened.value;
  if (!here) return;
  const place = here.thread.placeShowing(index);
  if (place < 0) return;
  if (selected.value === place) selected.value = null;
  selected.value = place;
  pointed.value = place;
  clearTimeout(pointing);
  pointing = setTimeout(() => (pointed.value = null), 2_000);
  version.value++;
  if (!keepFocus) focusSelected();
}

export function showEntry(conversation: string, index: number): void {
  const isLoaded = () =>
    loading.value === null && opened.value?.id === conversation && opened.value.thread.entries.length > index;
  whenReady(linkTo.conversation(conversation), isLoaded, () => jumpTo(index));
}

const field = () => document.getElementById('composer');

/** Opens a conversation and puts the cursor into its message field, or writes there. */
export function writeIn(conversation: string, write = () => field()?.focus()): void {
  const isShown = () => opened.value?.id === conversation && field() !== null;
  whenReady(linkTo.conversation(conversation), isShown, write);
}

export function writeNew(write = () => field()?.focus()): void {
  whenReady(linkTo.new, () => field() !== null, write);
}

/** The same where a pointer hovers. On a phone the keyboard would cover the thread, so that it only opens. */
export function openToWrite(conversation: string): void {
  if (matchMedia('(hover: hover)').matches) writeIn(conversation);
  else go(linkTo.conversation(conversation));
}

const READY_WITHIN_MS = 10_000;

/** Goes to a page, and acts when it is loaded, unless the person has left it. */
function whenReady(link: string, isReady: () => boolean, action: () => void): void {
  go(link);
  const givenUp = performance.now() + READY_WITHIN_MS;
  const look = () => {
    if (location.hash !== link) return;
    // `route` has the link a moment after the address.
    if (read === link && isReady()) requestAnimationFrame(action);
    else if (performance.now() < givenUp) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** For a person who came by a key: the next keys act there, and no longer in the list. */
export function enterPage(link: string): void {
  whenReady(link, () => document.querySelector('main:not([aria-busy="true"])') !== null, focusMain);
}

/** Past the list. */
export function focusMain(): void {
  const main = document.querySelector('main');
  if (main) main.tabIndex = -1;
  main?.focus();
}

/** The block is rendered only after the list has scrolled to it. */
export function focusSelected(tries = 20): void {
  if (selected.value === null) return;
  const block = document.querySelector<HTMLElement>(`[data-index="${selected.value}"] article`);
  if (block) block.focus({ preventScroll: true });
  else if (tries > 0) requestAnimationFrame(() => focusSelected(tries - 1));
}
