import { randomUUID } from 'node:crypto';
import type { FollowEvent, ParleyClient } from '../../client/index.ts';
import type { Context } from '../context.ts';
import { publisherOf, senderOf } from '../publisher.ts';
import { type Failure, failureOf, renderFailure } from '../render/failure.ts';
import { voiceOf } from '../render/palette.ts';
import { createTranscript, type Transcript } from '../render/transcript.ts';
import { createTurnWatch } from '../turn-watch.ts';
import { parseChatLine } from './commands.ts';
import { obey } from './obey.ts';

/**
 * One person in one conversation: lines in, text out. Knows nothing of the keyboard and the screen.
 *
 * H1 One's own messages are not printed again; everybody else's are.
 * H2 A line that fails says why, and the chat goes on.
 */
export interface ChatSession {
  /** Does what a line says; false: the person wants to leave. Never rejects. */
  line(text: string): Promise<boolean>;
  /** Shows what happens until the signal aborts. */
  follow(events: AsyncIterable<FollowEvent>): Promise<void>;
  /** Resolves when no turn is left to run. Failed lines and turns are told, not thrown. */
  settled(): Promise<void>;
  /** Aborts the turns that run; false if none does. */
  abort(): Promise<boolean>;
  /** The agents whose words are awaited. */
  readonly busy: boolean;
  /** True if a line or a turn failed. */
  readonly failed: boolean;
}

export interface SessionOptions {
  readonly conversation: string;
  readonly as: string | undefined;
  /** Where text goes. */
  readonly print: (text: string) => void;
}

export function createSession(context: Context, client: ParleyClient, options: SessionOptions): ChatSession {
  return new Session(context, client, options);
}

class Session implements ChatSession {
  readonly #context: Context;
  readonly #client: ParleyClient;
  readonly #options: SessionOptions;
  readonly #transcript: Transcript;
  readonly #watch = createTurnWatch();
  readonly #own = new Set<string>();
  readonly #names = new Map<string, string>();
  readonly #waiters: (() => void)[] = [];
  #failed = false;

  constructor(context: Context, client: ParleyClient, options: SessionOptions) {
    const { palette } = context;
    this.#context = context;
    this.#client = client;
    this.#options = options;
    const label = (agent: string) => `${voiceOf(agent, palette)(this.#names.get(agent) ?? agent)}: `;
    this.#transcript = createTranscript({ palette, label, details: true });
  }

  get busy(): boolean {
    return !this.#watch.settled && !this.#transcript.speaking;
  }

  get failed(): boolean {
    return this.#failed;
  }

  async line(text: string): Promise<boolean> {
    try {
      const line = parseChatLine(text);
      if (line.kind === 'quit') return false;
      if (line.kind === 'message') await this.#post(line.text);
      else await this.#obey(line);
    } catch (error) {
      this.#failed = true;
      this.#tell(failureOf(error)); // H2
    }
    return true;
  }

  async follow(events: AsyncIterable<FollowEvent>): Promise<void> {
    const { agents } = await this.#client.request('agents', {});
    for (const { slug, name } of agents) this.#names.set(slug, name);
    for await (const event of events) this.#show(event);
    this.#options.print(this.#transcript.close());
  }

  settled(): Promise<void> {
    return this.#watch.settled ? Promise.resolve() : new Promise((resolve) => this.#waiters.push(resolve));
  }

  async abort(): Promise<boolean> {
    if (this.#watch.settled) return false;
    const { conversation } = this.#options;
    await this.#client.request('stop', { conversation });
    await this.#client.request('resume', { conversation });
    return true;
  }

  #obey(line: Parameters<typeof obey>[0]): Promise<void> {
    const { palette } = this.#context;
    const publisher = publisherOf(this.#context);
    return obey(line, { ...this.#options, client: this.#client, publisher, palette });
  }

  #tell(failure: Failure): void {
    if (this.#context.json) this.#context.value({ error: failure });
    else this.#context.note(renderFailure(failure));
  }

  async #post(content: string): Promise<void> {
    const id = randomUUID();
    this.#own.add(id);
    const sender = senderOf(this.#context, this.#options.as);
    const { conversation } = this.#options;
    const { index, agents } = await this.#client.post({ conversation, content, id, ...sender });
    this.#watch.owe(index, agents);
    if (agents.length === 0) this.#context.note('nobody answers this one');
  }

  #show(event: FollowEvent): void {
    const { json } = this.#context;
    const { print } = this.#options;
    if (event.kind === 'live') {
      if (!json) print(this.#transcript.live(event.agent, event.chunk));
      return;
    }
    const { entry } = event;
    this.#watch.observe(entry);
    if (entry.type === 'turn-ended' && entry.outcome === 'failed') this.#failed = true;
    if (json) print(`${JSON.stringify(entry)}\n`);
    else if (!this.#own.has(entry.id)) print(this.#transcript.entry(entry)); // H1
    if (this.#watch.settled) for (const wake of this.#waiters.splice(0)) wake();
  }
}
