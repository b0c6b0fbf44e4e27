import { type Explanation, explain } from '../../agents/index.ts';
import type { Config } from '../../config/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { requestSources } from '../agents.ts';
import { composeBuiltInTools, composeLogReader } from '../compose.ts';

export interface ExplainOfflineOptions {
  readonly dataDirectory: string;
  readonly config: Config;
  readonly conversation: string;
  readonly agent: string;
  readonly at?: number;
}

/**
 * The same bytes as a daemon would show, but for tools of MCP servers, from the log file alone; takes no lock and
 * changes nothing.
 */
export async function explainOffline(options: ExplainOfflineOptions): Promise<Explanation> {
  const { dataDirectory, config, conversation, agent, at } = options;
  const entries = await composeLogReader(dataDirectory, conversation);
  const explained = explain(
    entries,
    conversation,
    agent,
    at,
    requestSources(config, composeBuiltInTools(config)),
  );
  if (explained.ok) return withNote(explained.explanation);
  const { code, message, hint } = explained.refusal;
  throw new ParleyError(code, message, { hint });
}

/** Servers are not started for it, and what they offer may differ from one day to the next. */
function withNote({ messages, report }: Explanation): Explanation {
  const unasked = report.tools_missing.filter((name) => name.startsWith('mcp__'));
  if (unasked.length === 0) return { messages, report };
  const unknown =
    'MCP servers were not asked: their tools are missing here, so the hash and the tokens are not those of a daemon with them';
  const note = [report.note, unknown].filter(Boolean).join('; ');
  return { messages, report: { ...report, note } };
}
