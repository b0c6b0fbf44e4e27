import type { CodingAgent } from '../../acp/index.ts';
import type { LiveChunk } from '../../bus/index.ts';
import { settingDigest } from '../../config/index.ts';
import type { FilePart } from '../../conversation/index.ts';
import { hideValues, ParleyError } from '../../kernel/index.ts';
import type { RemoteChannel } from '../../models/remote/index.ts';
import type { Enclose } from '../../tools/index.ts';
import type { CodingSettings } from '../team/team.ts';
import { LocalTurn } from './local-turns.ts';

/**
 * The coding agents that this daemon runs (`runtime: acp`): one process for each agent, started with its first turn.
 *
 * CODING-AGENTS-1 An agent whose settings did not change keeps its process over a reload. After a change the next turn starts another
 *                 process, and the old one ends when its turns have ended.
 * CODING-AGENTS-2 A failure quotes what the program printed, without the values of its variables.
 */
export interface CodingAgentsParts {
  /** Null: the daemon does not run this agent. */
  settingsOf(slug: string): CodingSettings | null;
  /** Hides the data directory from the programs. */
  enclose(): Promise<Enclose>;
  /** What an agent of the protocol needs; the protocol's package is no part of the public types. */
  readonly files: {
    read(conversation: string, sha256: string): Promise<AsyncIterable<Uint8Array>>;
    keep(
      conversation: string,
      bytes: Uint8Array,
      about: { name?: string; mediaType?: string },
    ): Promise<FilePart>;
  };
  publish(conversation: string, agent: string, piece: LiveChunk): void;
}

interface Started {
  readonly made: string;
  readonly agent: Promise<CodingAgent>;
}

export class CodingAgents {
  readonly #parts: CodingAgentsParts;
  readonly #started = new Map<string, Started>();
  readonly #retired = new Set<Promise<void>>();

  constructor(parts: CodingAgentsParts) {
    this.#parts = parts;
  }

  openChannel(slug: string): RemoteChannel | null {
    const settings = this.#parts.settingsOf(slug);
    if (settings === null) return null;
    return new LocalTurn(
      async (turn) => (await this.#agent(slug, settings)).handle(turn).catch(withoutSecrets(settings)),
      (conversation, piece) => this.#parts.publish(conversation, slug, piece),
    );
  }

  async close(): Promise<void> {
    for (const { agent } of this.#started.values()) await (await agent.catch(() => null))?.close();
    await Promise.all(this.#retired);
  }

  #agent(slug: string, settings: CodingSettings): Promise<CodingAgent> {
    const made = settingDigest(settings);
    const known = this.#started.get(slug);
    if (known?.made === made) return known.agent;
    if (known) this.#retire(known);
    const agent = this.#parts.enclose().then(async (enclose) => {
      const { CodingAgent } = await import('../../acp/index.ts'); // with packages that few daemons need
      return new CodingAgent({
        ...settings,
        env: environmentOf(settings),
        enclose,
        files: this.#parts.files,
      });
    });
    this.#started.set(slug, { made, agent });
    return agent;
  }

  #retire({ agent }: Started): void {
    const ending: Promise<void> = agent
      .then((one) => one.closeWhenIdle())
      .catch(() => undefined) // it was never started
      .finally(() => this.#retired.delete(ending));
    this.#retired.add(ending);
  }
}

/** CODING-AGENTS-2 */
function withoutSecrets({ env }: CodingSettings): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ParleyError)) throw error;
    const hide = hideValues(
      Object.values(env).flatMap((value) => (typeof value === 'string' ? [] : value.reveal())),
    );
    error.message = hide(error.message);
    throw error;
  };
}

export function environmentOf({ env }: CodingSettings): Record<string, string> {
  const texts = Object.entries(env).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : value.reveal(),
  ]);
  return Object.fromEntries(texts);
}
