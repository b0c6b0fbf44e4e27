import { type Definition, type Model, partHashes } from '../../agents/index.ts';
import type { AnswerOf } from '../../bus/index.ts';
import { type Config, settingDigest } from '../../config/index.ts';
import {
  type Author,
  type ConversationState,
  isParticipant,
  missingForRun,
  SYSTEM_AUTHOR,
  type TeamChange,
} from '../../conversation/index.ts';
import { inOrder, type Log, messageOf, type NewId, ParleyError } from '../../kernel/index.ts';
import type { ConversationWorker } from '../conversations/worker/worker.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Definitions } from '../team/definitions.ts';
import { createTeam, type Team } from '../team/team.ts';

/**
 * Replaces the configuration of a running daemon.
 *
 * RELOAD-1 Everything is read, checked and connected first. Then the team is replaced in one step. A fault before that step
 *          changes nothing.
 * RELOAD-2 A running turn keeps the definition that it started with (TEAM-2). An agent that was removed ends its turns.
 * RELOAD-3 Every conversation in memory in which a changed agent takes part gets one `team-changed` entry; the definitions
 *          that it names are stored first (DEFINITIONS-1).
 * RELOAD-4 Reloads run one after the other.
 */

type Reloaded = AnswerOf<'reload'>;

interface Toolboxes {
  prepare(
    config: Config,
    isReload: true,
  ): Promise<{
    readonly toolbox: Team['toolbox'];
    commit(): void;
    discard(): Promise<void>;
  }>;
}

interface ReloaderParts {
  readonly daemon: {
    readonly team: Team;
    /** In one step: no decision sees parts of two teams (TEAM-1). */
    replaceTeam(next: Team): void;
    readonly definitions: Pick<Definitions, 'current'>;
    /** The model of all agents in other processes. */
    readonly remote: Model;
    readonly newId: NewId;
    readonly log: Log;
  };
  readonly workers: Workers;
  readonly tools: Toolboxes;
  readonly config: Config;
  /** Absent: the configuration has no files. */
  readonly load: (() => Promise<Config>) | undefined;
  readonly models: (config: Config) => Promise<ReadonlyMap<string, Model>>;
  /** Called with the configuration that is now in effect. */
  readonly onReplaced: (config: Config) => void;
}

export class Reloader {
  readonly #parts: ReloaderParts;
  #config: Config;
  readonly #inOrder = inOrder(); // RELOAD-4

  constructor(parts: ReloaderParts) {
    this.#parts = parts;
    this.#config = parts.config;
  }

  /** Throws `CONFIG_INVALID`, `RESTART_NEEDED` or `MCP_SERVER_FAILED`: then nothing was changed (RELOAD-1). */
  reload(by: Author): Promise<Reloaded> {
    return this.#inOrder(() => this.#reload(by));
  }

  /** As `reload`, for a signal or a changed file: the log gets the outcome. */
  async reloadAndLog(why: string): Promise<void> {
    const { log } = this.#parts.daemon;
    try {
      const { agents, settings } = await this.reload(SYSTEM_AUTHOR);
      if (agents.length + settings.length === 0) log.info({ why }, 'reload: the configuration is unchanged');
    } catch (error) {
      const { code, hint } = error instanceof ParleyError ? error : { code: undefined, hint: undefined };
      log.error({ why, code, hint }, `reload: nothing was changed: ${messageOf(error)}`);
    }
  }

  async #reload(by: Author): Promise<Reloaded> {
    const { daemon, onReplaced } = this.#parts;
    const { config, team, changes, settings } = await this.#prepare();
    for (const notice of config.notices)
      if (!this.#config.notices.includes(notice)) daemon.log.warn({}, notice);
    this.#config = config;
    daemon.replaceTeam(team); // RELOAD-1
    onReplaced(config);
    const conversations = await this.#announce(changes, by);
    const agents = changes.map(({ agent, change, parts }) => ({ agent, change, parts }));
    const answer = { agents, settings, conversations };
    if (changes.length + settings.length > 0)
      daemon.log.info({ by: by.id, ...answer }, 'the configuration was reloaded');
    return answer;
  }

  async #prepare() {
    const { daemon, tools, load, models } = this.#parts;
    if (!load) throw new ParleyError('RESTART_NEEDED', 'this daemon cannot read its configuration again');
    const config = await load();
    const settings = changedSettings(this.#config, config);
    const prepared = await tools.prepare(config, true);
    try {
      const { remote, newId } = daemon;
      const parts = { toolbox: prepared.toolbox, models: await models(config), remote, newId };
      const team = createTeam(config, parts);
      const changes = this.#changesTo(team);
      prepared.commit();
      return { config, team, settings, changes };
    } catch (error) {
      await prepared.discard();
      throw error;
    }
  }

