import { type Definition, definitionAt, explain, readDefinition, sourcesOf } from '../../agents/index.ts';
import { createRoster, type Entry } from '../../conversation/index.ts';
import { messageOf } from '../../kernel/index.ts';
import { type Finding, finding } from './findings.ts';

/** Checks the definitions that a log names, and the requests that log and definition give. */
export class DefinitionChecks {
  readonly #get: (hash: string) => Promise<string | null>;
  readonly #withViews: boolean;
  /** Complete ones: what is missing may be there when it is read again. */
  readonly #known = new Map<string, Definition>();

  constructor(get: (hash: string) => Promise<string | null>, withViews: boolean) {
    this.#get = get;
    this.#withViews = withViews;
  }

  async findings(conversation: string, entries: readonly Entry[]): Promise<Finding[]> {
    const found: Finding[] = [];
    const failed = new Set<string>();
    for (const entry of entries) {
      const hash = entry.type === 'turn-started' ? entry.definition : undefined;
      if (hash === undefined || this.#known.has(hash) || failed.has(hash)) continue;
      try {
        const definition = await readDefinition(hash, this.#get);
        sourcesOf(definition);
        this.#known.set(hash, definition);
      } catch (error) {
        failed.add(hash);
        found.push(finding('definition', `entry ${entry.index}: ${messageOf(error)}`));
      }
    }
    return this.#withViews ? [...found, ...this.#viewFindings(conversation, entries)] : found;
  }

  /** Every recorded hash of a request is compared with the request that `explain` builds. */
  #viewFindings(conversation: string, entries: readonly Entry[]): Finding[] {
    return entries.flatMap((entry) => {
      const agent = agentOf(entry);
      const hash = agent === null ? null : definitionAt(entries, agent, entry.index);
      const definition = hash === null ? undefined : this.#known.get(hash);
      if (agent === null || definition === undefined) return [];
      const explained = explain(entries, conversation, agent, entry.index, NO_SOURCES, definition);
      if (explained.ok && explained.explanation.report.sent === true) return [];
      const why = explained.ok ? 'another hash than the recorded one' : explained.refusal.message;
      return [finding('view', `entry ${entry.index}: the request that log and definition give has ${why}`)];
    });
  }
}

/** The agent whose request has its hash in this entry; null: none. */
function agentOf(entry: Entry): string | null {
  if (entry.type === 'message') return entry.requestHash ? entry.author.id : null;
  if (entry.type === 'turn-started' || entry.type === 'summary')
    return entry.requestHash ? entry.agent : null;
  return null;
}

/** A recorded definition replaces them. */
const NO_SOURCES = {
  roster: createRoster([], ''),
  prompts: { baseChat: '', baseRun: '', toolPolicy: '' },
  workflows: new Map(),
  tools: () => new Map(),
  availability: () => ({ rules: [], otherwise: 'forbidden' }) as const,
  agents: new Map(),
};
