import { useEffect, useRef, useState } from 'preact/hooks';
import type { Difference, ExplainedRequest } from '../../conversation/index.ts';
import { requests } from '../api/requests.ts';
import { count, money, oneLine } from '../model/format.ts';
import { changesOf, previousAnswer, segmentsOf } from '../model/why.ts';
import { nameOf, opened, version } from '../state/conversation.ts';
import { jumpTo } from '../state/jump.ts';
import { go, linkTo } from '../state/route.ts';
import { Avatar, Fold, Icon } from './parts.tsx';

/** "Why did it say that?": the exact request of an answer, and the changes since the previous one. */
export function WhyPanel({ id, index }: { readonly id: string; readonly index: number }) {
  void version.value;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [index]);
  const entry = opened.value?.thread.entries[index];
  const agent = entry?.type === 'message' && entry.author.kind === 'agent' ? entry.author.id : null;
  return (
    <aside class="why-panel" aria-labelledby="why">
      <header class="head">
        {agent && <Avatar id={agent} />}
        <h2 id="why" tabIndex={-1} ref={heading}>
          Why did {agent ? nameOf(agent) : 'it'} say that?
        </h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => go(linkTo.conversation(id))}>
          <Icon name="close" />
        </button>
      </header>
      {agent && <Account key={index} id={id} index={index} agent={agent} />}
    </aside>
  );
}

interface Loaded {
  readonly now: ExplainedRequest;
  readonly before: ExplainedRequest | null;
  readonly previous: number | null;
}

function Account({
  id,
  index,
  agent,
}: {
  readonly id: string;
  readonly index: number;
  readonly agent: string;
}) {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    const previous = previousAnswer(opened.value?.thread.entries ?? [], index, agent);
    const before = previous === null ? Promise.resolve(null) : requests.view(id, agent, previous);
    Promise.all([requests.view(id, agent, index), before]).then(
      ([now, earlier]) => setLoaded({ now, before: earlier, previous }),
      (error: Error) => setFault(error.message),
    );
  }, [id, index, agent]);
  if (fault) return <p class="fault aside">{fault}</p>;
  if (!loaded) return <p class="muted aside">…</p>;
  return (
    <div class="account">
      <Window request={loaded.now} />
      <Facts request={loaded.now} />
      <LeftOut request={loaded.now} />
      <Changes loaded={loaded} />
      <Parts request={loaded.now} />
    </div>
  );
}

