import type { Command } from 'commander';
import type { ConversationSummary } from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { money } from '../../render/cost.ts';
import { renderTable } from '../../render/table.ts';

const HEADINGS = ['ID', 'TITLE', 'PHASE', 'MODE', 'TALKING', 'STATUS', 'LENGTH', 'TOKENS', 'USD', 'UPDATED'];

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
            context.note(`no conversations yet: start one with \`${context.io.invocation} chat\``);
          } else context.line(renderTable(HEADINGS, rows.map(cells), context.palette.dim));
          if (unanswered.size > 0) {
            const daemons = [...unanswered].join(', ');
            context.note(`the list may be incomplete or stale: no answer from daemon ${daemons}`);
          }
          return 0;
        }),
      ),
    );
}

function cells(row: ConversationSummary): string[] {
  const updated = row.updatedAt.slice(0, 16).replace('T', ' ');
  const { id, title, phase, mode, activeAgent, length, tokens, usd, unpricedCalls } = row;
  const used = [
    tokens === undefined ? '-' : String(tokens),
    usd === undefined ? '-' : money(usd, unpricedCalls),
  ];
  return [id, title ?? '-', phase, mode, activeAgent ?? '-', status(row), String(length), ...used, updated];
}

/** The first that applies: agents with running turns, waiting ones, stopped ones with work, ones halted by a limit. */
function status({ running, waiting, limited = [], stopped = [] }: ConversationSummary): string {
  if (running.length > 0) return `${running.join(', ')} at work`;
  if (waiting.length > 0) return `${waiting.join(', ')} waiting`;
  if (stopped.length > 0) return `${stopped.join(', ')} ${stopped.length === 1 ? 'is' : 'are'} stopped`;
  return limited.length > 0 ? `${limited.join(', ')} limited` : '-';
}
