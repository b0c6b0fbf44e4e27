import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { parseJson } from '../../../kernel/json.ts';
import { requests } from '../../api/requests.ts';
import { type ForkPoint, forkPoint } from '../../model/answer.ts';
import type { WhatIf, WhatIfResult, WhatIfRun, WhatIfTurn } from '../../model/answers.ts';
import { argumentsBlock, costText, count, duration, shortLine } from '../../model/format.ts';
import { nameOf, opened, version } from '../../state/conversation.ts';
import { titleOf } from '../../state/conversations.ts';
import { useKeptText, WHAT_IF } from '../../state/kept.ts';
import { go, jumpTo, linkTo, openToWrite, type Panel } from '../../state/route.ts';
import { attempt, isOperator, models, refused, sender } from '../../state/session.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { Button, LinkButton, onText, PanelForm, Select } from '../parts/controls.tsx';
import { useRequest, useTimeout } from '../parts/hooks.ts';
import { Avatar, EntryLinks, Fold, IconButton, Tabs, When } from '../parts/parts.tsx';
import { Scrolled } from '../parts/text.tsx';
import { UnknownEntry } from '../parts/unknown.tsx';
import { type OfAnswer, Why } from './why.tsx';

/** The panel beside the thread about one entry: its request, what if, or a copy of the conversation from it. */
export function AnswerPanel({ id, panel }: { readonly id: string; readonly panel: Panel }) {
  void version.value;
  const heading = useRef<HTMLHeadingElement>(null);
  const { kind, index } = panel;
  useEffect(() => {
    const field = heading.current?.closest('aside')?.querySelector<HTMLInputElement>('.fork input');
    (field ?? heading.current)?.focus();
    field?.select();
  }, [index, kind]);
  const entry = opened.value?.thread.entries[index];
  useEffect(() => {
    if (entry && !isInSight(opened.value?.thread.placeOf(index) ?? -1)) jumpTo(index, { keepFocus: true });
  }, [index, entry?.id]);
  const agent = entry?.type === 'message' && entry.author.kind === 'agent' ? entry.author.id : null;
  return (
    <aside class="answer-panel column" aria-labelledby="answer">
      <header class="head abreast">
        {agent && <Avatar id={agent} />}
        <h2 id="answer" tabIndex={-1} ref={heading}>
          {KINDS[kind][1](agent ? nameOf(agent) : 'it')}
        </h2>
        <IconButton icon="close" aria-label="Close" onClick={() => go(linkTo.conversation(id))} />
      </header>
      {isOperator.value && agent && (
        <Tabs
          label="About this answer"
          tabs={(['why', 'what-if', 'fork'] as const).map((one) => [
            linkTo.panel(id, { index, kind: one }),
            KINDS[one][0],
            one === kind,
          ])}
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
  const { top, bottom } = document.querySelector(`[data-index="${place}"]`)?.getBoundingClientRect() ?? {};
  return top !== undefined && bottom !== undefined && bottom > 0 && top < innerHeight;
}

/** Of each kind: its tab, and its heading about the answer of an agent. */
const KINDS: Readonly<Record<Panel['kind'], readonly [tab: string, heading: (name: string) => string]>> = {
  why: ['Why?', (name) => `Why did ${name} say that?`],
  'what-if': ['What if?', () => 'What if?'],
  fork: ['Fork from here', () => 'Fork from here'],
};

const OUTCOMES: Readonly<Record<ForkPoint['outcome'], string>> = {
  answers: 'Messages that have no answer at that entry are answered again in the copy.',
  aborts: 'The turn of this answer continues after that entry; in the copy it is stopped.',
  waits: 'The copy then waits for a message.',
};

const LONGEST_TITLE = 200;
const ENDING = ' (copy)';

function Fork({ id, index }: { readonly id: string; readonly index: number }) {
  const { at, outcome } = forkPoint(opened.value?.thread.entries ?? [], index);
  const [as] = useState(() => crypto.randomUUID().replaceAll('-', '')); // kept: a repeated fork continues the first one
  const original = titleOf(id) ?? opened.value?.thread.title ?? id;
  const [title, setTitle] = useState(`${original.slice(0, LONGEST_TITLE - ENDING.length)}${ENDING}`);
  if (!isOperator.value)
    return <p class="muted aside text-small">{refused('not fork a conversation', 'operate')}</p>;
  const fork = async () => {
    await requests.fork(id, { as, at, ...sender() });
    await requests.label(as, { title: title.trim(), ...sender() });
    openToWrite(as);
  };
  return (
    <PanelForm class="fork account text-small" action="Fork" isDisabled={title.trim() === ''} onSubmit={fork}>
      <p>
        A new conversation begins with a copy of the entries{' '}
        <EntryLinks entries={at === 0 ? [0] : [0, at]} isRange />. This conversation does not change, and no
        tool runs again. {OUTCOMES[outcome]}
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

const MOST_LISTED = 10;

function WhatIfs({ id, agent, index }: OfAnswer) {
  const place = useRef<HTMLDivElement>(null);
  const [shown, show] = useState<string>();
  const [polls, setPolls] = useState(0);
  const { answer } = useRequest(() => requests.whatIfs(id), [id, agent, shown, polls]); // the form shows a refusal
  const earlier = answer?.whatIfs.filter((one) => one.agent === agent) ?? [];
  useTimeout(() => setPolls(polls + 1), earlier.every(isOver) ? null : POLL_MS, [answer]);
  const { answer: view } = useRequest(() => requests.view(id, agent, index, ['persona']), [id, agent, index]);
  const written = view && String(JSON.parse(view.report.definition.texts?.persona ?? '""'));
  useLayoutEffect(() => {
    if (shown !== undefined) place.current?.querySelector<HTMLElement>(shown ? 'button' : 'select')?.focus();
  }, [shown]);
  if (!isOperator.value)
    return <p class="muted aside text-small">{refused('not start a what-if', 'operate')}</p>;
  return (
    <div class="account text-small" ref={place}>
      {shown && (
        <>
          <p>
            <LinkButton onClick={() => show('')}>Try another change</LinkButton>
          </p>
          <Result key={shown} id={id} whatIf={shown} />
        </>
      )}
      <div hidden={Boolean(shown)}>
        <WhatIfForm {...{ id, agent, index, written }} recorded={view?.report.model ?? ''} onStart={show} />
        {earlier.length > 0 && (
          <section>
            <h3>Earlier what-ifs of this agent</h3>
            <ul class="plain">
              {earlier.slice(0, MOST_LISTED).map((one) => (
                <li key={one.id}>
                  <LinkButton onClick={() => show(one.id)}>
                    {changeOf(one)}
                    {newLine(one, written)}
                  </LinkButton>{' '}
                  <span class="muted">
                    {one.state}, <When at={one.startedAt} />
                  </span>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </div>
  );
}

/** The first line of its persona that the recorded one does not have. */
function newLine({ change: { persona } }: WhatIf, recorded: string | null): string {
  const known = recorded?.split('\n') ?? [];
  const line = persona?.split('\n').find((one) => one.trim() !== '' && !known.includes(one));
  return line === undefined ? '' : `: “${shortLine(escapeHidden(line), 60)}”`;
}

const MOST_RUNS = 20;
const STARTS = [
  ['turn', 'the first request of the turn'],
  ['answer', 'the request of this answer'],
] as const;
const UNCHANGED = { model: '', persona: null as string | null, runs: 1, start: 'turn' as WhatIf['start'] };

interface WhatIfFormProps extends OfAnswer {
  readonly recorded: string;
  readonly written: string | null;
  readonly onStart: (whatIf: string) => void;
}

function WhatIfForm({ id, agent, index, recorded, written, onStart }: WhatIfFormProps) {
  const [kept, keep] = useKeptText(`${index}${WHAT_IF}`, JSON.stringify(UNCHANGED));
  const form = { ...UNCHANGED, ...(parseJson(kept) as Partial<typeof UNCHANGED>) };
  const { model, persona, runs, start } = form;
  const edit = (part: Partial<typeof form>) => keep(JSON.stringify({ ...form, ...part }));
  const submit = async () => {
    const change = { ...(model !== '' && { model }), ...(persona !== null && { persona }) };
    onStart((await requests.whatIf(id, { agent, at: index, start, runs, ...change, ...sender() })).id);
  };
  return (
    <PanelForm action="Start" isDisabled={model === '' && persona === null} onSubmit={submit}>
      <p>
        What would another model or another persona have answered? Change one of them to start. The
        conversation does not change, and no tool runs.
      </p>
      <label>
        Model
        <Select
          value={model}
          options={[
            ['', recorded ? `unchanged (${recorded})` : 'unchanged'],
            ...models.value.filter((name) => name !== recorded),
          ]}
          onChoose={(name) => edit({ model: name })}
        />
      </label>
      <label>
        Persona{persona !== null && ' (edited)'}
        <textarea
          rows={8}
          disabled={written === null}
          value={persona ?? written ?? ''}
          onInput={onText((text) => edit({ persona: text === written ? null : text }))}
        />
      </label>
      <div class="pair stacked-3">
        <label>
          Begin at
          <Select value={start} options={STARTS} onChoose={(place) => edit({ start: place })} />
        </label>
        <label>
          Runs of each side
          <input
            type="number"
            min={1}
            max={MOST_RUNS}
            required
            value={runs}
            onInput={(event) => edit({ runs: event.currentTarget.valueAsNumber || 1 })}
          />
        </label>
      </div>
      <p class="muted">
        {runs === 1 ? '1 run' : `${runs} runs`} with the change and as many without it, for comparison. Each
        model call is paid. The daemon keeps the results until it stops.
      </p>
    </PanelForm>
  );
}

function changeOf({ change: { model, persona } }: WhatIf): string {
  const changes = [model !== null && `model ${model}`, persona !== null && 'another persona'];
  return changes.filter(Boolean).join(' and ');
}

const POLL_MS = 1_000;
const isOver = ({ state }: WhatIf) => state !== 'queued' && state !== 'running';

function Result({ id, whatIf }: { readonly id: string; readonly whatIf: string }) {
  const [polls, setPolls] = useState(0);
  const { answer: result, fault } = useRequest(() => requests.whatIfResult(id, whatIf), [id, whatIf, polls]);
  useTimeout(() => setPolls(polls + 1), result && !isOver(result) ? POLL_MS : null, [result]);
  return (
    <>
      {fault && <p class="fault">{fault}</p>}
      {!fault && !result && <p class="muted">…</p>}
      {result && <Progress id={id} result={result} />}
      {result?.results.map((turn) => (
        <Turn key={turn.at} turn={turn} change={changeOf(result)} />
      ))}
      {result && result.change.persona !== null && (
        <Fold summary="the persona that was tried">
          <Scrolled text={result.change.persona} />
        </Fold>
      )}
    </>
  );
}

function Progress({ id, result }: { readonly id: string; readonly result: WhatIfResult }) {
  const { state, reason, done, total } = result;
  return (
    <section>
      <h3>What if: {changeOf(result)}</h3>
      <p role="status">
        {state}
        {reason !== undefined && ` (${reason})`}, {count(done)} of {count(total)} runs
      </p>
      {!isOver(result) && (
        <p class="running">
          <progress value={done} max={total} aria-label="Runs that ended" />
          <Button onClick={() => void attempt(() => requests.whatIfStop(id, result.id))}>Stop</Button>
        </p>
      )}
    </section>
  );
}

function Turn({ turn, change }: { readonly turn: WhatIfTurn; readonly change: string }) {
  const { at, recorded, control, changed, failure, truncated } = turn;
  return (
    <section>
      <h3>
        The turn of entry <EntryLinks entries={[at]} />
      </h3>
      {failure && <p class="fault">{failure.message}</p>}
      {truncated && <p class="muted">The texts are cut, because they are too large for one answer.</p>}
      <div class="sides stacked-3">
        <Side title="Recorded" runs={[recorded]} />
        <Side title="Unchanged" runs={control} />
        <Side title={change} runs={changed} />
      </div>
    </section>
  );
}

/** What was recorded has no verdict. */
type Outcome = WhatIfTurn['recorded'] & Partial<Pick<WhatIfRun, 'verdict' | 'message' | 'duration'>>;

function Side({ title, runs }: { readonly title: string; readonly runs: readonly Outcome[] }) {
  return (
    <div class="side">
      <h4 class="breaks">{title}</h4>
      {runs.length === 0 && <p class="muted">no run yet</p>}
      {runs.map(({ content, toolCalls, used, verdict, message, duration: took }, place) => (
        <div key={place} class="outcome frame">
          {verdict && <p class={`verdict text-tiny ${verdict}`}>{VERDICTS[verdict]}</p>}
          {message && <p class="fault">{message}</p>}
          {content && <Markdown text={content} />}
          {toolCalls.map((call, nth) => (
            <pre key={nth}>
              ⚙ {escapeHidden(call.name)} {argumentsBlock(call.arguments)}
            </pre>
          ))}
          <p class="meta">
            {count(used.inputTokens)} in, {count(used.outputTokens)} out ·{' '}
            {costText(used.usd, used.unpricedCalls)}
            {took !== undefined && ` · ${duration(took)}`}
          </p>
        </div>
      ))}
    </div>
  );
}

const VERDICTS: Readonly<Record<WhatIfRun['verdict'], string>> = {
  same: 'same as recorded',
  different: 'different answer',
  diverged: 'another call, which has no recorded result',
  failed: 'failed',
  interrupted: 'interrupted',
};