function Window({ request }: { readonly request: ExplainedRequest }) {
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
            class={`segment g-${groupClass(group)}`}
            style={{ flexGrow: String(share) }}
            title={group}
          />
        ))}
      </div>
      <ul class="legend">
        {segments.map(({ group, tokens: own }) => (
          <li key={group}>
            <span class={`dot g-${groupClass(group)}`} aria-hidden="true" />
            {group}
            <span class="muted">{count(own)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const GROUPS = [
  'tools',
  'prefix',
  'run-context',
  'summary',
  'history',
  'away-block',
  'marker',
  'trigger',
  'turn',
];

/** Merged messages have joined names; the first name determines the colour. */
function groupClass(group: string): string {
  if (group === 'free') return 'free';
  if (group === 'for the answer') return 'reserved';
  const first = group.split('+')[0] ?? '';
  return GROUPS.includes(first) ? first : 'history';
}

function Facts({ request: { report } }: { readonly request: ExplainedRequest }) {
  const { sent, model, cost, status, note, fault, tools } = report;
  const call = cost.call;
  return (
    <section>
      <dl class="facts">
        <dt>Model</dt>
        <dd>{model}</dd>
        <dt>These very bytes</dt>
        <dd>
          {sent === true
            ? 'were sent: the log has their hash'
            : sent === 'unknown'
              ? 'may have been sent: the log has no hash'
              : 'differ from what was sent: the configuration has changed, or an older version of Parley sent them'}
        </dd>
        {call && (
          <>
            <dt>This call</dt>
            <dd>
              {count(call.inputTokens)} in, {count(call.outputTokens)} out
              {call.usd === undefined ? ', cost unknown' : call.usd > 0 ? `, ${money(call.usd)}` : ''}
            </dd>
          </>
        )}
        {tools.length > 0 && (
          <>
            <dt>Tools</dt>
            <dd>{tools.join(', ')}</dd>
          </>
        )}
        {status !== 'not_needed' && (
          <>
            <dt>The view</dt>
            <dd>{status.replace('_', ' ')}</dd>
          </>
        )}
      </dl>
      {note && <p class="muted">{note}</p>}
      {fault && <p class="fault">{fault.message}</p>}
    </section>
  );
}

const FATES = { summed_up: 'summed up', left_out: 'left out', empty: 'an answer without a word' } as const;

function LeftOut({ request: { report } }: { readonly request: ExplainedRequest }) {
  const { left_out_as: gone, shortened, waiting } = report;
  return (
    <section>
      <h3>What was left out</h3>
      {gone.length + shortened.length + waiting.length === 0 && (
        <p class="muted">Nothing. The agent got its complete view.</p>
      )}
      <ul class="plain">
        {gone.map(({ from, to, how, by }) => (
          <li key={`${from} ${to}`}>
            <EntryLinks entries={from === to ? [from] : [from, to]} isRange /> {FATES[how]}
            {by !== undefined && (
              <>
                {' '}
                in <EntryLinks entries={[by]} />
              </>
            )}
          </li>
        ))}
        {shortened.length > 0 && (
          <li>
            <EntryLinks entries={shortened} /> shown as previews
          </li>
        )}
        {waiting.length > 0 && (
          <li>
            <EntryLinks entries={waiting} /> come with a later call
          </li>
        )}
      </ul>
    </section>
  );
}

function Changes({ loaded: { now, before, previous } }: { readonly loaded: Loaded }) {
  const changes = before ? changesOf(before, now).filter(({ op }) => op !== 'same') : [];
  if (previous === null) {
    return (
      <section>
        <h3>What changed</h3>
        <p class="muted">This was its first call.</p>
      </section>
    );
  }
  return (
    <section>
      <Fold isOpen summary={<h3>What changed since its answer before ({changes.length})</h3>}>
        <p class="muted">
          compared with the request behind <EntryLinks entries={[previous]} />
        </p>
        <ul class="changes">
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
    <li class={change.op}>
      <span class="sign" aria-hidden="true" />
      <span>
        <span class="unseen">{change.op}: </span>
        <strong>{placed.part?.kind ?? placed.message.role}</strong>{' '}
        <EntryLinks entries={placed.part?.entries ?? []} />
        <span class="muted"> {oneLine(wordsOf(placed.message), 140)}</span>
      </span>
    </li>
  );
}

function Parts({ request: { messages, report } }: { readonly request: ExplainedRequest }) {
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
                      <span class={`dot g-${groupClass(part?.kind ?? '')}`} aria-hidden="true" />
                      <span class="kind">{part?.kind ?? message.role}</span>
                      <span class="muted preview">{oneLine(wordsOf(message), 80)}</span>
                      <span class="meta">{count(part?.tokens ?? 0)}</span>
                    </>
                  }
                >
                  <p class="muted">
                    role {message.role} <EntryLinks entries={part?.entries ?? []} />
                  </p>
                  <pre>{wordsOf(message)}</pre>
                </Fold>
                <span
                  class={`weight g-${groupClass(part?.kind ?? '')}`}
                  style={{ width: `${((part?.tokens ?? 0) / most) * 100}%` }}
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

function wordsOf(message: ExplainedRequest['messages'][number]): string {
  const calls = (message.tool_calls ?? []).map(
    (call) => `⚙ ${call.function.name} ${call.function.arguments}`,
  );
  return [message.content ?? '', ...calls].filter((text) => text !== '').join('\n');
}

const MOST_LINKS = 12;

function EntryLinks({
  entries,
  isRange,
}: {
  readonly entries: readonly number[];
  readonly isRange?: boolean;
}) {
  if (entries.length === 0) return null;
  const shown = entries.slice(0, MOST_LINKS);
  return (
    <span class="entry-links">
      {shown.map((index, place) => (
        <span key={index}>
          {place > 0 && (isRange ? ' to ' : ' ')}
          <button type="button" class="link" onClick={() => jumpTo(index)} aria-label={`Show entry ${index}`}>
            {index}
          </button>
        </span>
      ))}
      {entries.length > shown.length && <span class="muted"> and {entries.length - shown.length} more</span>}
    </span>
  );
}
