import type { AcpAnswer, AcpProgress, CodingAgent, OfferedTurn, ToolRequest } from '../../acp/index.ts';
import { settingDigest } from '../../config/index.ts';
import type { FilePart, LiveChunk } from '../../conversation/index.ts';
import { abortable, hideValues, inOrder, messageOf, ParleyError } from '../../kernel/index.ts';
import type {
  RemoteChannel,
  RemoteEvent,
  RemoteMessage,
  RemoteOffer,
  RemoteResults,
} from '../../models/remote/index.ts';
import type { Enclose } from '../../tools/index.ts';
import type { CodingSettings } from '../team/team.ts';

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

type Handler = (turn: OfferedTurn) => Promise<AcpAnswer>;

/**
 * The channel of one offer: offers the turn to a handler in this process, with the messages that agents
 * in other processes exchange over the bus (docs/spec/wire.md), so that the daemon treats both alike.
 *
 * LOCAL-TURNS-1 The handler runs until it answers or the offer is closed; what it sends later is ignored.
 * LOCAL-TURNS-2 One call of tools at a time: the next one waits for the results of the one before.
 */
class LocalTurn implements RemoteChannel {
  readonly isOurs = true;
  readonly #handler: Handler;
  readonly #publish: (conversation: string, piece: LiveChunk) => void;
  readonly #over = new AbortController();
  readonly #news: OfferedTurn['news'][number][] = [];
  readonly #waiting = new Map<string, (results: RemoteResults) => void>();
  #soFar: () => AcpProgress = () => ({});
  readonly #inOrder = inOrder(); // LOCAL-TURNS-2
  #asked = 0;
  #pieces = 0;

  constructor(handler: Handler, publish: (conversation: string, piece: LiveChunk) => void) {
    this.#handler = handler;
    this.#publish = publish;
  }

  async offer(offer: RemoteOffer, _timeoutMs: number, onEvent: (event: RemoteEvent) => void) {
    void this.#run(offer, (event) => {
      if (!this.#over.signal.aborted) onEvent(event); // LOCAL-TURNS-1
    });
    return { kind: 'accepted', instance: 'local' } as const;
  }

  answer(from: string | null, results: RemoteResults): boolean {
    this.#waiting.get(from ?? '')?.(results);
    return true;
  }

  soFar(): AcpProgress {
    return this.#soFar();
  }

  close(): void {
    this.#over.abort(new Error('the daemon has taken the turn back'));
  }

  async #run({ heartbeatMs, ...shown }: RemoteOffer, give: (event: RemoteEvent) => void): Promise<void> {
    const beat = setInterval(() => give({ type: 'alive' }), heartbeatMs);
    const turn: OfferedTurn = {
      ...shown,
      news: this.#news,
      signal: this.#over.signal,
      reports: (soFar) => {
        this.#soFar = soFar;
      },
      write: (delta) => {
        if (delta === '') return;
        const call = this.#show(shown, { type: 'text', delta });
        give({ type: 'text', call, delta });
      },
      think: (delta) => delta !== '' && this.#show(shown, { type: 'reasoning', delta }),
      showCall: (toolCallId, toolName) =>
        this.#show(shown, { type: 'tool_call_delta', toolCallId, toolName, delta: '' }),
      callTools: (calls, content, soFar) =>
        this.#inOrder(() => this.#ask(calls, { content, ...soFar }, give)),
    };
    const message = await this.#handler(turn).then(
      ({ files: parts, ...answer }): RemoteMessage => ({ type: 'final', ...answer, ...(parts && { parts }) }),
      (error): RemoteMessage => ({
        type: 'failed',
        code: error instanceof Error && 'code' in error ? String(error.code) : 'AGENT_FAILED',
        message: messageOf(error),
        ...(Object(error) as { readonly soFar?: AcpProgress }).soFar,
      }),
    );
    clearInterval(beat);
    give({ type: 'message', message, from: null });
  }

  /** The call that the piece belongs to. */
  #show(
    { conversation, turnId }: Pick<RemoteOffer, 'conversation' | 'turnId'>,
    piece: Omit<LiveChunk, 'turnId' | 'call' | 'n'>,
  ): string {
    const call = `local-${this.#asked}`;
    if (!this.#over.signal.aborted)
      this.#publish(conversation, { turnId, call: `${turnId}-${call}`, n: this.#pieces++, ...piece });
    return call;
  }

  async #ask(
    calls: readonly ToolRequest[],
    said: AcpProgress & { readonly content?: string | undefined },
    give: (event: RemoteEvent) => void,
  ) {
    const { signal } = this.#over;
    signal.throwIfAborted();
    const id = `call-${++this.#asked}`;
    this.#pieces = 0;
    const made = calls.map((call) => ({ name: call.name, arguments: JSON.stringify(call.arguments) }));
    const answer = new Promise<RemoteResults>((resolve) => this.#waiting.set(id, resolve));
    give({
      type: 'message',
      message: { type: 'tool_call', id, calls: made, ...said },
      from: id,
    });
    try {
      const { results, messages = [] } = await abortable(answer, signal);
      this.#news.push(...messages);
      return results;
    } finally {
      this.#waiting.delete(id);
    }
  }
}
