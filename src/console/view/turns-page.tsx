import { type ComponentChildren, Fragment } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type TurnRow, turnsCsv } from '../../conversation/state/turn-rows.ts';
import { requests } from '../api/requests.ts';
import type { ConversationRow, FoundTurn } from '../model/answers.ts';
import { count, duration, fullTime, money } from '../model/format.ts';
import { nameOf } from '../state/conversation.ts';
import { isListed, isShared, rows } from '../state/conversations.ts';
import { save } from '../state/files.ts';
import { linkTo, route } from '../state/route.ts';
import { agents, attempt, models } from '../state/session.ts';
import { Button, onText, Select } from './parts/controls.tsx';
import { useHeading } from './parts/hooks.ts';
import { BackLink, SharedId, TableHead, When } from './parts/parts.tsx';

/** A table of the turns of all conversations. Each row opens "why?" of the turn's newest answer. */

type Filters = Readonly<typeof NONE>;

const NONE = { agent: '', outcome: '', rated: '', since: '', model: '', tool: '', conversation: '' };
/** As the thread calls it. */
const wordOf = (outcome: TurnRow['outcome']) => (outcome === 'aborted' ? 'stopped' : outcome);
const OUTCOMES: readonly (readonly [value: string, text: string])[] = [
  ['', 'Any outcome'],
  ...(['running', 'waiting', 'completed', 'failed', 'aborted', 'limited'] as const).map(
    (outcome) => [outcome, wordOf(outcome)] as const,
  ),
];
const SINCE = [
  ['', 'Any time'],
  ['1', 'Last day'],
  ['7', 'Last 7 days'],
  ['30', 'Last 30 days'],
] as const;
const RATED = Object.entries({ '': 'Rated or not', up: 'Rated up', down: 'Rated down' });
const TEXTS = { model: 'Model', tool: 'Tool', conversation: 'Conversation' } as const;
/** The values that each text filter offers, with a label. */
const OFFERED: Readonly<Record<keyof typeof TEXTS, () => (readonly [text: string, label?: string])[]>> = {
  model: () => models.value.map((name) => [name]),
  tool: () => [...new Set(agents.value.flatMap(({ tools }) => tools))].sort().map((name) => [name]),
  conversation: () => rows.value.map(({ id, title }) => [isShared(title) ? id : (title ?? id), title ?? id]),
};
const MOST_SAVED = 10_000;

