import { signal } from '@preact/signals';

/** The page in the address, so that links and the browser's buttons work. */
export type Route =
  | { readonly page: 'list' }
  | { readonly page: 'new' }
  | {
      readonly page: 'conversation';
      readonly id: string;
      readonly view: 'thread' | 'timeline';
      /** The entry of the answer to explain. */
      readonly why: number | null;
    };

function routeOf(hash: string): Route {
  const [first = '', id = '', view = '', at = ''] = hash.replace(/^#\/?/, '').split('/');
  if (first === 'new') return { page: 'new' };
  if (first !== 'c' || id === '') return { page: 'list' };
  const why = view === 'why' && /^\d+$/.test(at) ? Number(at) : null;
  return { page: 'conversation', id: decoded(id), view: view === 'timeline' ? 'timeline' : 'thread', why };
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
  conversation: (id: string) => `#/c/${encodeURIComponent(id)}`,
  timeline: (id: string) => `#/c/${encodeURIComponent(id)}/timeline`,
  why: (id: string, index: number) => `#/c/${encodeURIComponent(id)}/why/${index}`,
};

export const route = signal<Route>(routeOf(location.hash));
addEventListener('hashchange', () => {
  route.value = routeOf(location.hash);
});

export function go(link: string): void {
  location.hash = link;
}
