import { useState } from 'preact/hooks';
import type { Difference, ExplainedRequest, PartDifference } from '../../../conversation/index.ts';
import { diffDefinitions, diffViews } from '../../../conversation/view/view-diff.ts';
import { requests } from '../../api/requests.ts';
import type { TurnStart, TurnsAround } from '../../model/answer.ts';
import { previousAnswer, segmentsOf, turnsAround } from '../../model/answer.ts';
import { clockTime, costText, count, shortLine, when } from '../../model/format.ts';
import { opened } from '../../state/conversation.ts';
import { Select } from '../parts/controls.tsx';
import { useRequest } from '../parts/hooks.ts';
import { EntryLinks, Facts, Fold } from '../parts/parts.tsx';
import { Lines } from '../parts/text.tsx';

export type OfAnswer = { readonly id: string; readonly agent: string; readonly index: number };

export function Why({ id, index, agent }: OfAnswer) {
  const previous = previousAnswer(opened.value?.thread.entries ?? [], index, agent);
  const { answer, fault } = useRequest(
    () =>
      Promise.all([
        requests.view(id, agent, index),
        previous === null ? null : requests.view(id, agent, previous),
      ]),
    [id, index, agent],
  );
  if (fault) return <p class="fault aside text-small">{fault}</p>;
  if (!answer) return <p class="muted aside text-small">…</p>;
  const [now, before] = answer;
  return (
    <div class="account text-small">
      <Window request={now} />
      <RequestFacts request={now} />
      <LeftOut request={now} />
      <DefinitionSection id={id} agent={agent} index={index} now={now} />
      {previous === null || before === null ? (
        <section>
          <h3>Messages that changed</h3>
          <p class="muted">This was its first call.</p>
        </section>
      ) : (
        <Changes {...{ now, before, previous }} />
      )}
      <Messages request={now} />
    </div>
  );
}

type OfRequest = { readonly request: ExplainedRequest };

type ChangesProps = { now: ExplainedRequest; before: ExplainedRequest; previous: number };

function Changes({ now, before, previous }: ChangesProps) {
  const changes = diffViews(before, now).filter(({ op }) => op !== 'same');
  return (
    <section>
      <Fold isOpen summary={<h3>Messages that changed since its previous answer ({changes.length})</h3>}>
        <p class="muted">
          compared with the request for entry <EntryLinks entries={[previous]} />
        </p>
        <ul class="changes stacked-1">
          {changes.map((change, place) => (
            <Change key={place} change={change} />
          ))}
        </ul>
      </Fold>
    </section>
  );
}

function Change({ change }: { readonly change: Difference }) {
  const placed = 'after' in change ? change.after : change.before;
  return (
    <li class={`stacked-1 breaks ${change.op}`}>
      <span class="sign" aria-hidden="true" />
      <span>
        <span class="unseen">{change.op}: </span>
        <strong>{placed.part?.kind ?? placed.message.role}</strong>{' '}
        <EntryLinks entries={placed.part?.entries ?? []} />
        <span class="muted"> {shortLine(messageText(placed.message), 140)}</span>
      </span>
    </li>
  );
}

