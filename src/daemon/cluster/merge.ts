import type { ConversationRow } from '../../persistence/index.ts';

/** Answers of several daemons to one request as one answer. The first is one's own. */

export function agentsOf(bodies: readonly unknown[]): unknown {
  const [own, ...others] = bodies as {
    readonly agents: { readonly slug: string; readonly status: string }[];
  }[];
  const running = new Set(
    others.flatMap(({ agents }) =>
      agents.filter(({ status }) => status === 'running').map(({ slug }) => slug),
    ),
  );
  const agents = own?.agents.map((agent) =>
    running.has(agent.slug) ? { ...agent, status: 'running' } : agent,
  );
  return { agents: agents ?? [] };
}

/** Of each conversation the row of whoever knows most of it. */
export function conversationsOf(bodies: readonly unknown[], asked: unknown): object {
  const pages = bodies as { readonly conversations: ConversationRow[]; readonly next: string | null }[];
  const rows = new Map<string, ConversationRow>();
  for (const row of pages.flatMap((page) => page.conversations)) {
    if ((rows.get(row.id)?.length ?? 0) < row.length) rows.set(row.id, row);
  }
  const sorted = [...rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  // Behind the end of a page that goes on, that daemon may have rows that it has not told.
  const ends = pages.flatMap(({ next }) => (next === null ? [] : [next])).sort();
  const told = ends[0] === undefined ? sorted : sorted.filter(({ id }) => id <= (ends[0] ?? ''));
  const limit = limitIn(asked) ?? told.length;
  const page = told.slice(0, limit);
  const hasMore = ends.length > 0 || page.length < sorted.length;
  return { conversations: page, next: hasMore ? (page.at(-1)?.id ?? null) : null };
}

function limitIn(asked: unknown): number | null {
  const limit = typeof asked === 'object' && asked !== null ? Reflect.get(asked, 'limit') : null;
  return typeof limit === 'number' ? limit : null;
}
