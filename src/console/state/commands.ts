import { computed, signal } from '@preact/signals';
import type { Mode } from '../../conversation/index.ts';
import { addressOf, requests } from '../api/requests.ts';
import { isWhollyStopped, nameOf, nameOfAuthor, opened, selected, team, version } from './conversation.ts';
import { rows } from './conversations.ts';
import { save } from './files.ts';
import { allowSingleKeys, focusOn, hasSingleKeys } from './keys.ts';
import { organized } from './list.ts';
import { enterPage, go, linkTo, type Panel, route, writeNew } from './route.ts';
import {
  attempt,
  chooseTheme,
  identity,
  isOperator,
  leaveSession,
  mayPost,
  notice,
  phases,
  sender,
  THEMES,
  theme,
  workflows,
} from './session.ts';

/** What a person can do now, by name: the palette runs it, and its list is the help. */
export interface Command {
  readonly name: string;
  readonly words?: string;
  readonly keys?: string;
  /** Absent: only the key does it, with the entry that has the focus. */
  readonly run?: () => unknown;
}

/** The workflow that a new conversation begins with; empty: none. */
export const workflowToStart = signal('');

export const DOWNLOADS = [
  { format: 'markdown', label: 'Download as Markdown' },
  { format: 'openai', label: 'Download as JSON (OpenAI messages)' },
] as const;

export const download = (id: string, format: string) => save(addressOf.export(id, format));

const KEYS_ONLY: readonly Command[] = [
  { keys: 'j, ↓', name: 'Next entry; in the list, next conversation' },
  { keys: 'k, ↑', name: 'Previous entry or conversation' },
  { keys: 'g, G', name: 'First, last entry' },
  { keys: 'Enter', name: 'Why did it say that? In the list: open' },
  { keys: 'o', name: 'Unfold the tools of an entry' },
  { keys: 'a, d', name: 'After an arrow key, not a letter: approve or deny the call of the entry' },
  { keys: '1 to 9, r', name: 'After an arrow key: choose an option or an outcome; write, or try again' },
  { keys: 'x', name: 'After an arrow key: dismiss a failure in the inbox' },
  { keys: 'm', name: 'In the list: pin, mark, download it; operators rename, archive, delete it' },
  { keys: 'Ctrl+K, ⌘K', name: 'Search everything; > alone lists the actions' },
  { keys: 'Esc', name: 'Leave the field, close what is open; from a thread, to the list' },
  { keys: '?', name: 'This list' },
];

const visit = (link: string) => () => go(link);

/** `isOffered`: absent, it is. */
type Offer = Command & { readonly isOffered?: boolean };

function offer(name: string, words: string, run: () => unknown, isOffered = true): Offer {
  return { name, words, run, isOffered };
}

const offered = (all: readonly Offer[]): readonly Command[] => all.filter((one) => one.isOffered !== false);

export const commands = computed(() => [...ofConversation(), ...offered(everywhere()), ...KEYS_ONLY]);

export const actionOf = (key: string) => commands.value.find(({ keys }) => keys === key)?.run;

function takeBack(): void {
  const { undo } = notice.value ?? {};
  notice.value = null;
  undo?.();
}
const switchSingleKeys = () => allowSingleKeys(!hasSingleKeys.value);
const chooseFiles = () => document.querySelector<HTMLElement>('.composer input[type="file"]')?.click();

function everywhere(): Offer[] {
  const hasField = mayPost.value && ['conversation', 'list', 'new'].includes(route.value.page);
  const { undo, text } = notice.value ?? {};
  return [
    offer(`Undo (${text})`, 'take back', takeBack, Boolean(undo)),
    { name: 'New conversation', keys: 'n', run: visit(linkTo.new), isOffered: mayPost.value },
    { name: 'Write a message', keys: 'c', run: () => focusOn('composer'), isOffered: hasField },
    offer('Add files to the message…', 'attach upload picture', chooseFiles, hasField),
    { name: 'Inbox', words: 'approvals questions failed', keys: 'i', run: () => enterPage(linkTo.inbox) },
    { name: 'Team and system', words: 'agents models health', keys: 's', run: visit(linkTo.system) },
    { name: 'Turns', words: 'table cost tools export csv', run: visit(linkTo.turns) },
    { name: 'Find a conversation in the list', words: 'filter', keys: '/', run: () => focusOn('search') },
    ...workflows.value.map(({ id }) => ({
      name: `Run the workflow ${id}…`,
      run: () => {
        workflowToStart.value = id; // with the message of the person
        writeNew();
      },
      isOffered: route.value.page !== 'conversation' && isOperator.value,
    })),
    ...THEMES.map((one) =>
      offer(`Theme: ${one}`, 'look colours', () => chooseTheme(one), one !== theme.value),
    ),
    offer(`Turn single-key shortcuts ${hasSingleKeys.value ? 'off' : 'on'}`, 'keys', switchSingleKeys),
    offer('Sign out', 'log out leave', leaveSession, identity.value?.isSession === true),
  ];
}

