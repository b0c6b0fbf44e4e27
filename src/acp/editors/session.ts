import {
  type AgentContext,
  type ContentBlock,
  methods,
  type SessionModeState,
  type StopReason,
} from '@agentclientprotocol/sdk';
import {
  type ConversationDetail,
  logEntries,
  type ParleyClient,
  type WorkflowSummary,
} from '../../client/index.ts';
import type { Entry, FilePart, OpenCall } from '../../conversation/index.ts';
import { hasVisible } from '../../kernel/index.ts';
import { bytesOf, notKept, shownBlocks } from '../blocks.ts';
import { postOf } from './content.ts';
import type { Person, SessionContext } from './context.ts';
import { invalid, modeIdOf, modeRequest, modesOf } from './modes.ts';
import { Prompt } from './prompt.ts';
import { Updates } from './updates.ts';

export interface SessionOptions extends Person {
  readonly id: string;
  readonly cwd: string;
  readonly editor: AgentContext;
  readonly client: ParleyClient;
  readonly workflows: readonly WorkflowSummary[];
}

/** One session: a conversation, and what of it the client was sent. */
export class Session {
  readonly #options: SessionOptions;
  readonly #context: SessionContext;
  #prompt: Prompt | null = null;
  #question: OpenCall | null = null;
  #mode = '';

  constructor(options: SessionOptions) {
    this.#options = options;
    const { cwd, workflows, actor, editor, id: sessionId } = options;
    const ownId = actor.author ? `${actor.publisher}/${actor.author.name}` : actor.publisher;
    const isOwn = ({ author }: Entry) => author.kind === 'person' && author.id === ownId;
    const blocks = (files: readonly FilePart[]) =>
      shownBlocks(files, ({ sha256 }) => options.client.download(sessionId, sha256));
    this.#context = {
      ...options,
      updates: new Updates({ cwd, workflows, isOwn }),
      next: 0,
      async send(updates) {
        for (const given of updates) {
          const ready = 'files' in given ? given.with(await blocks(given.files)) : [given];
          for (const update of ready)
            await editor.notify(methods.client.session.update, { sessionId, update });
        }
      },
    };
  }

  /** `detail`: null for a conversation that does not exist yet. */
  async modes(detail: ConversationDetail | null): Promise<SessionModeState> {
    const modes = await modesOf(this.#options.client, detail);
    this.#mode = modes.currentModeId;
    return modes;
  }

  /** Sends the whole log. */
  async replay(): Promise<void> {
    const { client, id } = this.#options;
    const { send, updates } = this.#context;
    for await (const entry of logEntries(client, id, 0)) {
      this.#context.next = entry.index + 1;
      await send(updates.past(entry));
    }
  }

  /** What is in the log is known to the client. */
  skip(length: number): void {
    this.#context.next = length;
  }

  async enterMode(modeId: string): Promise<void> {
    const { client, id: conversation, actor } = this.#options;
    this.#mode = modeIdOf(await client.request('mode', { conversation, ...modeRequest(modeId), ...actor }));
  }

  /** `signal`: aborts when the client cancels the request or disconnects. */
  async prompt(
    blocks: readonly ContentBlock[],
    signal: AbortSignal,
    closed: AbortSignal,
  ): Promise<StopReason> {
    if (this.#prompt)
      throw invalid(
        `a prompt of the session ${this.#options.id} runs; wait for its end, or cancel it with session/cancel`,
      );
    const { text, files } = postOf(blocks);
    if (!hasVisible(text) && files.length === 0) throw invalid('the prompt is empty; send some text');
    const uploads = files.map(({ name, ...file }) => ({ name, bytes: bytesOf(file) ?? brokenBase64(file) }));
    const prompt = new Prompt(this.#context);
    this.#prompt = prompt;
    const onAbort = () => (closed.aborted ? prompt.leave() : prompt.cancel());
    signal.addEventListener('abort', onAbort);
    try {
      const reason = await prompt.run({ text, uploads }, this.#question);
      this.#question = prompt.questions[0] ?? null;
      if (!closed.aborted) await this.#sendMode();
      return reason;
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#prompt = null;
    }
  }

  cancel(): void {
    this.#prompt?.cancel();
  }

  /** A handoff or a run may have changed who answers. */
  async #sendMode(): Promise<void> {
    const { client, id: conversation } = this.#options;
    const detail = await client.request('conversation', { conversation }).catch(() => null); // shown after the next prompt
    const currentModeId = detail === null ? this.#mode : modeIdOf(detail);
    if (currentModeId === this.#mode) return;
    this.#mode = currentModeId;
    await this.#context.send([{ sessionUpdate: 'current_mode_update', currentModeId }]);
  }
}

function brokenBase64(file: Parameters<typeof notKept>[0]): never {
  throw invalid(`nothing was posted: ${notKept(file, 'its base64 is broken')}`);
}
