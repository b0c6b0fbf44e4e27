import type { PublisherConfig, PublisherFile } from './http-file.ts';

/** What each publisher may ask of the daemon. */
export interface PublishersConfig {
  readonly named: Readonly<Record<string, PublisherConfig>>;
  /** For everybody else. */
  readonly others: PublisherConfig;
}

/** The row that stands for everybody who has none of his own. */
const EVERYBODY = 'default';

/** Far beyond people and most programs, and little enough that one that has gone wild stops nobody else. */
const SHIPPED: PublisherConfig = { postsPerMinute: 1_200, maxBytes: 1_048_576, openConversations: 1_000 };

/** A row may name some of the limits: for the others that of `default` stands, and behind it what ships. */
export function resolvePublishers(rows: Readonly<Record<string, PublisherFile>>): PublishersConfig {
  const others = { ...SHIPPED, ...rows[EVERYBODY] };
  const named = Object.entries(rows).filter(([name]) => name !== EVERYBODY);
  return { others, named: Object.fromEntries(named.map(([name, row]) => [name, { ...others, ...row }])) };
}