  #changesTo(team: Team): TeamChange[] {
    const { definitions, team: now } = this.#parts.daemon;
    const slugs = new Set([...now.agents.keys(), ...team.agents.keys()]);
    return [...slugs]
      .sort()
      .flatMap(
        (slug) => changeOf(slug, definitions.current(slug, now), definitions.current(slug, team)) ?? [],
      );
  }

  /** RELOAD-3. Returns in how many conversations. */
  async #announce(changes: readonly TeamChange[], by: Author): Promise<number> {
    const { workers } = this.#parts;
    const opened = (await workers.opened()).filter((worker) => worker.isOurs);
    const counts = await Promise.all(opened.map((worker) => this.#announceIn(worker, changes, by)));
    return counts.filter(Boolean).length;
  }

  async #announceIn(
    worker: ConversationWorker,
    changes: readonly TeamChange[],
    by: Author,
  ): Promise<boolean> {
    const { daemon, workers } = this.#parts;
    const { id, state } = worker;
    const isNamed = changes.some(({ agent }) => isParticipant(state, agent));
    const team = daemon.team.for(state);
    const isTouched = isNamed || missingForRun(state, team.rules) !== null || hasWorkOfRemoved(state, team);
    try {
      worker.watchApprovals();
      if (isTouched) await workers.submit(id, { type: 'change-team', changes, by });
      return isNamed;
    } catch (error) {
      const fields = { conversation: id, error: messageOf(error) };
      daemon.log.warn(fields, 'the change of the team could not be recorded in a conversation');
      return false;
    }
  }
}

/** Also of a hired agent whose model was removed: no configured agent has changed then. */
function hasWorkOfRemoved(state: ConversationState, { sources }: Pick<Team, 'sources'>): boolean {
  return Object.entries(state.agents).some(
    ([slug, { turn, waiting }]) => (turn !== null || waiting.length > 0) && !sources.roster.agents.has(slug),
  );
}

type Setting = Exclude<
  keyof Config,
  'roster' | 'notices' | 'daemon' | 'environmentFiles' | 'secretFiles' | 'variables'
>;

/** The keys under which people know the settings. `restart`: the daemon reads them only when it starts. */
const SETTINGS: Readonly<Record<Setting, { readonly key: string; readonly restart?: true }>> = {
  agents: { key: 'agents/*.md' },
  defaultAgent: { key: 'defaultAgent' },
  models: { key: 'models' },
  scripts: { key: 'models.*.script' },
  phases: { key: 'phases' },
  context: { key: 'context' },
  titleModel: { key: 'titleModel' },
  limits: { key: 'limits' },
  retry: { key: 'retry' },
  tools: { key: 'tools, mcpServers, tools/*.ts' },
  approvals: { key: 'approvals' },
  publishers: { key: 'publishers' },
  blobs: { key: 'blobs' },
  prompts: { key: 'prompts' },
  workflows: { key: 'workflows' },
  directory: { key: '--config', restart: true },
  subjectPrefix: { key: 'subjectPrefix', restart: true },
  ingress: { key: 'ingress', restart: true },
  retention: { key: 'retention', restart: true },
  shutdown: { key: 'shutdown', restart: true },
  sharing: { key: 'sharing', restart: true },
  replicas: { key: 'jetstream.replicas', restart: true },
  remoteAgents: { key: 'agents', restart: true },
  telemetry: { key: 'PARLEY_TELEMETRY', restart: true },
  traces: { key: 'telemetry', restart: true },
};

/** The keys and flags of `daemon`. All need a restart. */
const DAEMON: Readonly<Record<keyof Config['daemon'], string>> = {
  data: '--data',
  nats: 'nats',
  natsBinary: 'NATS_BIN',
  store: '--store',
  http: 'http',
};

/**
 * The keys of what differs. Each setting can be reloaded or needs a restart; a new one that is neither does not compile. Throws `RESTART_NEEDED` if the daemon cannot change one of them while it runs.
 */
export function changedSettings(before: Config, after: Config): string[] {
  const changed = differing(SETTINGS, before, after).map((setting) => SETTINGS[setting]);
  const fixed = [
    ...changed.flatMap(({ key, restart }) => (restart ? [key] : [])),
    ...differing(DAEMON, before.daemon, after.daemon).map((setting) => DAEMON[setting]),
  ];
  if (fixed.length === 0) return changed.map(({ key }) => key);
  throw new ParleyError('RESTART_NEEDED', `only a restart can change ${fixed.join(', ')}`, {
    hint: 'undo that change and reload the others, or restart the daemon; nothing was changed',
  });
}

function differing<Key extends string, Settings extends Readonly<Record<Key, unknown>>>(
  keys: Readonly<Record<Key, unknown>>,
  before: Settings,
  after: Settings,
): Key[] {
  return (Object.keys(keys) as Key[]).filter(
    (key) => settingDigest(before[key]) !== settingDigest(after[key]),
  );
}

/** `null`: there is no such agent. */
function changeOf(agent: string, before: Definition | null, after: Definition | null): TeamChange | null {
  if (before?.hash === after?.hash) return null;
  const parts = before && after ? differingParts(before, after) : [];
  const change = before === null ? 'added' : after === null ? 'removed' : 'changed';
  return {
    agent,
    change,
    ...(before && { before: before.hash }),
    ...(after && { after: after.hash }),
    parts,
  };
}

function differingParts(before: Definition, after: Definition): string[] {
  const [old, now] = [partHashes(before), partHashes(after)];
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => old[name] !== now[name])
    .sort();
}
