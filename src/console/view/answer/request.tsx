import type { ExplainedRequest } from '../../../conversation/index.ts';
import { count, money, oneLine } from '../../model/format.ts';
import { segmentsOf } from '../../model/why.ts';
import { Facts, Fold } from '../parts/parts.tsx';
import { EntryLinks, messageText } from './entry-links.tsx';

/** The request of one answer: its tokens, its facts, what was left out, and its messages. */

export function Window({ request }: { readonly request: ExplainedRequest }) {
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

export function RequestFacts({ request: { report } }: { readonly request: ExplainedRequest }) {
  const { sent, model, cost, status, note, fault, tools } = report;
  const { call } = cost;
  return (
    <section>
      <Facts
        class="facts"
        facts={[
          ['Model', model],
          ['Sent', SENT[`${sent}`]],
          [
            'This call',
            call && `${count(call.inputTokens)} in, ${count(call.outputTokens)} out${costOf(call)}`,
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

function costOf({ usd }: NonNullable<ExplainedRequest['report']['cost']['call']>): string {
  if (usd === undefined) return ', cost unknown';
  return usd > 0 ? `, ${money(usd)}` : '';
}

const FATES = { summed_up: 'summed up', left_out: 'left out', empty: 'an answer without text' } as const;

export function LeftOut({ request: { report } }: { readonly request: ExplainedRequest }) {
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
            <EntryLinks entries={shortened} /> are shown as previews
          </li>
        )}
        {waiting.length > 0 && (
          <li>
            <EntryLinks entries={waiting} /> follow in a later call
          </li>
        )}
      </ul>
    </section>
  );
}

export function Parts({ request: { messages, report } }: { readonly request: ExplainedRequest }) {
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
                      <span class="muted preview">{oneLine(messageText(message), 80)}</span>
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
