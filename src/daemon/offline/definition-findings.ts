import { type RequestSources, Requests, readDefinition, sourcesOf } from '../../agents/index.ts';
import { Conversation, createRoster, type Entry } from '../../conversation/index.ts';
import { messageOf } from '../../kernel/index.ts';
import { type Finding, finding } from './findings.ts';

/** Checks the definitions that a log names, and the requests that log and definition give. */
export class DefinitionChecks {
  readonly #get: (hash: string) => Promise<string | null>;
  readonly #withViews: boolean;
  /** By hash. Complete definitions only: what is missing may be there when it is read again. */
  readonly #known = new Map<string, RequestSources>();

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
        this.#known.set(hash, sourcesOf(await readDefinition(hash, this.#get)));
      } catch (error) {
        failed.add(hash);
        found.push(finding('definition', `entry ${entry.index}: ${messageOf(error)}`));
      }
    }
    return this.#withViews ? [...found, ...this.#viewFindings(conversation, entries)] : found;
  }

  /** Every recorded hash of a request is compared with the request that the daemon would build at that place of the log. */
  #viewFindings(conversation: string, entries: readonly Entry[]): Finding[] {
    const log = new Conversation(noRules);
    const requests = new Requests(
      conversation,
      (_log, turn) => this.#sourcesAt(entries, turn.resumedAt) ?? NONE,
    );
    return entries.flatMap((entry) => {
      // An answer is not part of the log that its request was built from; the entry that asks for a call is.
      if (entry.type !== 'message') log.append(entry);
      const found = this.#viewFinding(log, requests, entry);
      if (entry.type === 'message') log.append(entry);
      return found ?? [];
    });
  }

  #viewFinding(log: Conversation, requests: Requests, entry: Entry): Finding | null {
    const agent = agentOf(entry);
    const turn = agent === null ? null : log.state.agents[agent]?.turn;
    if (agent === null || !turn || !this.#sourcesAt(log.entries, turn.resumedAt)) return null;
    const request = requests.next(log, agent, turn.turnId)?.request;
    if ('requestHash' in entry && request?.hash === entry.requestHash) return null;
    return finding(
      'view',
      `entry ${entry.index}: the request that log and definition give has another hash than the recorded one`,
    );
  }

  #sourcesAt(entries: readonly Entry[], resumedAt: number): RequestSources | undefined {
    const started = entries[resumedAt];
    return started?.type === 'turn-started' ? this.#known.get(started.definition ?? '') : undefined;
  }
}

/** The agent whose request has its hash in this entry; null: none. */
function agentOf(entry: Entry): string | null {
  if (entry.type === 'message') return entry.requestHash ? entry.author.id : null;
  if (entry.type === 'turn-started' || entry.type === 'summary')
    return entry.requestHash ? entry.agent : null;
  return null;
}

/** A check decides nothing. */
function noRules(): never {
  throw new Error('a check of a log has no rules');
}

/** Of a turn without a recorded definition, which is not checked. */
const NONE: RequestSources = {
  roster: createRoster([], ''),
  prompts: { baseChat: '', baseRun: '', toolPolicy: '' },
  workflows: new Map(),
  tools: () => new Map(),
  availability: () => ({ rules: [], otherwise: 'forbidden' }),
  agents: new Map(),
};
