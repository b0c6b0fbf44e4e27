import { fromAnswer, type RecordedTurn, recordedTurns, turnAt } from '../../agents/index.ts';
import type { AnswerOf, RequestOf } from '../../bus/index.ts';
import { type Author, type Entry, feedbackIn } from '../../conversation/index.ts';
import { asError, type NewId, ParleyError } from '../../kernel/index.ts';
import type { Workers } from '../conversations/workers.ts';
import { noEntry } from '../conversations/workers.ts';
import type { Definitions } from '../team/definitions.ts';
import type { Team } from '../team/team.ts';
import { type LogKey, noDefinition, shortened, unknownModel, type WhatIfs } from '../what-if/what-ifs.ts';
import { type Handlers, operatorOf } from './authorship.ts';
/** The verbs about what-ifs: checks a request against the log, and starts a job. */

/** What these verbs need of the daemon. */
export interface WhatIfContext {
  readonly whatIfs: WhatIfs;
  readonly definitions: Pick<Definitions, 'read'>;
  readonly team: Team;
  readonly newId: NewId;
}

/** The part of the request API that these verbs need. */
interface Parts {
  readonly workers: Pick<Workers, 'existing'>;
  readonly daemon: WhatIfContext;
  /** Bytes of one answer. */
  readonly room: number;
}

type Start = RequestOf<'what-if'>;

/** Runs of both sides, of all turns. */
const MOST_RUNS = 10_000;

export function whatIfHandlers(
  parts: Parts,
): Pick<Handlers, 'what-if' | 'what-ifs' | 'what-if-result' | 'what-if-stop'> {
  return {
    async 'what-if'(request, { isBound }) {
      const by = operatorOf(request, parts.daemon.team.rules.roster, isBound);
      return shortened(await startWhatIf(request, by, parts), parts.room);
    },
    async 'what-ifs'({ conversation }) {
      const all = parts.daemon.whatIfs.list(await keyOf(conversation, parts));
      return { whatIfs: all.map((one) => shortened(one, parts.room / all.length)) };
    },
    async 'what-if-result'({ conversation, id, from = 0, limit = Number.POSITIVE_INFINITY }) {
      const key = await keyOf(conversation, parts);
      return parts.daemon.whatIfs.result(key, id, { from, limit, room: parts.room });
    },
    'what-if-stop': async ({ conversation, id }) =>
      shortened(parts.daemon.whatIfs.stop(await keyOf(conversation, parts), id), parts.room),
  };
}

async function startWhatIf(
  request: Start,
  by: Author,
  { workers, daemon }: Parts,
): Promise<AnswerOf<'what-if'>> {
  const { conversation, runs = 1, start = 'turn' } = request;
  const { whatIfs, newId } = daemon;
  const entries = (await workers.existing(conversation)).entries();
  const id = request.id ?? newId().toLowerCase();
  const origin = entries[0]?.id ?? '';
  const known = whatIfs.summary({ conversation, origin }, id);
  if (known) return known;
  const agent = request.agent ?? agentAt(entries, request.at);
  const change = changeOf(request, agent, daemon);
  const turns = turnsOf(request, agent, entries);
  if (turns.length * runs * 2 > MOST_RUNS) {
    throw badRequest(
      `${turns.length} turns with ${runs} runs of each side are more than ${MOST_RUNS} runs`,
      'name fewer entries with `at`, or use fewer runs',
    );
  }
  await refuseUnreplayable(turns, agent, request, daemon);
  const plan = { id, conversation, agent, by: by.id, start, change, runs, turns, entries };
  return whatIfs.start(plan, origin);
}

async function keyOf(conversation: string, { workers }: Pick<Parts, 'workers'>): Promise<LogKey> {
  const [first] = (await workers.existing(conversation)).entries(0, 1);
  return { conversation, origin: first?.id ?? '' };
}

function agentAt(entries: readonly Entry[], at: Start['at']): string {
  const entry = typeof at === 'number' ? entries[at] : undefined;
  if (entry?.author.kind === 'agent') return entry.author.id;
  throw badRequest(
    'the agent is missing: `at` is not one entry of an agent',
    'name the agent: `agent`, or --agent on the command line',
  );
}

function changeOf({ model, persona }: Start, agent: string, { whatIfs: { models } }: WhatIfContext) {
  if (model === undefined && persona === undefined)
    throw badRequest('what-if: expected a change', 'name another `model`, or a `persona`');
  const found = model === undefined ? null : models.changedTo(model, agent);
  if (model !== undefined && !found) throw asError(unknownModel(model, models.names));
  return { model: found, persona: persona ?? null };
}

function turnsOf(
  { conversation, at, start }: Start,
  agent: string,
  entries: readonly Entry[],
): readonly RecordedTurn[] {
  const turns = recordedTurns(entries, agent);
  if (at === 'all' && turns.length > 0) return turns;
  if (at === 'all') throw noTurn(conversation, agent, '');
  const found = indexesOf(at, agent, entries).map((index) => {
    if (index >= entries.length) throw noEntry(conversation, entries, index);
    const turn = turnAt(turns, entries, index);
    if (!turn) throw noTurn(conversation, agent, ` at entry ${index}`);
    return start === 'answer' ? fromAnswer(turn, index) : turn;
  });
  if (found.length === 0) throw noTurn(conversation, agent, ` whose answer is rated ${at}`);
  const firstSteps = found.map(({ steps }) => steps[0].index);
  return found.filter((_, position) => firstSteps.indexOf(firstSteps[position] ?? -1) === position);
}

function indexesOf(
  at: Exclude<Start['at'], 'all'>,
  agent: string,
  entries: readonly Entry[],
): readonly number[] {
  if (at !== 'up' && at !== 'down') return [at].flat();
  const given = [...feedbackIn(entries)].filter(([, rated]) => rated.some(({ value }) => value === at));
  return given.map(([index]) => index).filter((index) => entries[index]?.author.id === agent);
}

function noTurn(conversation: string, agent: string, where: string): ParleyError {
  return new ParleyError(
    'NO_SUCH_TURN',
    `conversation ${conversation} has no turn of ${agent}${where} that called its model`,
    { hint: 'give the index of an answer of that agent; `parley show` lists the entries by index' },
  );
}

/** A turn without a definition is refused here if it is named; of all turns of an agent, the result reports those without one. */
async function refuseUnreplayable(
  turns: readonly RecordedTurn[],
  agent: string,
  { at }: Start,
  { definitions, team }: WhatIfContext,
): Promise<void> {
  if (team.agents.get(agent)?.card.runtime !== 'local') {
    throw new ParleyError(
      'WHAT_IF_REMOTE_AGENT',
      `agent ${agent} runs in another process, and its model cannot be called from here`,
      { hint: 'name an agent with the runtime `local`' },
    );
  }
  if (typeof at === 'string') return;
  for (const hash of new Set(turns.flatMap(({ steps }) => steps.map(({ definition }) => definition)))) {
    if (hash === null) throw noDefinition(agent);
    await definitions.read(hash);
  }
}

function badRequest(message: string, hint: string): ParleyError {
  return new ParleyError('BAD_REQUEST', message, { hint });
}
