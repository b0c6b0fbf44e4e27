import type { RemoteCall, RemoteEvent, RemoteLine, RemoteMessage, RemoteResults } from './port.ts';

/**
 * One offer that was made, for as long as its agent works on it.
 *
 * REMOTE-SESSION-1 What arrives is kept in order until it is asked for: an agent may say more than one thing while a tool runs.
 * REMOTE-SESSION-2 A tool call that arrives again is not another one: if it was answered, it gets the same answer. It has the same `id`,
 *    or without one the same reply subject; between accounts of a server that differs each time. The newest is answered.
 * REMOTE-SESSION-3 Silence is counted in ticks without a sign of life, so that a daemon that was itself frozen does not take its own
 *    sleep for the agent's.
 */

export type Heard =
  | { readonly type: 'tool_call'; readonly message: ToolCallMessage; readonly from: string | null }
  | { readonly type: 'final'; readonly message: Extract<RemoteMessage, { type: 'final' }> }
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
  | { readonly type: 'invalid'; readonly reason: string }
  | { readonly type: 'silent' }
  | { readonly type: 'aborted' };

interface Pending {
  readonly calls: readonly RemoteCall[];
  readonly key: string | null;
  readonly from: string | null;
}

type HeardCall = Extract<Heard, { type: 'tool_call' }>;
type ToolCallMessage = Extract<RemoteMessage, { type: 'tool_call' }>;

/** REMOTE-SESSION-3: an agent that is silent for this many ticks, each a part of the time it may be silent, is gone. */
const TICKS = 4;

export class RemoteSession {
  readonly epoch: number;
  private readonly line: RemoteLine;
  private readonly waiting: Heard[] = [];
  private wake: (() => void) | null = null;
  private missed = 0;
  private text = { call: '', content: '' };
  private pending: Pending | null = null;
  private readonly answered = new Map<string, RemoteResults>();

  constructor(line: RemoteLine, epoch: number) {
    this.line = line;
    this.epoch = epoch;
  }

  /** Text of the call under way that its chunks showed so far. */
  get partial(): string {
    return this.text.content;
  }

  /** The calls whose results the agent waits for. */
  get pendingCalls(): readonly RemoteCall[] | null {
    return this.pending?.calls ?? null;
  }

  hear(event: RemoteEvent): void {
    this.missed = 0;
    if (event.type === 'text') this.addText(event.call, event.delta);
    else if (event.type === 'invalid') this.put(event);
    else if (event.type === 'message') this.hearMessage(event.message, event.from);
  }

  /** The next thing the agent says that matters; or its silence, or the signal, whichever comes first. */
  async next(signal: AbortSignal, silenceMs: number): Promise<Heard> {
    this.missed = 0;
    for (;;) {
      if (signal.aborted) return { type: 'aborted' };
      const heard = this.waiting.shift();
      if (heard) return heard;
      if (this.missed >= TICKS) return { type: 'silent' };
      await this.tick(signal, silenceMs / TICKS);
    }
  }

  /** From now on the calls of this message wait for `answer`. */
  expectResults(heard: HeardCall): void {
    this.pending = { calls: heard.message.calls, key: keyOf(heard), from: heard.from };
    this.text = { call: '', content: '' };
  }

  /** False: the results are larger than the transport carries. */
  answer(results: RemoteResults): boolean {
    const { pending } = this;
    if (!pending || !this.line.answer(pending.from, results)) return false;
    this.pending = null;
    if (pending.key !== null) this.answered.set(pending.key, results);
    return true;
  }

  close(how: 'done' | 'abort'): void {
    this.line.close(how);
  }

  private hearMessage(message: RemoteMessage, from: string | null): void {
    switch (message.type) {
      case 'heartbeat':
        return;
      case 'tool_call':
        this.hearCall({ type: 'tool_call', message, from });
        return;
      case 'final':
        this.put({ type: 'final', message });
        return;
      case 'failed':
        this.put({ type: 'failed', code: message.code, message: message.message });
    }
  }

  /** REMOTE-SESSION-2 */
  private hearCall(heard: HeardCall): void {
    const key = keyOf(heard);
    const answered = key === null ? undefined : this.answered.get(key);
    const place = this.waiting.findIndex((other) => other.type === 'tool_call' && keyOf(other) === key);
    if (key === null) this.put(heard);
    else if (answered) this.line.answer(heard.from, answered);
    else if (this.pending?.key === key) this.pending = { ...this.pending, from: heard.from };
    else if (place >= 0) this.waiting[place] = heard;
    else this.put(heard);
  }

  private addText(call: string, delta: string): void {
    this.text = { call, content: this.text.call === call ? this.text.content + delta : delta };
  }

  private put(heard: Heard): void {
    this.waiting.push(heard); // REMOTE-SESSION-1
    this.wake?.();
  }

  private tick(signal: AbortSignal, milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.wake = null;
        resolve();
      };
      const timer = setTimeout(() => {
        this.missed += 1;
        done();
      }, milliseconds);
      this.wake = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

function keyOf({ message, from }: HeardCall): string | null {
  return message.id ?? from;
}
