import {
  type Definition,
  definitionOf,
  type RequestSources,
  Requests,
  readDefinition,
  sourcesOf,
  textsOf,
} from '../agents/index.ts';
import type { Entry } from '../conversation/index.ts';
import type { DefinitionTexts } from '../persistence/index.ts';

/**
 * The definitions that turns run with.
 *
 * DEFINITIONS-1 Every new `turn-started` of a configured agent names the agent's definition at that moment. All texts of the
 *               definition are durable before the entry. A crash in between leaves texts that no entry names: harmless.
 * DEFINITIONS-2 The requests of a turn are built from the definition in its newest `turn-started`, by `sourcesOf`, as
 *               `explain` builds them. A tool that a server adds or removes during the turn does not change them.
 * DEFINITIONS-3 A definition is computed once for each map of tools, and stored once in the life of a process.
 */
export class Definitions {
  readonly #texts: DefinitionTexts;
  readonly #live: RequestSources;
  /** The map of tools that `#current` was computed for. */
  #tools: unknown = null;
  #current = new Map<string, Definition | null>();
  /** Of this process, by hash. */
  readonly #known = new Map<string, { readonly definition: Definition; readonly sources: RequestSources }>();
  readonly #stored = new Map<string, Promise<void> | 'stored'>();

  constructor(texts: DefinitionTexts, live: RequestSources) {
    this.#texts = texts;
    this.#live = live;
  }

  /** As configured now; null: there is no such agent. */
  current(agent: string): Definition | null {
    const tools = this.#live.tools();
    if (tools !== this.#tools) this.#current = new Map();
    this.#tools = tools;
    const known = this.#current.get(agent);
    if (known !== undefined) return known;
    const definition = definitionOf(this.#live, agent);
    this.#current.set(agent, definition);
    if (definition && !this.#known.has(definition.hash)) {
      const headers = this.#live.agents.get(agent)?.profile.headers;
      this.#known.set(definition.hash, { definition, sources: sourcesOf(definition, headers) });
    }
    return definition;
  }

  /** Writes the hash of its agent's definition into each new `turn-started`. */
  name(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.type !== 'turn-started' || entry.copiedFrom !== undefined) continue;
      const definition = this.current(entry.agent);
      if (definition) entry.definition = definition.hash;
    }
  }

  /** The requests of one conversation. */
  requestsOf(conversation: string): Requests {
    return new Requests(conversation, ({ entries }, { resumedAt }) => this.#sourcesOf(entries[resumedAt]));
  }

  /** DEFINITIONS-2. An own turn has a `turn-started` of this process: a start resumes the turns of an earlier one. */
  #sourcesOf(started: Entry | undefined): RequestSources {
    const hash = started?.type === 'turn-started' ? started.definition : undefined;
    return (hash === undefined ? undefined : this.#known.get(hash)?.sources) ?? this.#live;
  }

  /** Stores what the entries name (DEFINITIONS-1). */
  async store(entries: readonly Entry[]): Promise<void> {
    const hashes = entries.flatMap((entry) =>
      entry.type === 'turn-started' ? (entry.definition ?? []) : [],
    );
    await Promise.all([...new Set(hashes)].map((hash) => this.#store(hash)));
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
