import { type Explanation, explain } from '../../agents/index.ts';
import type { Config } from '../../config/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { requestSources } from '../agents.ts';
import { composeLogReader } from '../compose/files.ts';
import { composeBuiltInTools } from '../compose/tools.ts';

export interface ExplainOfflineOptions {
  readonly dataDirectory: string;
  readonly config: Config;
  readonly conversation: string;
  readonly agent: string;
  readonly at?: number;
}

/** Explains a request from the log file alone, without the tools of MCP servers. Takes no lock and changes nothing. */
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

/** MCP servers are not started, and their tools may change at any time. */
function withNote({ messages, report }: Explanation): Explanation {
  const unasked = report.tools_missing.filter((name) => name.startsWith('mcp__'));
  if (unasked.length === 0) return { messages, report };
  const unknown =
    'MCP servers were not asked: their tools are missing here, so the hash and the tokens are not those of a daemon with them';
  const note = [report.note, unknown].filter(Boolean).join('; ');
  return { messages, report: { ...report, note } };
}
