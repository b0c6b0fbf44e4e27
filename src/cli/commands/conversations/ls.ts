import type { Command } from 'commander';
import type { ConversationSummary } from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { ageText, waitText } from '../../render/activity.ts';
import { money } from '../../render/cost.ts';
import { renderTable } from '../../render/table.ts';

const HEADINGS = [
  ...['ID', 'TITLE', 'PHASE', 'MODE', 'TALKING', 'STATUS', 'WAITS FOR'],
  ...['LENGTH', 'TOKENS', 'USD', 'UPDATED'],
];
/** Longer lists are cut: `parley status` has all. */
const SHOWN_WAITS = 2;

export function addLs(program: Command, act: Act): void {
  program
    .command('ls')
    .description('list the conversations')
    .action((_options: object, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const rows: ConversationSummary[] = [];
          const unanswered = new Set<string>();
          let after: string | null | undefined;
          do {
            const page = await client.request('conversations', after ? { after } : {});
            rows.push(...page.conversations);
            for (const daemon of page.incomplete ?? []) unanswered.add(daemon);
            after = page.next;
          } while (after);
          if (context.json) for (const row of rows) context.value(row);
          else if (rows.length === 0) {
            context.note(`no conversations yet: start one with \`${context.command('chat')}\``);
          } else
            context.line(
              renderTable(
                HEADINGS,
                rows.map((row) => cells(row, Date.now())),
                context.palette.dim,
              ),
            );
          if (unanswered.size > 0) {
            const daemons = [...unanswered].join(', ');
            context.note(`the list may be incomplete or stale: no answer from daemon ${daemons}`);
          }
          return 0;
        }),
      ),
    );
}

function cells(row: ConversationSummary, now: number): string[] {
  const updated = row.updatedAt.slice(0, 16).replace('T', ' ');
  const { id, title, phase, mode, activeAgent, length, tokens, usd, unpricedCalls } = row;
  const used = [
    tokens === undefined ? '-' : String(tokens),
    usd === undefined ? '-' : money(usd, unpricedCalls),
  ];
  const talking = activeAgent ?? '-';
  const state = [phase, mode, talking, status(row), waitsFor(row, now)];
  return [id, title ?? '-', ...state, String(length), ...used, updated];
}

/** The first that applies: running turns, waiting ones, stopped agents with work, limited ones, failed last turns. */
function status({
  running,
  waiting,
  limited = [],
  stopped = [],
  activity = [],
}: ConversationSummary): string {
  if (running.length > 0) return `${running.join(', ')} at work`;
  if (waiting.length > 0) return `${waiting.join(', ')} waiting`;
  if (stopped.length > 0) return `${stopped.join(', ')} ${stopped.length === 1 ? 'is' : 'are'} stopped`;
  if (limited.length > 0) return `${limited.join(', ')} limited`;
  const failed = activity.filter((one) => one.status === 'failed').map(({ agent }) => agent);
  return failed.length > 0 ? `${failed.join(', ')} failed` : '-';
}

function waitsFor({ activity = [] }: ConversationSummary, now: number): string {
  const waits = activity.flatMap((one) => {
    const text = waitText(one);
    return text === null ? [] : [`${text} (${ageText(one.since, now)})`];
  });
  if (waits.length === 0) return '-';
  const more = waits.length - SHOWN_WAITS;
  return `${waits.slice(0, SHOWN_WAITS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
