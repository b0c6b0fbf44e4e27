import { sourcesOf } from '../../agents/index.ts';
import type { AnswerOf, RequestOf } from '../../bus/index.ts';
import { coversTool, type FoldedTurn, turnRows } from '../../conversation/index.ts';
import { ParleyError, sizeOf } from '../../kernel/index.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Definitions } from '../team/definitions.ts';

/** The table of turns across conversations: folded from the logs at each request, newest conversation first. */

type Row = AnswerOf<'turns'>['turns'][number];

/** Logs that one request reads. */
const MOST_LOGS = 100;
/** Bytes of an answer without its rows. */
const ENVELOPE = 200;

/** A page ends at its limit, at `room` bytes, or where it has read enough logs; `next` continues there. */
export async function turnsPage(
  request: RequestOf<'turns'>,
  workers: Pick<Workers, 'rows' | 'existing'>,
  definitions: Pick<Definitions, 'read'>,
  room: number,
): Promise<AnswerOf<'turns'>> {
  const { conversation, agent, after, limit = 100 } = request;
  // As entries have it, whatever the offset: moments are compared as texts.
  const since = request.since === undefined ? '' : new Date(request.since).toISOString();
  let left = room - ENVELOPE;
  if (conversation !== undefined) await workers.existing(conversation);
  const from = after === undefined ? null : placeOf(after);
  const rows = (await workers.rows()).filter(
    (row) =>
      (conversation ?? row.id) === row.id &&
      (agent === undefined || row.agents.includes(agent)) &&
      row.updatedAt >= since,
  );
  rows.sort((a, b) => b.activeAt.localeCompare(a.activeAt) || a.id.localeCompare(b.id));
  const first = from === null ? 0 : rows.findIndex(({ id }) => id === from.conversation);
  if (first < 0) throw new ParleyError('BAD_REQUEST', 'turns: `after` is of a conversation that is gone');
  const turns: Row[] = [];
  const modelsOf = askedModels(definitions);
  for (const [position, { id, title }] of rows.slice(first).entries()) {
    const before = position === 0 && from !== null ? from.index : Number.POSITIVE_INFINITY;
    if (position >= MOST_LOGS) return { turns, next: `${id}:${Number.MAX_SAFE_INTEGER}` };
    const found = await rowsOf(id, workers);
    for (const one of found.filter((one) => one.index < before && isWanted(one, request, since))) {
      const { definition: _, asked: __, ...row } = one;
      const hasNone = row.models.length === 0 && row.calls > 0;
      const asked = hasNone || request.model !== undefined ? await modelsOf(one) : [];
      const models = hasNone ? asked.slice(-1).map(({ sent }) => sent) : row.models;
      if (!isOf(request.model, models, asked)) continue;
      const shown = { conversation: id, title, ...row, models };
      left -= sizeOf(shown) + 1;
      if (turns.length === limit || (left < 0 && turns.length > 0)) {
        const last = turns.at(-1);
        return { turns, next: `${id}:${last?.conversation === id ? last.index : Number.MAX_SAFE_INTEGER}` };
      }
      turns.push(left < 0 ? { ...shown, tools: [] } : shown);
    }
  }
  return { turns, next: null };
}

function placeOf(after: string): { readonly conversation: string; readonly index: number } {
  const [conversation = '', index = ''] = after.split(':');
  return { conversation, index: Number(index) };
}

/** Empty for one that was deleted meanwhile, or cannot be read. */
async function rowsOf(id: string, workers: Pick<Workers, 'existing'>) {
  const worker = await workers.existing(id).catch(() => null);
  return worker === null ? [] : turnRows(worker.entries());
}

function isWanted(
  row: FoldedTurn,
  { agent, outcome, tool, rated }: RequestOf<'turns'>,
  since: string,
): boolean {
  return (
    (agent ?? row.agent) === row.agent &&
    (outcome ?? row.outcome) === row.outcome &&
    (tool === undefined || row.tools.some((name) => coversTool(tool, name))) &&
    (rated === undefined || row.rated.includes(rated)) &&
    row.startedAt >= since
  );
}

/** A model by its name in the configuration, and in requests. */
interface AskedModel {
  readonly name: string;
  readonly sent: string;
}

function isOf(model: string | undefined, models: readonly string[], asked: readonly AskedModel[]): boolean {
  return (
    model === undefined ||
    models.includes(model) ||
    asked.some(({ name, sent }) => name === model || sent === model)
  );
}

/** The models that a turn asked, the last one last. Empty: its agent is another program, or its definition cannot be read. */
function askedModels(definitions: Pick<Definitions, 'read'>) {
  const known = new Map<string, Promise<readonly AskedModel[]>>();
  return async ({ definition: hash, asked }: FoldedTurn): Promise<readonly AskedModel[]> => {
    if (hash === null) return [];
    const reading = known.get(hash) ?? choicesIn(hash, definitions).catch(() => []);
    known.set(hash, reading);
    const choices = await reading;
    if (asked.length === 0) return choices.slice(0, 1);
    return asked.flatMap((name) => choices.filter((one) => one.name === name));
  };
}

/** The model of an agent and its fallbacks. */
async function choicesIn(hash: string, definitions: Pick<Definitions, 'read'>): Promise<AskedModel[]> {
  const definition = await definitions.read(hash);
  const setup = sourcesOf(definition).agents.get(definition.agent);
  if (setup?.card.runtime !== 'local') return [];
  return [setup, ...(setup.fallbacks ?? [])].map(({ profile: { name, fields } }) => ({
    name,
    sent: String(fields.model ?? name),
  }));
}
