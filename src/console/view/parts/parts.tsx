import { type ComponentChildren, type ComponentProps, Fragment } from 'preact';
import { shortId, when, withoutAnsi } from '../../model/format.ts';
import { partsOf } from '../../model/list/list.ts';
import { nameOf, participants } from '../../state/conversation.ts';
import { isRepeated, isShared } from '../../state/conversations.ts';
import { needed } from '../../state/inbox.ts';
import { isUnfolded, keepUnfolded, useConversation } from '../../state/kept.ts';
import { jumpTo, linkTo, route } from '../../state/route.ts';
import { problems } from '../../state/system.ts';
import { LinkButton, QuietButton } from './controls.tsx';
import { useNow } from './hooks.ts';

/** Small components of all pages. */

const HUES = [255, 45, 155, 325, 205, 90, 285, 20, 180, 120, 345, 230];

export const hued = (id: string, look: string, style: Readonly<Record<string, string>> = {}) => ({
  class: `hued ${look}`,
  style: { ...style, '--hue': String(HUES[participants.value.get(id)?.colour ?? 0]) },
});

export function Avatar({ id, size = 'normal' }: { readonly id: string; readonly size?: 'normal' | 'small' }) {
  const who = participants.value.get(id);
  return (
    <span {...hued(id, `avatar ${size} ${who?.isAgent ? 'agent' : 'person'}`)} aria-hidden="true">
      {who?.initials ?? '·'}
    </span>
  );
}

export function Name({ id, name = nameOf(id) }: { readonly id: string; readonly name?: string }) {
  return <span {...hued(id, 'name')}>{name}</span>;
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
  clip: 'M19 11l-7.500 7.500a4.500 4.500 0 0 1-6.400-6.400l7.600-7.600a3 3 0 0 1 4.300 4.300l-7.500 7.500a1.500 1.500 0 0 1-2.100-2.100L14.500 7.500',
  file: 'M7 3h7l4 4v14H7zM14 3v4h4',
  up: 'M7 11l4-8a2 2 0 0 1 2 2v4h5a2 2 0 0 1 2 2.300l-1.200 6.400a2 2 0 0 1-2 1.800H7zM7 11H4v9h3',
  down: 'M7 13l4 8a2 2 0 0 0 2-2v-4h5a2 2 0 0 0 2-2.300l-1.200-6.400a2 2 0 0 0-2-1.800H7zM7 13H4V4h3',
  question: 'M8 8.500a4 4 0 1 1 6 3.400c-1.300.8-2 1.500-2 3.100M12 19v.2',
} as const;

type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** A button without words: `aria-label` names it, also under the pointer. */
export const IconButton = ({ icon, ...props }: ComponentProps<'button'> & { readonly icon: IconName }) => (
  <QuietButton title={props['aria-label']} {...props}>
    <Icon name={icon} />
  </QuietButton>
);

