import { batch, computed, effect, signal } from '@preact/signals';
import { requests } from '../api/requests.ts';
import type { FoundMessage } from '../model/answers.ts';
import { shortLine } from '../model/format.ts';
import { newestFirst } from '../model/list/list.ts';
import { fitOf, refusalText, SHORTEST, searchQueryOf, whyNothing } from '../model/list/search-query.ts';
import { type Command, commands } from './commands.ts';
import { selected, team } from './conversation.ts';
import { rows } from './conversations.ts';
import { writeTo } from './keys.ts';
import { openToWrite, route, showEntry, writeNew } from './route.ts';
import { agents, mayPost, phases } from './session.ts';

/**
 * The palette: jumps to conversations, agents and messages, and runs actions. A text that begins with `>` finds actions alone.
 */

const MOST_CONVERSATIONS = 6;
const MOST_AGENTS = 3;
const MOST_COMMANDS = 6;
const MOST_MESSAGES = 20;
const LONGEST_CALL = 60;
/** After the last key, before the daemon is asked. */
const PAUSE_MS = 150;
const AGAIN_MS = 1_000;

export type Choice =
  | { readonly kind: 'agent'; readonly slug: string; readonly name: string; readonly description: string }
  | { readonly kind: 'conversation'; readonly id: string; readonly title: string; readonly at: string }
  | { readonly kind: 'command'; readonly command: Command }
  | { readonly kind: 'message'; readonly hit: FoundMessage };

export const isPaletteOpen = signal(false);
export const typed = signal('');
interface Answer {
  readonly hits: readonly FoundMessage[];
  readonly pending: number;
  readonly failure: string | null;
  readonly isOver: boolean;
}
const NOTHING: Answer = { hits: [], pending: 0, failure: null, isOver: true };
/** The messages of the newest answer, and whether another one is awaited. */
export const answer = signal<Answer>(NOTHING);
export const chosen = signal(0);

/** What is searched. An agent may be named as the page shows it. */
const query = computed(() => {
  const { q, filters } = searchQueryOf(typed.value);
  const wanted = filters.agent?.toLowerCase();
  const named = team.value.find(({ slug, name }) => wanted === slug || wanted === name.toLowerCase());
  return { q, filters: named ? { ...filters, agent: named.slug } : filters };
});

/** The words after `>`; null: all is searched. */
const wantedAction = computed(() => (typed.value.startsWith('>') ? typed.value.slice(1) : null));
export const isHelp = computed(() => wantedAction.value !== null);

export const choices = computed<readonly Choice[]>(() => {
  void isPaletteOpen.value; // the buttons of the page are others each time
  if (wantedAction.value !== null) return fittingCommands(wantedAction.value);
  const { q, filters } = query.value;
  const hasFilter = Object.keys(filters).length > 0;
  const isEmpty = q.trim() === '';
  const fits = (...texts: readonly string[]) => fitOf(q, texts.join(' '));
  const agentsHere = isEmpty || hasFilter || !mayPost.value ? [] : agents.value;
  const here = isEmpty && route.value.page === 'conversation' ? route.value.id : null;
  const listed = hasFilter ? [] : rows.value.filter(({ id }) => id !== here);
  return [
    ...best(agentsHere, ({ slug, name }) => fits(slug, name), MOST_AGENTS).map(
      (agent): Choice => ({ kind: 'agent', ...agent }),
    ),
    ...best([...listed].sort(newestFirst), ({ id, title }) => fits(id, title ?? ''), MOST_CONVERSATIONS).map(
      (row): Choice => ({ kind: 'conversation', id: row.id, title: row.title ?? row.id, at: row.activeAt }),
    ),
    ...(hasFilter ? [] : fittingCommands(q).slice(0, isEmpty ? undefined : MOST_COMMANDS)),
    ...answer.value.hits.map((hit): Choice => ({ kind: 'message', hit })),
  ];
});

function best<T>(all: readonly T[], fitting: (one: T) => number, most?: number): T[] {
  return all
    .map((one) => ({ one, fit: fitting(one) }))
    .filter(({ fit }) => fit > 0)
    .sort((a, b) => b.fit - a.fit)
    .slice(0, most)
    .map(({ one }) => one);
}

