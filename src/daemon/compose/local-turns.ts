import type { AcpAnswer, AcpProgress, OfferedTurn, ToolRequest, TurnMessage } from '../../acp/index.ts';
import { messageOf } from '../../kernel/index.ts';

/**
 * Offers turns to a handler in this process, with the messages that agents in other processes exchange over the bus (docs/spec/wire.md): the
 * daemon treats both alike.
 *
 * LOCAL-TURNS-1 The handler runs until it answers or the offer is closed; what it sends later is ignored.
 * LOCAL-TURNS-2 One call of tools at a time: the next one waits for the results of the one before.
 */

/** The body of an offer; `RemoteOffer` of the models. */
type Offer = Pick<OfferedTurn, 'conversation' | 'turnId' | 'messages' | 'tools' | 'sessionId' | 'missed'> & {
  readonly heartbeatMs: number;
};

interface Results {
  readonly results: readonly { readonly content: string }[];
  readonly messages?: readonly TurnMessage[];
}

type Message =
  | ({
      readonly type: 'tool_call';
      readonly id: string;
      readonly calls: readonly { readonly name: string; readonly arguments: string }[];
      readonly content?: string | undefined;
    } & AcpProgress)
  | ({ readonly type: 'final'; readonly parts?: AcpAnswer['files'] } & Omit<AcpAnswer, 'files'>)
  | ({ readonly type: 'failed'; readonly code: string; readonly message: string } & Pick<
      AcpAnswer,
      'prompt'
    >);

type Event =
  | { readonly type: 'alive' }
  | { readonly type: 'text'; readonly call: string; readonly delta: string }
  | { readonly type: 'message'; readonly message: Message; readonly from: string | null };

/** A piece of text that followers see. */
export interface LivePiece {
  readonly turnId: string;
  readonly call: string;
  readonly n: number;
  readonly type: 'text' | 'reasoning' | 'tool_call_delta';
  readonly delta: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
}

export type Handler = (turn: OfferedTurn) => Promise<AcpAnswer>;

/** The channel of one offer (`RemoteChannel` of the models). */
export class LocalTurn {
  readonly isOurs = true;
  readonly #handler: Handler;
  readonly #publish: (conversation: string, piece: LivePiece) => void;
  readonly #over = new AbortController();
  readonly #news: TurnMessage[] = [];
  readonly #waiting = new Map<string, (results: Results) => void>();
  #calls: Promise<unknown> = Promise.resolve();
  #asked = 0;
  #pieces = 0;

  constructor(handler: Handler, publish: (conversation: string, piece: LivePiece) => void) {
    this.#handler = handler;
    this.#publish = publish;
  }

  async offer(offer: Offer, _timeoutMs: number, onEvent: (event: Event) => void) {
    void this.#run(offer, (event) => {
      if (!this.#over.signal.aborted) onEvent(event); // LOCAL-TURNS-1
    });
    return { kind: 'accepted', instance: 'local' } as const;
  }

  answer(from: string | null, results: Results): boolean {
    this.#waiting.get(from ?? '')?.(results);
    return true;
  }

  close(): void {
    this.#over.abort(new Error('the daemon has taken the turn back'));
  }

  async #run({ heartbeatMs, ...shown }: Offer, give: (event: Event) => void): Promise<void> {
    const beat = setInterval(() => give({ type: 'alive' }), heartbeatMs);
    const turn: OfferedTurn = {
      ...shown,
      news: this.#news,
      signal: this.#over.signal,
      write: (delta) => {
        if (delta === '') return;
        const call = this.#show(shown, { type: 'text', delta });
        give({ type: 'text', call, delta });
      },
      think: (delta) => delta !== '' && this.#show(shown, { type: 'reasoning', delta }),
      showCall: (toolCallId, toolName) =>
        this.#show(shown, { type: 'tool_call_delta', toolCallId, toolName, delta: '' }),
      callTools: (calls, content, soFar) => {
        const called = this.#calls.then(() => this.#ask(calls, { content, ...soFar }, give)); // LOCAL-TURNS-2
        this.#calls = called.catch(() => undefined); // the handler gets the error from `called`
        return called;
      },
    };
    const message = await this.#handler(turn).then(
      ({ files: parts, ...answer }): Message => ({ type: 'final', ...answer, ...(parts && { parts }) }),
      (error): Message => ({
        type: 'failed',
        code: error instanceof Error && 'code' in error ? String(error.code) : 'AGENT_FAILED',
        message: messageOf(error),
        ...(error instanceof Error && 'prompt' in error && { prompt: error.prompt as AcpAnswer['prompt'] }),
      }),
    );
    clearInterval(beat);
    give({ type: 'message', message, from: null });
  }

  /** The call that the piece belongs to. */
  #show(
    { conversation, turnId }: Pick<Offer, 'conversation' | 'turnId'>,
    piece: Omit<LivePiece, 'turnId' | 'call' | 'n'>,
  ): string {
    const call = `local-${this.#asked}`;
    if (!this.#over.signal.aborted)
      this.#publish(conversation, { turnId, call: `${turnId}-${call}`, n: this.#pieces++, ...piece });
    return call;
  }

  #ask(
    calls: readonly ToolRequest[],
    said: AcpProgress & { readonly content?: string | undefined },
    give: (event: Event) => void,
  ) {
    const { signal } = this.#over;
    const id = `call-${++this.#asked}`;
    this.#pieces = 0;
    const made = calls.map((call) => ({ name: call.name, arguments: JSON.stringify(call.arguments) }));
    return new Promise<Results['results']>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const end = () => {
        this.#waiting.delete(id);
        signal.removeEventListener('abort', onAbort);
      };
      const onAbort = () => {
        end();
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.set(id, ({ results, messages = [] }) => {
        end();
        this.#news.push(...messages);
        resolve(results);
      });
      give({
        type: 'message',
        message: { type: 'tool_call', id, calls: made, ...said },
        from: id,
      });
    });
  }
}
