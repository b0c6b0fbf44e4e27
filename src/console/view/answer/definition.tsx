import { useState } from 'preact/hooks';
import type { ExplainedRequest, PartDifference, ReportedDefinition } from '../../../conversation/index.ts';
import { diffDefinitions } from '../../../conversation/view/view-diff.ts';
import { requests } from '../../api/requests.ts';
import { type TurnStart, type TurnsAround, turnsAround } from '../../model/answer.ts';
import { markedLines } from '../../model/changed-words.ts';
import { clockTime, when } from '../../model/format.ts';
import { opened } from '../../state/conversation.ts';
import { useRequest } from '../parts/hooks.ts';
import { EntryLinks, Fold } from '../parts/parts.tsx';
import { Lines } from '../parts/text.tsx';

interface DefinitionProps {
  readonly id: string;
  readonly agent: string;
  readonly index: number;
  readonly now: ExplainedRequest;
}

/** The index of a `turn-started`, or the definition of the agent's next turn. */
type Other = number | 'next';

/** Which definition the turn ran with, and the changed lines against another turn; by default the previous one. */
export function DefinitionSection({ id, agent, index, now }: DefinitionProps) {
  const turns = turnsAround(opened.value?.thread.entries ?? [], index, agent);
  const [other, setOther] = useState<Other | null>(turns.previous?.index ?? null);
  const { hash, recorded } = now.report.definition;
  return (
    <section>
      <h3>Definition</h3>
      <p class="muted">
        {recorded
          ? 'The persona, prompts, tools and model that the turn ran with: '
          : 'The turn recorded no definition. This is the definition of today: '}
        <code title={hash}>{hash.slice(0, 12)}</code>
      </p>
      {turns.previous === null && <p class="muted">This was the first turn of the agent.</p>}
      <label class="compare">
        Compare with
        <select
          value={other ?? ''}
          onChange={({ currentTarget: { value } }) =>
            setOther(value === '' ? null : value === 'next' ? value : Number(value))
          }
        >
          <Options turns={turns} />
        </select>
      </label>
      {other !== null && <Compared {...{ id, agent, index, now, turns, other }} key={other} />}
    </section>
  );
}

const MOST_TURNS = 200;

function Options({ turns: { own, previous, others } }: { readonly turns: TurnsAround }) {
  const shown = others.filter((start, place) => start === previous || place < MOST_TURNS);
  const labelOf = (start: TurnStart) =>
    [
      start === previous ? 'the previous turn' : start.resumed ? 'the resumed turn' : 'the turn',
      `at entry ${start.index}, ${timeOf(start.createdAt)}`,
      start.definition && start.definition === own?.definition ? '(same definition)' : '',
    ].join(' ');
  return (
    <>
      {previous === null && <option value="">nothing</option>}
      <option value="next">the next turn (the configuration of today)</option>
      {shown.map((start) => (
        <option key={start.index} value={start.index}>
          {labelOf(start)}
        </option>
      ))}
    </>
  );
}

function timeOf(iso: string): string {
  const day = when(iso, Date.now());
  const time = clockTime(iso);
  return day === time || day === 'now' ? time : `${day} ${time}`;
}

const MOST_OPEN_LINES = 60;

interface ComparedProps extends DefinitionProps {
  readonly turns: TurnsAround;
  readonly other: Other;
}

interface Comparison {
  readonly parts: readonly PartDifference[];
  /** The other definition. */
  readonly there: ReportedDefinition | null;
}

function Compared(props: ComparedProps) {
  const { answer: compared, fault } = useRequest(
    () => compare(props),
    [props.id, props.agent, props.index, props.other],
  );
  if (fault) return <p class="fault">{fault}</p>;
  if (!compared) return <p class="muted">…</p>;
  const { parts, there } = compared;
  const isPrevious = props.other === props.turns.previous?.index;
  let lines = 0;
  /** The first parts, as long as they are short. */
  const isOpen = ({ hunks = [] }: PartDifference) => {
    lines += hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
    return lines <= MOST_OPEN_LINES;
  };
  const named =
    props.other === 'next' ? (
      'the next turn'
    ) : (
      <>
        {isPrevious ? 'the previous turn, at entry' : 'the turn at entry'}{' '}
        <EntryLinks entries={[props.other]} />
      </>
    );
  return (
    <>
      {props.other !== 'next' && there?.recorded === false && (
        <p class="muted">That turn recorded no definition: the definition of today is shown in its place.</p>
      )}
      {parts.length === 0 ? (
        <p>Same definition as {named}.</p>
      ) : (
        <p class="changed-note">
          {isPrevious ? 'Changed since' : 'Differs from'} {named}: {parts.map(({ part }) => part).join(', ')}
        </p>
      )}
      <ul class="part-changes">
        {parts.map((part) => (
          <li key={part.part} class={part.op}>
            <Fold
              isOpen={isOpen(part)}
              summary={
                <>
                  <span class="sign" aria-hidden="true" />
                  <span class="kind">{part.part}</span>
                  <span class="muted">{part.op === 'gone' ? 'removed' : part.op}</span>
                </>
              }
            >
              {part.hunks ? (
                <Hunks hunks={part.hunks} />
              ) : (
                <p class="muted">The text is too large to be shown here.</p>
              )}
            </Fold>
          </li>
        ))}
      </ul>
    </>
  );
}

/** A query string has room for so many names. */
const MOST_PARTS = 100;

/** The older definition comes first. Equal hashes in the log need no request. */
async function compare({
  id,
  agent,
  index,
  now,
  turns: { own, others },
  other,
}: ComparedProps): Promise<Comparison> {
  const start = others.find((one) => one.index === other);
  if (start?.definition && start.definition === own?.definition) return { parts: [], there: null };
  const at = other === 'next' ? null : other;
  const there = await requests.view(id, agent, at);
  const differ = diffDefinitions(now.report.definition, there.report.definition);
  if (differ.length === 0) return { parts: [], there: there.report.definition };
  const texts = differ.slice(0, MOST_PARTS).map(({ part }) => part);
  const [here, elsewhere] = (
    await Promise.all([requests.view(id, agent, index, texts), requests.view(id, agent, at, texts)])
  ).map(({ report }) => report.definition) as [ReportedDefinition, ReportedDefinition];
  const isOlder = at !== null && at < index;
  const parts = isOlder ? diffDefinitions(elsewhere, here) : diffDefinitions(here, elsewhere);
  return { parts, there: elsewhere };
}

function Hunks({ hunks }: { readonly hunks: NonNullable<PartDifference['hunks']> }) {
  return (
    <div class="diff">
      {hunks.map(({ before, after, lines }) => (
        <div key={`${before} ${after}`} class="hunk">
          {hunks.length > 1 && (
            <p class="muted from">
              line {before} → {after}
            </p>
          )}
          <Lines lines={markedLines(lines)} />
        </div>
      ))}
    </div>
  );
}
