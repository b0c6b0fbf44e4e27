import { explainStored, FileCache, readDefinition } from '../../agents/index.ts';
import type { RequestOf } from '../../bus/index.ts';
import type { Config } from '../../config/index.ts';
import { EMPTY_STATE, type ExplainedRequest, evolve } from '../../conversation/index.ts';
import { asError } from '../../kernel/index.ts';
import { composeInspector, composeLogReader } from '../compose/archives.ts';
import { composeBuiltInTools } from '../compose/tools.ts';
import { requestSources, shownWithPrompt } from '../team/team.ts';

export interface ExplainOfflineOptions extends RequestOf<'view'> {
  readonly dataDirectory: string;
  readonly config: Config;
}

/** The same bytes as a daemon would show, from files alone; takes no lock and changes nothing. */
export async function explainOffline(options: ExplainOfflineOptions): Promise<ExplainedRequest> {
  const { dataDirectory, config, body } = options;
  const entries = await composeLogReader(dataDirectory, options.conversation);
  const { definition, blobs } = composeInspector(dataDirectory);
  const sources = requestSources(
    config,
    composeBuiltInTools(config),
    entries.reduce(evolve, EMPTY_STATE).hired,
  );
  const files = new FileCache((sha256) => blobs.read(sha256));
  const definitions = { read: (hash: string) => readDefinition(hash, definition), files };
  const explained = await explainStored(entries, options, { sources, definitions });
  if (explained.ok) return withNote(await shownWithPrompt(explained, body, files));
  throw asError(explained.refusal);
}

/** MCP servers are not started, and functions not loaded, for a request without a recorded definition. */
function withNote(explained: ExplainedRequest): ExplainedRequest {
  const { report } = explained;
  if (report.definition.recorded || report.tools_missing.length === 0) return explained;
  const unknown =
    'MCP servers were not asked and functions not loaded: these tools are missing here, so the hash and the tokens are not those of a daemon with them';
  const note = [report.note, unknown].filter(Boolean).join('; ');
  return { ...explained, report: { ...report, note } };
}
