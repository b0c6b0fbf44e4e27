import type { Command } from 'commander';
import type { ConversationSummary } from '../../client/index.ts';
import type { Act } from '../act.ts';
import { withDaemon } from '../find-daemon.ts';
import { money } from '../render/cost.ts';
import { renderTable } from '../render/table.ts';

const HEADINGS = ['ID', 'TITLE', 'PHASE', 'MODE', 'TALKING', 'STATUS', 'LENGTH', 'TOKENS', 'USD', 'UPDATED'];

export function addLs(program: Command, act: Act): void {
  program
    .command('ls')
    .description('list the conversations')
    .action((_options: object, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const rows: ConversationSummary[] = [];
          const unheard = new Set<string>();
          let after: string | null | undefined;
          do {
            const page = await client.request('conversations', after ? { after } : {});
            rows.push(...page.conversations);
            for (const daemon of page.incomplete ?? []) unheard.add(daemon);
            after = page.next;
          } while (after);
          if (context.json) for (const row of rows) context.value(row);
          else if (rows.length === 0) {
            context.note(`no conversation yet: begin one with \`${context.io.invocation} chat\``);
          } else context.line(renderTable(HEADINGS, rows.map(cells), context.palette.dim));
          if (unheard.size > 0) {
            const who = [...unheard].join(', ');
            context.note(`the list may lack conversations or be stale: no answer from daemon ${who}`);
          }
          return 0;
        }),
      ),
    );
}

function cells(row: ConversationSummary): string[] {
  const updated = row.updatedAt.slice(0, 16).replace('T', ' ');
  const { id, title, phase, mode, activeAgent, length, tokens, usd } = row;
  const used = [tokens === undefined ? '-' : String(tokens), usd === undefined ? '-' : money(usd)];
  return [id, title ?? '-', phase, mode, activeAgent ?? '-', status(row), String(length), ...used, updated];
}

/** The agents at work, else those that wait for somebody, else the stopped ones that have work, else those that a limit halted. */
function status({ running, waiting, limited = [], stopped = [] }: ConversationSummary): string {
  if (running.length > 0) return `${running.join(', ')} at work`;
  if (waiting.length > 0) return `${waiting.join(', ')} waiting`;
  if (stopped.length > 0) return `${stopped.join(', ')} ${stopped.length === 1 ? 'is' : 'are'} stopped`;
  return limited.length > 0 ? `${limited.join(', ')} limited` : '-';
}
