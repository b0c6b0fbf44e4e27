import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { FILTERS, partsOf, searchQueryOf } from '../model/list/search-query.ts';
import { nameOfAuthor } from '../state/conversation.ts';
import {
  answer,
  type Choice,
  choices,
  choose,
  chosen,
  isHelp,
  isPaletteOpen,
  nothing,
  typed,
} from '../state/palette.ts';
import { Dialog, reveal } from './parts/controls.tsx';
import { Avatar, Title, When } from './parts/parts.tsx';

const GROUPS: Readonly<Record<Choice['kind'], string>> = {
  agent: 'Write to an agent',
  conversation: 'Conversations',
  command: 'Actions',
  message: 'Messages',
};

/** Together: the types know `role` of an input only with a `list` of the browser. */
const COMBOBOX = {
  role: 'combobox',
  'aria-expanded': 'true',
  'aria-controls': 'palette-found',
  'aria-autocomplete': 'list',
} as object;

export function Palette() {
  return (
    <Dialog
      class="palette"
      label={isHelp.value ? 'Actions and keys' : 'Search'}
      onClose={() => (isPaletteOpen.value = false)}
    >
      <Search />
    </Dialog>
  );
}

function Search() {
  const found = choices.value;
  const field = useRef<HTMLInputElement>(null);
  const scope = /^(?:>|in:\S+ )/.exec(typed.value)?.[0] ?? ''; // what follows is selected, to be written over
  useLayoutEffect(() => field.current?.setSelectionRange(scope.length, typed.value.length), []);
  const at = Math.min(chosen.value, found.length - 1);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return; // KEYS-2
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const choice = found[at];
    if (step !== undefined) chosen.value = (at + step + found.length) % Math.max(1, found.length);
    else if (event.key === 'Enter' && choice) choose(choice);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        {...COMBOBOX}
        ref={field}
        aria-label="Search conversations, agents, messages and actions"
        aria-activedescendant={at >= 0 ? `palette-${at}` : undefined}
        placeholder="Search conversations, agents, messages and actions"
        autocomplete="off"
        spellcheck={false}
        autofocus
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          chosen.value = typed.value.trim() === '>' ? -1 : 0;
        }}
        onKeyDown={onKeyDown}
      />
      <div id="palette-found" class="found scrolls" role="listbox" aria-label="Found" tabIndex={-1}>
        {found.map((choice, place) => (
          <Option
            key={place}
            {...{ choice, place }}
            isFirst={found[place - 1]?.kind !== choice.kind}
            isChosen={place === at}
          />
        ))}
      </div>
      <p class="muted hint wraps text-tiny" role="status">
        {hintOf(found.length)}
      </p>
    </>
  );
}

function hintOf(count: number): ComponentChildren {
  const { failure, pending, isOver } = answer.value;
  if (failure !== null) return `Messages cannot be searched: ${failure}`;
  if (pending > 0) return `The index is being built: ${pending} conversations are missing.`;
  if (!isOver) return 'Searching…';
  if (count === 0) return nothing.value ?? 'Nothing matches.';
  if (isHelp.value)
    return 'Type words to find an action. Grey rows only name keys: press them on the page, on a selected entry.';
  return [<code key=">">&gt;</code>, 'actions', ...FILTERS.map((name) => <code key={name}>{name}:</code>)];
}

type OptionProps = { choice: Choice; place: number; isFirst: boolean; isChosen: boolean };

function Option({ choice, place, isFirst, isChosen }: OptionProps) {
  return (
    <>
      {isFirst && (
        <div class="group muted text-tiny" role="presentation">
          {GROUPS[choice.kind]}
        </div>
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and handles the keys */}
      <div
        id={`palette-${place}`}
        class="option text-small"
        role="option"
        tabIndex={-1}
        aria-selected={isChosen}
        ref={isChosen ? reveal : null}
        aria-disabled={choice.kind === 'command' && !choice.command.run}
        onClick={() => choose(choice)}
        onPointerMove={() => (chosen.value = place)}
      >
        <OptionText choice={choice} />
      </div>
    </>
  );
}

function OptionText({ choice }: { readonly choice: Choice }) {
  if (choice.kind === 'agent')
    return (
      <>
        <span class="line abreast">
          <Avatar id={choice.slug} size="small" />
          <bdi class="one-line">{choice.name}</bdi>
        </span>
        <span class="muted">{choice.description}</span>
      </>
    );
  if (choice.kind === 'conversation')
    return (
      <span class="line abreast">
        <Title of={choice} class="title" />
        <When at={choice.at} />
      </span>
    );
  if (choice.kind === 'command')
    return (
      <span class="line abreast">
        <bdi class="one-line">{choice.command.name}</bdi>
        <span class="shortcut">
          {choice.command.keys?.split(', ').map((key) => (
            <kbd key={key}>{key}</kbd>
          ))}
        </span>
      </span>
    );
  const { author, title, conversation, index, at, snippet, marks } = choice.hit;
  const isOnly = searchQueryOf(typed.value).filters.conversation === conversation;
  return (
    <>
      <span class="line abreast">
        <bdi class="title one-line">{nameOfAuthor(author)}</bdi>
        <Title of={{ id: conversation, title: isOnly ? `entry ${index}` : title }} class="muted" />
        <When at={at} />
      </span>
      <bdi class="snippet breaks">
        {partsOf(snippet, marks).map(({ text, isFound }, place) =>
          isFound ? <mark key={place}>{text}</mark> : text.replaceAll('```', ''),
        )}
      </bdi>
    </>
  );
}