function fittingCommands(text: string): Choice[] {
  const at = route.value;
  const search = { name: 'Search this conversation', keys: 'Ctrl+F, ⌘F' };
  const here = at.page === 'conversation' ? [{ ...search, run: () => openPalette(`in:${at.id} `) }] : [];
  const fit = ({ name, words = '' }: Command) => 2 * fitOf(text, name) || fitOf(text, `${name} ${words}`);
  return best<Command>([...commands.value, ...here, ...ofButtons()], fit)
    .sort((one, other) => Number(!one.run) - Number(!other.run)) // Enter runs the first
    .sort((one, other) => (text === '' ? Number(!one.keys) - Number(!other.keys) : 0))
    .map((command) => ({ kind: 'command', command }));
}

/** The buttons of the item that is chosen in the inbox, or of the selected entry, else of the newest one that has some. */
function ofButtons(): Command[] {
  const entries = [...document.querySelectorAll(`.thread article:has(button)`)];
  const chosen = `.inbox-entry .detail, [data-index="${selected.value}"] article`;
  const entry = document.querySelector(chosen) ?? entries.at(-1);
  const buttons = [...(entry?.querySelectorAll('button') ?? [])].filter((one) => one.matches(':enabled'));
  return buttons.map((button) => {
    const card = button.closest('.ask-card');
    const parts = card?.querySelectorAll<HTMLElement>('.whole-call > :not(.tool, .fold)') ?? [];
    const call = [...parts].map(({ innerText }) => innerText).join(' ');
    const label = button.ariaLabel ?? button.innerText;
    return {
      name: `${label}${call && ` (${shortLine(call, LONGEST_CALL)})`}${/entry \d+/.test(label) ? '' : ', this entry'}`,
      words: button.title,
      run: () => {
        button.focus();
        button.click();
      },
    };
  });
}

/** Why the list is empty; null: it may have something soon, or nothing fits. */
export const nothing = computed<string | null>(() => {
  const slugs = team.value.map(({ slug }) => slug); // hired agents of other conversations are not known
  return whyNothing(query.value, { agent: slugs, phase: phases.value.map(({ phase }) => phase) });
});

export function openCommands(): void {
  openPalette('>');
  chosen.value = -1; // who reads the keys and presses Enter does nothing
}

/** What was typed when a message was opened: a search in its conversation goes on with that. */
let searched = '';

export function openPalette(text = ''): void {
  batch(() => {
    typed.value = text !== '' && searched.startsWith(text) ? searched : text;
    chosen.value = 0;
    answer.value = NOTHING;
    isPaletteOpen.value = true;
  });
}

export function choose(choice: Choice): void {
  if (choice.kind === 'command' && !choice.command.run) return;
  isPaletteOpen.value = false;
  if (choice.kind === 'message') searched = typed.value;
  if (choice.kind === 'command') return void setTimeout(() => choice.command.run?.()); // the dialog gives the focus back first
  if (choice.kind === 'conversation') openToWrite(choice.id);
  else if (choice.kind === 'agent') writeNew(() => writeTo(choice.slug));
  else showEntry(choice.hit.conversation, choice.hit.index);
}

/** Asks the daemon for messages while the palette is open. Runs until the returned function is called. */
export function keepSearching(): () => void {
  return effect(() => {
    const { q, filters } = query.value;
    void route.value;
    if (!isPaletteOpen.value || isHelp.value || q.trim().length < SHORTEST) {
      answer.value = NOTHING;
      return;
    }
    answer.value = { ...answer.peek(), isOver: false };
    let [isOver, timer]: [boolean, ReturnType<typeof setTimeout> | undefined] = [false, undefined];
    const ask = async () => {
      const found = await requests
        .search(q, { ...filters, limit: String(MOST_MESSAGES) })
        .then((page) => ({ ...NOTHING, ...page }))
        .catch((error: Error) => ({ ...NOTHING, failure: refusalText(error.message) }));
      if (isOver) return;
      answer.value = found;
      if (found.pending > 0) timer = setTimeout(ask, AGAIN_MS);
    };
    timer = setTimeout(ask, PAUSE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  });
}