function ofConversation(): readonly Command[] {
  void version.value;
  const at = route.value;
  if (at.page !== 'conversation' || !opened.value) return [];
  const { id } = at;
  const [view, link] =
    at.view === 'thread' ? ['Timeline', linkTo.timeline(id)] : ['Thread', linkTo.conversation(id)];
  const menu = isOperator.value ? 'Rename, pin, archive, mark or delete' : 'Pin or mark';
  const organize = () => (organized.value = id);
  const isInList = rows.value.some((one) => one.id === id);
  return offered([
    ...(isOperator.value ? steering(id) : []),
    ...ofEntry(id),
    { name: view, words: 'lanes', keys: 't', run: visit(link) },
    ...DOWNLOADS.map(({ format, label }) => offer(label, 'export', () => download(id, format))),
    offer(`${menu} this conversation…`, `unread ${isOperator.value ? 'title' : ''}`, organize, isInList),
  ]);
}

function steering(id: string): Offer[] {
  const thread = opened.value?.thread;
  if (!thread) return [];
  const { phase, mode } = thread.floor;
  const step = (name: string, words: string, action: () => Promise<unknown>, isOffered = true) =>
    offer(name, words, () => attempt(action), isOffered);
  return [
    step('Resume all agents', 'continue', () => requests.resume(id, sender()), thread.isStopped),
    step('Stop all agents', 'halt abort', () => requests.stop(id, sender()), !isWhollyStopped(thread)),
    ...team.value.map(({ slug: agent }) =>
      thread.stateOf(agent).isStopped
        ? step(`Resume ${nameOf(agent)}`, agent, () => requests.resume(id, { agent, ...sender() }))
        : step(`Stop ${nameOf(agent)}`, agent, () => requests.stop(id, { agent, ...sender() })),
    ),
    ...team.value.map(({ slug: agent }) =>
      step(`Give the floor to ${nameOf(agent)}`, agent, () =>
        requests.mode(id, { mode: 'agent', agent, ...sender() }),
      ),
    ),
    ...phases.value.map(({ phase: to }) =>
      step(`Phase: ${to}`, 'enter', () => requests.phase(id, { phase: to, ...sender() }), to !== phase),
    ),
    ...(['chat', 'agent'] satisfies Mode[]).map((to) =>
      step(`Mode: ${to}`, '', () => requests.mode(id, { mode: to, ...sender() }), to !== mode),
    ),
    ...workflows.value.map(({ id: workflow }) =>
      step(`Run the workflow ${workflow}`, 'mode start', () =>
        requests.mode(id, { mode: 'run', workflow, ...sender() }),
      ),
    ),
  ];
}

/** Of the selected message, else of the newest answer. */
function ofEntry(id: string): Offer[] {
  const blocks = opened.value?.thread.blocks ?? [];
  const chosen = selected.value === null ? undefined : blocks[selected.value];
  const isAnswer = (block: (typeof blocks)[number]) =>
    block.kind === 'message' && block.entry.role === 'assistant';
  const block = chosen?.kind === 'message' ? chosen : blocks.findLast(isAnswer);
  if (block?.kind !== 'message') return [];
  const { index, entry } = block;
  const open = (kind: Panel['kind']) => visit(linkTo.panel(id, { kind, index }));
  return [
    {
      name: `Why did ${nameOfAuthor(entry.author)} say that? (entry ${index})`,
      words: 'explain request',
      run: open('why'),
      isOffered: isAnswer(block),
    },
    {
      name: `What if? Ask again with another model or persona (entry ${index})`,
      words: 'what-if',
      run: open('what-if'),
      isOffered: isAnswer(block) && isOperator.value,
    },
    { name: `Fork from entry ${index}…`, words: 'copy', run: open('fork'), isOffered: isOperator.value },
  ];
}