/** On a narrow screen, which shows either the list or a page: the way to the list, with the sum of the counts above it. */
export function BackLink() {
  const count = needed.value.length + (route.value.page === 'inbox' ? 0 : problems.value.length);
  return (
    <a class="button quiet back" href={linkTo.list} title="Back to the list">
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

interface FoldProps {
  readonly summary: ComponentChildren;
  readonly children: ComponentChildren;
  readonly isOpen?: boolean;
  /** Unique in the conversation: then it stays open when it is scrolled out of sight. */
  readonly name?: string;
}

/** A native disclosure, which needs no script and supports the keyboard. */
export function Fold({ summary, children, isOpen, name }: FoldProps) {
  const conversation = useConversation();
  const isOpenFirst = name === undefined ? isOpen : isUnfolded(conversation, name);
  const keep = (isNow: boolean) => name !== undefined && keepUnfolded(conversation, name, isNow);
  return (
    <details class="fold" open={isOpenFirst} onToggle={({ currentTarget }) => keep(currentTarget.open)}>
      <summary>
        <Icon name="chevron" />
        {summary}
      </summary>
      <div class="folded">{children}</div>
    </details>
  );
}

type Tab = readonly [address: string, text: string, isShown: boolean];

export function Tabs({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([address, text, isShown]) => (
        <a key={text} class="muted text-small" href={address} aria-current={isShown ? 'page' : undefined}>
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
    <ul class="tags wraps">
      {texts.map((text) => (
        <li key={text} class="tag">
          {text}
        </li>
      ))}
    </ul>
  );
}

export function When({ at, ...props }: ComponentProps<'time'> & { readonly at: string }) {
  const isNew = Date.now() - Date.parse(at) < 60_000;
  return (
    <time class="muted" dateTime={at} {...props}>
      {when(at, useNow(isNew ? 1_000 : 30_000))}
    </time>
  );
}

type Titled = Readonly<{ id: string; title: string | null }>;

/** Tells conversations with the same title apart. */
export const SharedId = ({ id, title }: Titled) =>
  isRepeated(title) ? <code class="id muted text-tiny">{shortId(id)}</code> : null;

/** On one line, with the end in sight where others begin alike. */
export function Title({ of, class: look = '', ...props }: ComponentProps<'bdi'> & { readonly of: Titled }) {
  const text = withoutAnsi(of.title ?? of.id);
  const [beginning, end] = isShared(of.title) && !isRepeated(of.title) ? partsOf(text) : [text];
  return (
    <>
      <bdi class={`one-line ${end ? 'with-end' : ''} ${look}`} {...props}>
        {end ? <span class="one-line">{beginning}</span> : text}
        {end && (
          <span class="one-line" dir="rtl">
            <bdi>{end}</bdi>
          </span>
        )}
      </bdi>
      <SharedId id={of.id} title={of.title} />
    </>
  );
}

/** A button that scrolls to the entry. */
export const EntryLink = ({ index, text = `entry ${index}` }: { index: number; text?: string }) => (
  <LinkButton onClick={() => jumpTo(index)} aria-label={`Show entry ${index}`}>
    {text}
  </LinkButton>
);

const MOST_LINKS = 12;

export function EntryLinks({ entries, isRange }: { entries: readonly number[]; isRange?: boolean }) {
  if (entries.length === 0) return null;
  const shown = entries.slice(0, MOST_LINKS);
  return (
    <span class="entry-links">
      {shown.map((index, place) => (
        <span key={index}>
          {place > 0 && (isRange ? ' to ' : ' ')}
          <EntryLink index={index} text={String(index)} />
        </span>
      ))}
      {entries.length > shown.length && <span class="muted"> and {entries.length - shown.length} more</span>}
    </span>
  );
}

type HeadProps = { readonly headings: readonly string[]; readonly looks?: readonly (string | undefined)[] };

export function TableHead({ headings, looks = [] }: HeadProps) {
  return (
    <thead>
      <tr>
        {headings.map((heading, place) => (
          <th key={heading} scope="col" class={looks[place]}>
            {heading}
          </th>
        ))}
      </tr>
    </thead>
  );
}

interface TableProps<T> {
  readonly caption?: string;
  readonly columns: readonly (readonly [heading: string, cell: (of: T) => string])[];
  readonly rows: readonly (readonly [agent: string, of: T])[];
  readonly mark?: (agent: string) => ComponentChildren;
  readonly sum?: T;
}

export function Table<T>({ caption, columns, rows, mark, sum }: TableProps<T>) {
  const cells = (of: T) => columns.map(([heading, cell]) => <td key={heading}>{cell(of)}</td>);
  return (
    <table class="spending text-small">
      {caption && <caption>{caption}</caption>}
      <TableHead headings={['Agent', ...columns.map(([heading]) => heading)]} />
      <tbody>
        {rows.map(([agent, of]) => (
          <tr key={agent}>
            <th scope="row">
              {mark?.(agent)}
              <Name id={agent} />
            </th>
            {cells(of)}
          </tr>
        ))}
      </tbody>
      {sum && (
        <tfoot>
          <tr>
            <th scope="row">All</th>
            {cells(sum)}
          </tr>
        </tfoot>
      )}
    </table>
  );
}
