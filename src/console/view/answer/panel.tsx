import { useEffect, useRef } from 'preact/hooks';
import { nameOf, opened, version } from '../../state/conversation.ts';
import { jumpTo } from '../../state/jump.ts';
import { go, linkTo, type Panel } from '../../state/route.ts';
import { isOperator } from '../../state/session.ts';
import { Avatar, Icon, Tabs } from '../parts/parts.tsx';
import { UnknownEntry } from '../parts/unknown.tsx';
import { Fork } from './fork.tsx';
import { WhatIfs } from './what-if.tsx';
import { Why } from './why.tsx';

/**
 * The panel beside the thread about one entry.
 *
 * why.tsx          the request of an answer: request.tsx, changed messages, definition.tsx (changed lines)
 * what-if.tsx      sends the request again with a change; what-if-result.tsx
 * fork.tsx         continues a copy of the conversation from the entry
 * entry-links.tsx  links to entries
 */
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
        <button type="button" class="quiet" aria-label="Close" onClick={() => go(linkTo.conversation(id))}>
          <Icon name="close" />
        </button>
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
        <UnknownEntry index={index} what={kind === 'fork' ? 'an entry' : 'an answer of an agent'} />
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
