import { signal } from '@preact/signals';

/** The page in the address, so that links and the browser's buttons work. */
export type Route =
  | { readonly page: 'list' }
  | { readonly page: 'new' }
  | { readonly page: 'inbox' }
  | { readonly page: 'system' }
  /** An address that the console does not have. */
  | { readonly page: 'unknown' }
  | {
      readonly page: 'conversation';
      readonly id: string;
      readonly view: 'thread' | 'timeline';
      /** The panel beside the thread. */
      readonly panel: Panel | null;
      /** The entry that the thread shows; null: where the person left it, or its end. */
      readonly entry: number | null;
    };

/** What a panel shows about one entry. */
export interface Panel {
  readonly kind: 'why' | 'what-if' | 'fork';
  readonly index: number;
}

const PANELS: readonly string[] = ['why', 'what-if', 'fork'] satisfies Panel['kind'][];

function routeOf(hash: string): Route {
  const [first = '', id = '', view = '', at = ''] = hash.replace(/^#\/?/, '').split('/');
  if (first === 'new' || first === 'inbox' || first === 'system') return { page: first };
  if (first === '' || !hash.startsWith('#/')) return { page: 'list' }; // `#code=…` is not a page
  if (first !== 'c' || id === '') return { page: 'unknown' };
  const index = /^\d+$/.test(at) ? Number(at) : null;
  const isPanel = PANELS.includes(view) && index !== null;
  return {
    page: 'conversation',
    id: decoded(id),
    view: view === 'timeline' ? 'timeline' : 'thread',
    panel: isPanel ? { kind: view as Panel['kind'], index } : null,
    entry: view === 'entry' ? index : null,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const linkTo = {
  list: '#/',
  new: '#/new',
  inbox: '#/inbox',
  system: '#/system',
  conversation: (id: string) => `#/c/${encodeURIComponent(id)}`,
  timeline: (id: string) => `#/c/${encodeURIComponent(id)}/timeline`,
  entry: (id: string, index: number) => `#/c/${encodeURIComponent(id)}/entry/${index}`,
  panel: (id: string, { kind, index }: Panel) => `#/c/${encodeURIComponent(id)}/${kind}/${index}`,
};

export const route = signal<Route>(routeOf(location.hash));
let read = location.hash;
let conversation: string | null = null;
addEventListener('hashchange', () => {
  if (route.value.page === 'conversation') conversation = linkTo.conversation(route.value.id);
  else if (route.value.page === 'list') conversation = null;
  read = location.hash;
  route.value = routeOf(read);
});

/** Whether `route` has this link; the address has it a moment before. */
export function isAt(link: string): boolean {
  return read === link;
}

/** The conversation that the person left for this page; null: none. */
export function lastConversation(): string | null {
  return conversation;
}

export function go(link: string): void {
  location.hash = link;
}
