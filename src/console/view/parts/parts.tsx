import { type ComponentChildren, Fragment } from 'preact';
import { when } from '../../model/format.ts';
import { nameOf, participants } from '../../state/conversation.ts';
import { inbox } from '../../state/inbox.ts';
import { isUnfolded, keepUnfolded, useConversation } from '../../state/kept.ts';
import { linkTo } from '../../state/route.ts';
import { problems } from '../../state/system.ts';

/** Small components of all pages. */

export function Avatar({ id, size = 'normal' }: { readonly id: string; readonly size?: 'normal' | 'small' }) {
  const who = participants.value.get(id);
  const shape = who?.isAgent ? 'agent' : 'person';
  return (
    <span class={`avatar ${size} ${shape} c${who?.colour ?? 0}`} aria-hidden="true">
      {who?.initials ?? '·'}
    </span>
  );
}

export function Name({ id, name }: { readonly id: string; readonly name?: string }) {
  const who = participants.value.get(id);
  return <span class={`name c${who?.colour ?? 0}`}>{name ?? nameOf(id)}</span>;
}

const PATHS = {
  back: 'M15 5l-7 7 7 7',
  close: 'M6 6l12 12M18 6L6 18',
  plus: 'M12 5v14M5 12h14',
  stop: 'M7 7h10v10H7z',
  play: 'M8 5l11 7-11 7z',
  chevron: 'M9 6l6 6-6 6',
  search: 'M11 5a6 6 0 1 0 0 12a6 6 0 0 0 0-12M15.500 15.500L20 20',
  more: 'M4 12h2M11 12h2M18 12h2',
  filter: 'M4 6h16M7 12h10M10 18h4',
  pin: 'M9 4h6l-1 6l3 3H7l3-3zM12 13v7',
  send: 'M5 12h13M12 6l6 6-6 6',
  question: 'M8 8.500a4 4 0 1 1 6 3.400c-1.300.8-2 1.500-2 3.100M12 19v.2',
} as const;

export function Icon({ name }: { readonly name: keyof typeof PATHS }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** On a narrow screen, which shows either the list or a page: the way to the list, with the sum of the counts above it. */
export function BackLink() {
  const count = inbox.value.length + problems.value.length;
  return (
    <a class="button quiet back" href={linkTo.list}>
      <Icon name="back" />
      <span class="unseen">Back to the list</span>
      {count > 0 && (
        <span class="count some">
          {count}
          <span class="unseen"> {count === 1 ? 'needs attention' : 'need attention'}</span>
        </span>
      )}
    </a>
  );
}

const isOpenNow = ({ currentTarget }: Event): boolean =>
  currentTarget instanceof HTMLDetailsElement && currentTarget.open;

/** A native disclosure, which needs no script and supports the keyboard. */
export function Fold({
  summary,
  children,
  isOpen,
  name,
}: {
  readonly summary: ComponentChildren;
  readonly children: ComponentChildren;
  readonly isOpen?: boolean;
  /** Unique in the conversation: then it stays open when it is scrolled out of sight. */
  readonly name?: string;
}) {
  const conversation = useConversation();
  const keep =
    name === undefined ? undefined : (event: Event) => keepUnfolded(conversation, name, isOpenNow(event));
  return (
    <details class="fold" open={name === undefined ? isOpen : isUnfolded(conversation, name)} onToggle={keep}>
      <summary>
        <Icon name="chevron" />
        {summary}
      </summary>
      <div class="folded">{children}</div>
    </details>
  );
}

/** A text that scrolls: the keyboard reaches it. */
export function Scrolled({
  class: look,
  children,
}: {
  readonly class?: string;
  readonly children: ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <pre class={look} tabIndex={0}>
      {children}
    </pre>
  );
}

interface SelectProps {
  readonly label?: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string, title?: string])[];
  readonly onChoose: (value: string) => void;
  /** Shows `value` until that changes. */
  readonly isControlled?: boolean;
}

export function Select({ label, value, options, onChoose, isControlled }: SelectProps) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={({ currentTarget }) => {
        const chosen = currentTarget.value;
        if (isControlled) currentTarget.value = value;
        onChoose(chosen);
      }}
    >
      {options.map(([name, text, title]) => (
        <option key={name} value={name} title={title}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** Links to views of one thing; the shown one is marked. */
export function Tabs({
  label,
  tabs,
}: {
  readonly label: string;
  readonly tabs: readonly (readonly [address: string, text: string, isShown: boolean])[];
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([address, text, isShown]) => (
        <a key={text} href={address} aria-current={isShown ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}

export type Fact = readonly [name: string, value: ComponentChildren];

/** Facts without a value are left out. */
export function Facts({ facts, class: look }: { readonly facts: readonly Fact[]; readonly class?: string }) {
  const known = facts.filter(([, value]) => value !== undefined && value !== null && value !== false);
  return (
    <dl class={look}>
      {known.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

export function Tags({ texts }: { readonly texts: readonly string[] }) {
  return (
    <ul class="tags">
      {texts.map((text) => (
        <li key={text} class="tag">
          {text}
        </li>
      ))}
    </ul>
  );
}

/** When something was, in one word. */
export function When({ at }: { readonly at: string }) {
  return (
    <time class="muted" dateTime={at}>
      {when(at, Date.now())}
    </time>
  );
}