function Window({ request }: OfRequest) {
  const segments = segmentsOf(request);
  const { tokens, window } = request.report;
  return (
    <section aria-label="Tokens">
      <p class="figure">
        <strong>{count(tokens)}</strong> of {count(window)} tokens
      </p>
      <div class="bar" aria-hidden="true">
        {segments.map(({ group, share }) => (
          <span
            key={group}
            class="segment"
            style={{ flexGrow: String(share), ...groupStyle(group) }}
            title={group}
          />
        ))}
      </div>
      <ul class="legend wraps text-tiny">
        {segments.map(({ group, tokens: own }) => (
          <li key={group} class="inline">
            <span class="dot" style={groupStyle(group)} aria-hidden="true" />
            {group}
            <span class="muted">{count(own)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const GROUPS: Readonly<Record<string, string>> = {
  tools: 'oklch(62% 0.05 255)',
  prefix: 'oklch(58% 0.09 255)',
  'run-context': 'oklch(62% 0.09 285)',
  summary: 'oklch(66% 0.1 325)',
  history: 'oklch(64% 0.1 165)',
  'away-block': 'oklch(72% 0.11 80)',
  marker: 'oklch(72% 0.11 80)',
  trigger: 'oklch(64% 0.14 35)',
  turn: 'oklch(64% 0.09 205)',
  'for the answer': 'repeating-linear-gradient(135deg, var(--muted) 0 2px, transparent 2px 5px)',
  free: 'var(--line)',
};

/** Merged messages have joined names; the first name determines the colour. */
const groupStyle = (group: string) => ({
  background: GROUPS[group.split('+')[0] ?? ''] ?? String(GROUPS.history),
});

function RequestFacts({ request: { report } }: OfRequest) {
  const { sent, model, cost, status, note, fault, tools } = report;
  const { call } = cost;
  return (
    <section>
      <Facts
        class="facts text-small"
        facts={[
          ['Model', model],
          ['Sent', SENT[`${sent}`]],
          [
            'This call',
            call &&
              `${count(call.inputTokens)} in, ${count(call.outputTokens)} out, ${costText(call.usd ?? 0, Number(call.usd === undefined))}`,
          ],
          ['Tools', tools.length > 0 && tools.join(', ')],
          ['The view', status !== 'not_needed' && status.replace('_', ' ')],
        ]}
      />
      {note && <p class="muted">{note}</p>}
      {fault && <p class="fault">{fault.message}</p>}
    </section>
  );
}

const SENT: Readonly<Record<string, string>> = {
  true: 'yes: the log has the hash of these bytes',
  false:
    'other bytes: the turn recorded no definition and the configuration changed, or an older version of Parley built the request',
  unknown: 'unknown: the log has no hash for this place',
};

const FATES = { summed_up: 'summed up', left_out: 'left out', empty: 'an answer without text' } as const;

function LeftOut({ request: { report } }: OfRequest) {
  const { left_out_as: gone, shortened, without_files: named, unseen_files: unseen = [], waiting } = report;
  const all: (readonly [what: string, entries: readonly number[], how: string])[] = [
    ['', shortened, 'are shown as previews'],
    ['Files of', named, 'are named, no longer shown'],
    ...unseen.map((one) => [`The file ${one.name} of`, [one.entry], `was not shown: ${one.why}`] as const),
    ['', waiting, 'follow in a later call'],
  ];
  const others = all.filter(([, entries]) => entries.length > 0);
  return (
    <section>
      <h3>What was left out</h3>
      {gone.length + others.length === 0 && <p class="muted">Nothing. The agent got its complete view.</p>}
      <ul class="plain">
        {gone.map(({ from, to, how, by }) => (
          <li key={`${from} ${to}`}>
            <EntryLinks entries={from === to ? [from] : [from, to]} isRange /> {FATES[how]}
            {by !== undefined && [' in ', <EntryLinks key={by} entries={[by]} />]}
          </li>
        ))}
        {others.map(([what, entries, how]) => (
          <li key={what + how}>
            {what} <EntryLinks entries={entries} /> {how}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Messages({ request: { messages, report } }: OfRequest) {
  const most = Math.max(1, ...report.parts.map(({ tokens }) => tokens));
  return (
    <section>
      <Fold isOpen summary={<h3>Messages of the request, in order</h3>}>
        <ol class="parts">
          {messages.map((message, place) => {
            const part = report.parts[place];
            return (
              <li key={place}>
                <Fold
                  summary={
                    <>
                      <span class="dot" style={groupStyle(part?.kind ?? '')} aria-hidden="true" />
                      <span class="kind">{part?.kind ?? message.role}</span>
                      <span class="muted preview">{shortLine(messageText(message), 80)}</span>
                      <span class="meta">{count(part?.tokens ?? 0)}</span>
                    </>
                  }
                >
                  <p class="muted">
                    role {message.role} <EntryLinks entries={part?.entries ?? []} />
                  </p>
                  <pre>{messageText(message)}</pre>
                </Fold>
                <span
                  class="weight"
                  style={{ width: `${((part?.tokens ?? 0) / most) * 100}%`, ...groupStyle(part?.kind ?? '') }}
                  aria-hidden="true"
                />
              </li>
            );
          })}
        </ol>
      </Fold>
    </section>
  );
}

function messageText(message: ExplainedRequest['messages'][number]): string {
  const calls = (message.tool_calls ?? []).map(
    (call) => `⚙ ${call.function.name} ${call.function.arguments}`,
  );
  return [message.content ?? '', ...calls].filter((text) => text !== '').join('\n');
}

type DefinitionProps = OfAnswer & { readonly now: ExplainedRequest };

/** The index of a `turn-started`, or the definition of the agent's next turn. */
type Other = number | 'next';

/** Which definition the turn ran with, and the changed lines against another turn; by default the previous one. */
function DefinitionSection({ id, agent, index, now }: DefinitionProps) {
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
      <label class="compare muted stacked-1">
        Compare with
        <Select
          value={String(other ?? '')}
          options={otherTurns(turns)}
          onChoose={(value) => setOther(value === '' ? null : value === 'next' ? value : Number(value))}
        />
      </label>
      {other !== null && <Compared {...{ id, agent, index, now, turns, other }} key={other} />}
    </section>
  );
}

const MOST_TURNS = 200;

function otherTurns({ own, previous, others }: TurnsAround): (readonly [string, string])[] {
  const shown = others.filter((start, place) => start === previous || place < MOST_TURNS);
  const labelOf = (start: TurnStart) =>
    [
      start === previous ? 'the previous turn' : start.resumed ? 'the resumed turn' : 'the turn',
      `at entry ${start.index}, ${timeOf(start.createdAt)}`,
      start.definition && start.definition === own?.definition ? '(same definition)' : '',
    ].join(' ');
  return [
    ...(previous === null ? [['', 'nothing'] as const] : []),
    ['next', 'the next turn (the configuration of today)'],
    ...shown.map((start) => [String(start.index), labelOf(start)] as const),
  ];
}

function timeOf(iso: string): string {
  const day = when(iso, Date.now());
  const time = clockTime(iso);
  return day === time || day === 'now' ? time : `${day} ${time}`;
}

const MOST_OPEN_LINES = 60;

type ComparedProps = DefinitionProps & { readonly turns: TurnsAround; readonly other: Other };

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
    props.other === 'next'
      ? 'the next turn'
      : [
          isPrevious ? 'the previous turn, at entry ' : 'the turn at entry ',
          <EntryLinks key="entry" entries={[props.other]} />,
        ];
  return (
    <>
      {props.other !== 'next' && there?.recorded === false && (
        <p class="muted">That turn recorded no definition: the definition of today is shown in its place.</p>
      )}
      {parts.length === 0 ? (
        <p>Same definition as {named}.</p>
      ) : (
        <p class="changed-note breaks">
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
                  <span class="kind breaks">{part.part}</span>
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
async function compare({ id, agent, index, now, turns, other }: ComparedProps) {
  const { own, others } = turns;
  const start = others.find((one) => one.index === other);
  if (start?.definition && start.definition === own?.definition) return { parts: [], there: null };
  const at = other === 'next' ? null : other;
  const there = await requests.view(id, agent, at);
  const differ = diffDefinitions(now.report.definition, there.report.definition);
  if (differ.length === 0) return { parts: [], there: there.report.definition };
  const texts = differ.slice(0, MOST_PARTS).map(({ part }) => part);
  const withTexts = async (of: number | null) =>
    (await requests.view(id, agent, of, texts)).report.definition;
  const [here, elsewhere] = await Promise.all([withTexts(index), withTexts(at)]);
  const isOlder = at !== null && at < index;
  const parts = isOlder ? diffDefinitions(elsewhere, here) : diffDefinitions(here, elsewhere);
  return { parts, there: elsewhere };
}

function Hunks({ hunks }: { readonly hunks: NonNullable<PartDifference['hunks']> }) {
  return (
    <div class="diff frame text-tiny">
      {hunks.map(({ before, after, lines }) => (
        <div key={`${before} ${after}`} class="hunk">
          {hunks.length > 1 && (
            <p class="muted from">
              line {before} → {after}
            </p>
          )}
          <Lines lines={lines} />
        </div>
      ))}
    </div>
  );
}
