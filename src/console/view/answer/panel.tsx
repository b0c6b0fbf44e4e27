import { useEffect, useRef, useState } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import { type ForkPoint, forkPoint } from '../../model/answer.ts';
import { nameOf, opened, version } from '../../state/conversation.ts';
import { titleOf } from '../../state/conversations.ts';
import { go, jumpTo, linkTo, openToWrite, type Panel } from '../../state/route.ts';
import { isOperator, sender } from '../../state/session.ts';
import { onText, PanelForm } from '../parts/controls.tsx';
import { Avatar, IconButton, Tabs } from '../parts/parts.tsx';
import { UnknownEntry } from '../parts/unknown.tsx';
import { WhatIfs } from './what-if.tsx';
import { Why } from './why.tsx';

/** The panel beside the thread about one entry: its request, what if, or a copy of the conversation from it. */
export function AnswerPanel({ id, panel }: { readonly id: string; readonly panel: Panel }) {
  void version.value;
  const heading = useRef<HTMLHeadingElement>(null);
  const { kind, index } = panel;
  useEffect(() => heading.current?.focus(), [index, kind]);
  const entry = opened.value?.thread.entries[index];
  useEffect(() => {
    if (entry && !isInSight(opened.value?.thread.placeOf(index) ?? -1)) jumpTo(index, { keepFocus: true });
  }, [index, entry?.id]);
  const agent = entry?.type === 'message' && entry.author.kind === 'agent' ? entry.author.id : null;
  return (
    <aside class="answer-panel" aria-labelledby="answer">
      <header class="head">
        {agent && <Avatar id={agent} />}
        <h2 id="answer" tabIndex={-1} ref={heading}>
          {HEADINGS[kind](agent ? nameOf(agent) : 'it')}
        </h2>
        <IconButton icon="close" aria-label="Close" onClick={() => go(linkTo.conversation(id))} />
      </header>
      {isOperator.value && agent && (
        <Tabs
          label="About this answer"
          tabs={TABS.map(([one, text]) => [linkTo.panel(id, { index, kind: one }), text, one === kind])}
        />
      )}
      {kind === 'why' && agent && <Why key={index} id={id} index={index} agent={agent} />}
      {kind === 'what-if' && agent && <WhatIfs key={index} id={id} index={index} agent={agent} />}
      {kind === 'fork' && entry && <Fork key={index} id={id} index={index} />}
      {!(kind === 'fork' ? entry : agent) && (
        <UnknownEntry
          index={index}
          what={kind === 'fork' ? 'an entry' : 'an answer of an agent'}
          isRead={entry !== undefined}
        />
      )}
    </aside>
  );
}

function isInSight(place: number): boolean {
  const { top, bottom } = document.querySelector(`[data-place="${place}"]`)?.getBoundingClientRect() ?? {};
  return top !== undefined && bottom !== undefined && bottom > 0 && top < innerHeight;
}

const HEADINGS: Readonly<Record<Panel['kind'], (name: string) => string>> = {
  why: (name) => `Why did ${name} say that?`,
  'what-if': () => 'What if?',
  fork: () => 'Fork from here',
};

const TABS: readonly (readonly [Panel['kind'], string])[] = [
  ['why', 'Why?'],
  ['what-if', 'What if?'],
  ['fork', 'Fork from here'],
];

const OUTCOMES: Readonly<Record<ForkPoint['outcome'], string>> = {
  answers: 'Messages that have no answer at that entry are answered again in the copy.',
  aborts: 'The turn of this answer continues after that entry; in the copy it ends as aborted.',
  waits: 'The copy then waits for a message.',
};

const LONGEST_TITLE = 200;
const ENDING = ' (copy)';

/** Asks for the title of the copy, shows a refusal, and opens the copy. */
function Fork({ id, index }: { readonly id: string; readonly index: number }) {
  const { at, outcome } = forkPoint(opened.value?.thread.entries ?? [], index);
  const [as] = useState(() => crypto.randomUUID().replaceAll('-', '')); // kept: a repeated fork continues the first one
  const original = titleOf(id) ?? opened.value?.thread.title ?? id;
  const [title, setTitle] = useState(`${original.slice(0, LONGEST_TITLE - ENDING.length)}${ENDING}`);
  if (!isOperator.value) return <p class="muted aside">Your token may not fork a conversation.</p>;
  const fork = async () => {
    await requests.fork(id, { as, at, ...sender() });
    await requests.label(as, { title: title.trim(), ...sender() });
    openToWrite(as);
  };
  return (
    <PanelForm class="account panel-form" action="Fork" isDisabled={title.trim() === ''} onSubmit={fork}>
      <p>
        A new conversation begins with a copy of the entries 0 to {at}. This conversation does not change, and
        no tool runs again. {OUTCOMES[outcome]}
      </p>
      <label>
        Title of the new conversation
        <input
          required
          maxLength={LONGEST_TITLE}
          autocomplete="off"
          value={title}
          onInput={onText(setTitle)}
        />
      </label>
    </PanelForm>
  );
}
