import {
  type Definition,
  definitionOf,
  FileCache,
  type RequestSources,
  Requests,
  readDefinition,
  sourcesOf,
  textsOf,
} from '../../agents/index.ts';
import type { Conversation, ConversationState, Entry, Turn } from '../../conversation/index.ts';
import type { DefinitionTexts } from '../../persistence/index.ts';
import { type RunningAgent, runningAs, type Team } from './team.ts';

type SourcesAndAgents = Pick<Team, 'sources' | 'agents'>;
type TeamOf = (state: ConversationState) => SourcesAndAgents;

interface Current {
  /** The map of tools that they were computed for. */
  readonly tools: unknown;
  readonly definitions: Map<string, Definition | null>;
}

interface Known {
  readonly definition: Definition;
  readonly sources: RequestSources;
  readonly agent: RunningAgent | undefined;
}

/**
 * The definitions that turns run with.
 *
 * DEFINITIONS-1 Every new `turn-started` of a configured or hired agent names its definition at that moment. All texts of a
 *               definition are durable before an entry that names it. A crash in between leaves texts that no entry names: harmless.
 * DEFINITIONS-2 The requests of a turn are built from the definition in its newest `turn-started`, by `sourcesOf`, as
 *               `explain` builds them. A tool that a server adds or removes during the turn does not change them.
 * DEFINITIONS-3 A definition is computed once for each team and map of tools, and stored once in the life of a process.
 *               None is dropped from memory: a decision that is being appended may name it.
 */
export class Definitions {
  /** The content of files in requests. */
  readonly files: FileCache;
  readonly #texts: DefinitionTexts;
  readonly #current = new WeakMap<SourcesAndAgents, Current>();
  /** The definitions that this process knows, by hash. */
  readonly #known = new Map<string, Known>();
  readonly #stored = new Map<string, Promise<void> | 'stored'>();

  constructor(texts: DefinitionTexts, files = new FileCache(async () => null)) {
    this.#texts = texts;
    this.files = files;
  }

  /** As the team has it now; null: there is no such agent. */
  current(agent: string, team: SourcesAndAgents): Definition | null {
    const { definitions } = this.#currentOf(team);
    const known = definitions.get(agent);
    if (known !== undefined) return known;
    const definition = definitionOf(team.sources, agent);
    definitions.set(agent, definition);
    if (definition) this.#known.set(definition.hash, knownAs(definition, team));
    return definition;
  }

  #currentOf(team: SourcesAndAgents): Current {
    const tools = team.sources.tools();
    let current = this.#current.get(team);
    if (current?.tools !== tools) current = { tools, definitions: new Map() };
    this.#current.set(team, current);
    return current;
  }

  /** Writes the hash of its agent's definition into each new `turn-started`. */
  name(entries: readonly Entry[], team: SourcesAndAgents): void {
    for (const entry of entries) {
      if (entry.type !== 'turn-started' || entry.copiedFrom !== undefined) continue;
      const definition = this.current(entry.agent, team);
      if (definition) entry.definition = definition.hash;
    }
  }

  requestsOf(conversation: string, teamOf: TeamOf): Requests {
    return new Requests(
      conversation,
      (log, turn) => this.#knownOf(log.entries, turn)?.sources ?? teamOf(log.state).sources,
      this.files,
    );
  }

  /** The agent of a running turn, with the model of its definition (DEFINITIONS-2). */
  agentOf(log: Conversation, turn: Turn, teamOf: TeamOf): RunningAgent | undefined {
    return this.#knownOf(log.entries, turn)?.agent ?? teamOf(log.state).agents.get(turn.agent);
  }

  /** DEFINITIONS-2. An own turn has a `turn-started` of this process: a start resumes the turns of an earlier one. */
  #knownOf(entries: readonly Entry[], { resumedAt }: Turn): Known | undefined {
    const started = entries[resumedAt];
    const hash = started?.type === 'turn-started' ? started.definition : undefined;
    return hash === undefined ? undefined : this.#known.get(hash);
  }

  /** Stores what the entries name (DEFINITIONS-1). Null: all of it is stored, as for most appends. */
  store(entries: readonly Entry[]): Promise<unknown> | null {
    const missing = entries.flatMap(hashesIn).filter((hash) => this.#stored.get(hash) !== 'stored');
    return missing.length === 0 ? null : Promise.all([...new Set(missing)].map((hash) => this.#store(hash)));
  }

  async #store(hash: string): Promise<void> {
    const known = this.#known.get(hash);
    const stored = this.#stored.get(hash);
    if (stored === 'stored' || !known) return;
    const storing = stored ?? this.#texts.put(textsOf(known.definition));
    this.#stored.set(hash, storing);
    try {
      await storing;
      this.#stored.set(hash, 'stored');
    } catch (error) {
      this.#stored.delete(hash);
      throw error;
    }
  }

  /** A definition that a log names. Throws `DEFINITION_MISSING` and `DEFINITION_DAMAGED`. */
  async read(hash: string): Promise<Definition> {
    return this.#known.get(hash)?.definition ?? readDefinition(hash, (text) => this.#texts.get(text));
  }
}

function hashesIn(entry: Entry): string[] {
  if (entry.type === 'turn-started') return entry.definition === undefined ? [] : [entry.definition];
  if (entry.type !== 'team-changed') return [];
  return entry.agents.flatMap(({ before, after }) => [before, after].filter((hash) => hash !== undefined));
}

/** The same definition in a later team: its model client and the values of headers may be new. */
function knownAs(definition: Definition, { sources, agents }: SourcesAndAgents): Known {
  const live = sources.agents.get(definition.agent);
  const choices = live ? [live, ...(live.fallbacks ?? [])] : [];
  const headersOf = (model: string) => choices.find(({ profile }) => profile.name === model)?.profile.headers;
  const own = sourcesOf(definition, headersOf);
  const running = agents.get(definition.agent);
  const setup = own.agents.get(definition.agent);
  const modelOf = (name: string) => running?.fallbacks?.find(({ profile }) => profile.name === name)?.model;
  const agent = running && setup && runningAs(setup, running, modelOf);
  return { definition, sources: own, agent };
}