export function TurnsPage() {
  useHeading('Turns');
  const [asked, ask] = useState<Asked>(() => ({ filters: filtersInAddress(), from: START }));
  useEffect(() => ask({ filters: filtersInAddress(), from: START }), [route.value]); // another link or the way back
  const { filters } = asked;
  const { page, isLooking } = useTurns(asked);
  const more = isLooking ? 'Looking…' : 'Look for more, newest conversations first';
  const set = (name: keyof Filters) => (value: string) => {
    const changed = { ...filters, [name]: value };
    ask({ filters: changed, from: START });
    keepInAddress(changed); // here alone: an effect could undo an address that is not read yet
  };
  return (
    <main class="page turns-page column" aria-busy={isLooking}>
      <header class="head abreast">
        <BackLink />
        <h2 tabIndex={-1}>Turns</h2>
        <Button onClick={() => void saveTurns(filters, 'csv')}>CSV</Button>
        <Button onClick={() => void saveTurns(filters, 'jsonl')}>JSON Lines</Button>
      </header>
      <div class="turn-filters wraps">
        <Select
          label="Agent"
          value={filters.agent}
          options={[['', 'Any agent'], ...agents.value.map(({ slug, name }) => [slug, name] as const)]}
          onChoose={set('agent')}
        />
        <Select label="Outcome" value={filters.outcome} options={OUTCOMES} onChoose={set('outcome')} />
        <Select label="Rated" value={filters.rated} options={RATED} onChoose={set('rated')} />
        <Select label="Since" value={filters.since} options={SINCE} onChoose={set('since')} />
        {(['model', 'tool', 'conversation'] as const).map((name) => (
          <Fragment key={name}>
            <input
              aria-label={TEXTS[name]}
              placeholder={TEXTS[name]}
              value={filters[name]}
              list={`${name}s`}
              onInput={onText(set(name))}
            />
            <datalist id={`${name}s`}>
              {OFFERED[name]().map(([value, label]) => (
                <option key={value} {...{ value, label }} />
              ))}
            </datalist>
          </Fragment>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <section class="turn-table scrolls text-small" tabIndex={0} aria-label="Turns">
        <table>
          <TableHead headings={COLUMNS.map(([heading]) => heading)} looks={COLUMNS.map(([, look]) => look)} />
          <tbody>
            {page.turns.map((row) => (
              <tr key={`${row.conversation} ${row.turnId}`}>
                {COLUMNS.map(([heading, look, cell]) => (
                  <td key={heading} class={look}>
                    {cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {page.turns.length === 0 && page.next === null && (
          <p class="muted">
            {idNamed(filters.conversation.trim()) === undefined
              ? 'None or several conversations have this in their title. Choose one from the list.'
              : `No turn fits.${filters.model || filters.tool ? ' Models and tools are found by their whole names.' : ''}`}
          </p>
        )}
        {page.next !== null && <Button onClick={() => ask({ filters, from: page })}>{more}</Button>}
      </section>
    </main>
  );
}

type Asked = { readonly filters: Filters; readonly from: Page };

/** Reads on until a turn fits or all are read. */
function useTurns(asked: Asked) {
  const { filters, from } = asked;
  const [found, show] = useState({ page: from, isLooking: true });
  useEffect(() => {
    let isOver = false;
    let page = from;
    const tell = (isLooking: boolean) => isOver || show({ page, isLooking });
    const look = async () => {
      do page = await find(filters, 100, page);
      while (!isOver && page.next !== null && page.turns.length === from.turns.length);
    };
    tell(true);
    const wait = setTimeout(() => attempt(look).then(() => tell(false)), 200);
    return () => {
      isOver = true;
      clearTimeout(wait);
    };
  }, [asked, filters.conversation === '' || isListed.value]); // the list knows a conversation by its title
  return found;
}

const COLUMNS: readonly (readonly [
  heading: string,
  look: 'figure' | 'long breaks' | undefined,
  cell: (row: FoundTurn) => ComponentChildren,
])[] = [
  ['Started', undefined, (row) => <Started {...row} />],
  ['Outcome', undefined, (row) => <Outcome {...row} />],
  ['Conversation', 'long breaks', (row) => <Named {...row} />],
  ['Agent', undefined, ({ agent }) => nameOf(agent)],
  ['Model', undefined, ({ models }) => models.join(', ')],
  ['Time', 'figure', ({ ms }) => (ms === null ? '' : duration(ms))],
  ['Tokens', 'figure', ({ tokens }) => count(tokens)],
  ['Cost', 'figure', ({ usd, unpricedCalls }) => money(usd, unpricedCalls)],
  ['Tools', 'long breaks', ({ tools }) => tools.join(', ')],
  ['Rated', undefined, ({ rated }) => rated.join(', ')],
];

const Outcome = ({ outcome }: FoundTurn) => (
  <span class={outcome === 'failed' || outcome === 'limited' ? 'fault' : ''}>{wordOf(outcome)}</span>
);

function Started({ conversation, index, answer, startedAt }: FoundTurn) {
  const link = linkTo.panel(conversation, { kind: 'why', index: answer ?? index });
  return (
    <a href={link} title={`${fullTime(startedAt)}: why did it say that?`}>
      <When at={startedAt} class="" />
    </a>
  );
}

const Named = ({ title, conversation: id }: FoundTurn) => (
  <>
    <a dir="auto" href={linkTo.conversation(id)}>
      {title ?? id}
    </a>{' '}
    <SharedId {...{ id, title }} />
  </>
);

type Page = Awaited<ReturnType<typeof requests.turns>>;

/** So that a link and the way back lead to the same rows. */
function filtersInAddress(): Filters {
  const given = new URLSearchParams(location.hash.split('?')[1]);
  return { ...NONE, ...Object.fromEntries([...given].filter(([name]) => name in NONE)) };
}

function keepInAddress(filters: Filters): void {
  const query = new URLSearchParams(givenIn(filters)).toString();
  history.replaceState(null, '', query === '' ? linkTo.turns : `${linkTo.turns}?${query}`);
}

const START: Page = { turns: [], next: '' };

/** The turns `before`, and those of the page after them. */
async function find(filters: Filters, limit: number, before: Page): Promise<Page> {
  const { since, conversation = '', ...others } = givenIn(filters);
  const id = idNamed(conversation);
  if (id === undefined) return { turns: [], next: null };
  const { turns, next } = await requests.turns({
    ...others,
    ...(id && { conversation: id }),
    ...(since && { since: new Date(Date.now() - Number(since) * 86_400_000).toISOString() }),
    ...(before.next && { after: before.next }),
    limit: String(limit),
  });
  const all = [...before.turns, ...turns];
  return { next, turns: all.sort((a, b) => (a.startedAt > b.startedAt ? -1 : 1)) };
}

/** Of the conversation with this id, else title, else part of its title. Empty: of any. Undefined: it names none, or several. */
function idNamed(text: string): string | undefined {
  if (text === '') return '';
  const tests: readonly ((row: ConversationRow) => boolean)[] = [
    ({ id }) => id === text,
    ({ title }) => title === text,
    ({ title }) => title?.toLowerCase().includes(text.toLowerCase()) ?? false,
  ];
  const [found = []] = tests.map((isNamed) => rows.value.filter(isNamed)).filter(({ length }) => length > 0);
  return found.length === 1 ? found[0]?.id : undefined;
}

const givenIn = (filters: Filters): Partial<Filters> =>
  Object.fromEntries(
    Object.entries(filters).flatMap(([name, value]) => (value.trim() === '' ? [] : [[name, value.trim()]])),
  );

const saveTurns = (filters: Filters, format: 'csv' | 'jsonl') =>
  attempt(async () => {
    let page = START;
    while (page.next !== null && page.turns.length < MOST_SAVED) page = await find(filters, 500, page);
    const lines = () => page.turns.map((row) => `${JSON.stringify(row)}\n`).join('');
    const name = ['turns', ...Object.entries(givenIn(filters)).flat()]
      .join('-')
      .replace(/[^\p{L}\p{N}]+/gu, '-');
    const address = URL.createObjectURL(new Blob([format === 'csv' ? turnsCsv(page.turns) : lines()]));
    save(address, `${name}.${format}`);
    URL.revokeObjectURL(address);
    if (page.next !== null)
      throw new Error(
        `The file has the first ${count(page.turns.length)} turns. Choose a filter for others.`,
      );
  });
