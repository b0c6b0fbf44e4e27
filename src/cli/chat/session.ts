import { randomUUID } from 'node:crypto';
import {
  createTurnWatch,
  type Entry,
  type FilePart,
  type FollowEvent,
  fileLine,
  isUnreachable,
  logEntries,
  MODES,
  type ParleyClient,
  ParleyError,
  type PostAnswer,
  type PostMessage,
  revertibleStop,
  unknownMentionsText,
} from '../../client/index.ts';
import { escapeHidden, hasVisible } from '../../kernel/index.ts';
import { sendFiles } from '../commands/conversations/file.ts';
import type { Context } from '../context.ts';
import type { Connected } from '../find-daemon.ts';
import { createWaitingApprovals, thoseThatMayAnswer } from '../follow/post-and-wait.ts';
import type { Actor } from '../options/publisher.ts';
import { renderAgents, renderState } from '../render/state.ts';
import { renderFailure, voiceOf } from '../render/text.ts';
import { Transcript } from '../render/transcript.ts';
import { renderView } from '../render/view.ts';

interface SessionOptions {
  readonly conversation: string;
  readonly actor: Actor;
  readonly print: (text: string) => void;
  /** Prints other lines, such as errors. */
  readonly note: (text: string) => void;
  /** A person types each line, can be asked (SESSION-3), and can wait (SESSION-5). */
  readonly isTyped?: boolean;
}

/**
 * One person in one conversation: lines in, text out. Independent of keyboard and screen.
 *
 * SESSION-1 The person's own messages are not printed again; all other messages are.
 * SESSION-2 A failed line prints an error, and the chat continues.
 * SESSION-3 A message is never an approval. A text that looks like one is sent when it is typed again.
 * SESSION-4 Without an id, `/approve` and `/deny` decide only a call that this chat has printed.
 * SESSION-5 While the daemon does not answer, a person can type, and messages are kept (CHAT-OUTBOX-2). For that person an
 *    interrupted answer is printed again from its beginning.
 * SESSION-6 A file is sent with the next message that is typed, also if it is still being uploaded. One that is refused leaves it
 *    to the next.
 * SESSION-7 An abort stops the agents whose turns are open, and resumes them, except those that another person stopped, too.
 */
export class ChatSession {
  /** True if a line or a turn failed, or a turn reached a limit. */
  failed = false;
  readonly outbox: ReturnType<typeof createOutbox>;
  /** The paths of the files of each message, by its id, as the person named them. */
  readonly paths = new Map<string, readonly string[]>();
  readonly #context: Connected;
  readonly #options: SessionOptions;
  readonly #transcript: Transcript;
  readonly #approvals: ReturnType<typeof createWaitingApprovals>;
  readonly #watch = createTurnWatch();
  readonly #own = new Set<string>();
  /** The newest observed index, and the index that must be observed before the watch is valid. */
  #seen = -1;
  #wanted = -1;
  readonly #names = new Map<string, string>();
  readonly #waiters: (() => void)[] = [];
  /** SESSION-6 */
  #files: readonly ChosenFile[] = [];
  /** The text that the person was asked about (SESSION-3). */
  #doubtful: string | null = null;

  constructor(context: Connected, options: SessionOptions) {
    const { palette } = context;
    this.#context = context;
    this.#options = options;
    const label = (agent: string) => `${voiceOf(agent, palette)(this.#names.get(agent) ?? agent)}: `;
    this.#transcript = new Transcript({ palette, label, details: true });
    const { conversation, isTyped, note } = options;
    const commands = isTyped ? { ...context, command: inChat(context) } : context;
    this.#approvals = createWaitingApprovals(commands, conversation, note);
    this.outbox = createOutbox(context.client, () => this.reach(false));
  }

  /** `speaking`: an answer streams; `awaited`: one is expected; `free`: neither. */
  get floor(): 'speaking' | 'awaited' | 'free' {
    if (this.#transcript.speaking) return 'speaking';
    return this.#isQuiet || this.isAway ? 'free' : 'awaited';
  }

  get isAway(): boolean {
    return this.outbox.isAway;
  }

  /** Executes a line; false: the person leaves. Never rejects. */
  async line(text: string): Promise<boolean> {
    try {
      const line = parseChatLine(text);
      if (line.kind === 'quit') return false;
      if (line.kind === 'message') await this.#say(line.text);
      else if (line.kind === 'run') await this.#post(line.text, { workflow: line.workflow });
      else if (line.kind === 'answer') await this.#answer(line.text);
      else if (line.kind === 'decide') await this.#decide(line);
      else if (line.kind !== 'nothing') await this.#execute(line);
    } catch (error) {
      if (!this.outbox.hasLeft) this.fail(error);
    }
    return true;
  }

  /** Reports whether the daemon answers (SESSION-5). */
  reach(isReachable: boolean): void {
    if (!this.outbox.reach(isReachable)) return;
    const { isTyped, print } = this.#options;
    const kept = isTyped ? ': messages are kept, and sent when it does' : '';
    if (!isReachable && isTyped) print(this.#transcript.close());
    this.#mark(isReachable ? 'the daemon answers again' : `the daemon does not answer${kept}`);
  }

  /** Records an earlier entry without printing it. */
  recall(entry: Entry): void {
    this.#seen = entry.index;
    this.#watch.observe(entry);
  }

  /** Reports a line that cannot be read (SESSION-2). */
  fail(error: unknown): void {
    this.failed = true;
    const failure = this.#context.failure(error);
    if (this.#context.json) this.#context.value({ error: failure });
    else this.#options.note(renderFailure(failure));
  }

  /** Prints the events until they end. */
  async follow(events: AsyncIterable<FollowEvent>): Promise<void> {
    const { agents } = await this.#context.request('agents', {});
    for (const { slug, name } of agents) this.#names.set(slug, name);
    for await (const event of events) await this.#show(event);
    this.#options.print(this.#transcript.close());
  }

  /** Resolves when no turn can run until a person answers. */
  quiet(): Promise<void> {
    return this.#isQuiet ? Promise.resolve() : new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** SESSION-7. False: no turn is open. */
  async abort(): Promise<boolean> {
    const { open } = this.#watch;
    if (open.length === 0) return false;
    const { conversation, actor } = this.#options;
    const log: Entry[] = [];
    for (const { agent } of open) await this.#context.request('stop', { conversation, agent, ...actor });
    const from = Math.min(...open.map(({ since }) => since));
    for await (const entry of logEntries(this.#context.client, conversation, from)) log.push(entry);
    for (const { agent, since } of open) {
      const stop = revertibleStop(
        log.filter(({ index }) => index > since),
        agent,
      );
      if (stop !== null) await this.#context.request('resume', { conversation, agent, stop, ...actor });
    }
    return true;
  }

  get #isQuiet(): boolean {
    return this.#watch.quiet || (this.#seen >= this.#wanted && this.#watch.held);
  }

  /** Executes a `/` command, and prints its result. */
  async #execute(
    line: Exclude<ChatLine, { kind: 'nothing' | 'message' | 'quit' | 'decide' | 'answer' | 'run' }>,
  ): Promise<void> {
    const { conversation, actor } = this.#options;
    const { request, palette } = this.#context;
    switch (line.kind) {
      case 'help':
        return this.#result({ help: CHAT_HELP }, ({ help }) => help);
      case 'agents':
        return this.#result(await request('agents', {}), ({ agents }) => renderAgents(agents, palette));
      case 'phase': {
        const entered = await request('phase', { conversation, phase: line.phase, ...actor });
        return this.#result(entered, renderState);
      }
      case 'mode':
        return this.#result(await this.#enterMode(line), renderState);
      case 'explain': {
        const view = await request('view', { conversation, agent: line.agent });
        return this.#result(view, (one) => renderView(one, palette));
      }
      case 'file':
        return this.#attach(line.path);
      case 'wrong':
        throw new ParleyError('USAGE', line.say);
    }
  }

  #result<T>(value: T, text: (value: T) => string): void {
    if (this.#context.json) this.#context.value(value);
    else this.#options.print(`${text(value)}\n`);
  }

  async #attach(path: string): Promise<void> {
    const { isTyped, actor } = this.#options;
    const send = () => sendFiles(this.#context, [path], actor.publisher);
    const sent = send().catch((error: unknown) => {
      if (!isTyped || !isUnreachable(error)) throw error;
      return this.outbox.untilAnswered(send);
    });
    const chosen = { path, parts: sent.catch(() => []) };
    this.#files = [...this.#files, chosen];
    const parts = await sent.catch((error: unknown) => {
      this.#files = this.#files.filter((one) => one !== chosen);
      throw error;
    });
    const isTaken = !this.#files.includes(chosen);
    const next = isTaken ? parts : await partsOf(this.#files);
    const text = `with ${isTaken ? 'your' : 'the next'} message: ${next.map(fileLine).join(' ')}`;
    this.#result({ files: next }, () => text);
  }

  #enterMode(line: ChatLine & { kind: 'mode' }) {
    const { conversation, actor } = this.#options;
    const mode = MODES.find((one) => one === line.mode);
    if (mode === undefined) {
      throw new ParleyError('USAGE', `there is no mode ${line.mode}`, { hint: 'chat, agent or run' });
    }
    return this.#context.request('mode', { conversation, mode, agent: line.agent, ...actor });
  }

  #mark(text: string): void {
    this.#options.note(this.#context.palette.dim(`· ${text}`));
  }

  async #say(text: string): Promise<void> {
    const isDoubtful = this.#options.isTyped && text !== this.#doubtful && looksLikeAnAnswer(text);
    this.#doubtful = null;
    await this.#post(text, {}, async () => {
      if (!isDoubtful || (await this.#pending()).length === 0) return;
      this.#doubtful = text;
      throw new ParleyError('USAGE', 'a call waits for approval: /approve or /deny decides', {
        hint: 'type it again to send it as a message',
      });
    });
  }

  async #pending() {
    const { conversation } = this.#options;
    return (await this.#context.request('approvals', { conversation })).approvals;
  }

  /** The question may be over before the answer arrives. */
  async #answer(text: string): Promise<void> {
    const { conversation, note } = this.#options;
    const [agent] = this.#watch.asking;
    if (agent === undefined) throw new ParleyError('USAGE', 'no agent waits for an answer');
    const { index } = await this.#post(text, { to: [agent] });
    const { entries } = await this.#context.request('entries', { conversation, from: index + 1, limit: 1 });
    const [result] = entries;
    if (result?.type === 'message' && result.answers?.includes(index)) return;
    note(`${agent} did not wait for an answer any more: your answer is a message to it`);
  }

  async #decide({ answer, words }: Extract<ChatLine, { kind: 'decide' }>): Promise<void> {
    const pending = await this.#pending();
    const named = pending.find(({ approvalId }) => approvalId === words[0]);
    const [only, ...others] = pending;
    const chosen = named ?? (others.length === 0 ? only : undefined);
    if (answer === 'approve' && words.length > 0 && !named)
      throw new ParleyError('NOT_FOUND', `no call with the approval id ${words[0]} waits here`);
    if (!chosen) {
      const ids = pending.map(({ approvalId }) => approvalId).join(', ');
      throw new ParleyError('USAGE', ids ? `name one: ${ids}` : 'no call waits for approval here');
    }
    if (!named && !this.#approvals.isShown(chosen.approvalId)) {
      await this.#approvals.others();
      throw new ParleyError('USAGE', `this call was not shown before: type /${answer} again`);
    }
    const { approvalId } = chosen;
    const reason = (named ? words.slice(1) : words).join(' ');
    const request = { approvalId, answer, ...(reason && { reason }), ...this.#options.actor };
    await this.#context.request('answer', request);
    this.#options.note(`${approvalId}: ${answer}`);
  }

  /** `check`: just before it is sent; throws if it is not to be sent. */
  async #post(
    content: string,
    more: Pick<PostMessage, 'workflow' | 'to'> = {},
    check: () => Promise<void> = async () => {},
  ) {
    const id = randomUUID();
    this.#own.add(id);
    const { conversation, actor, note, isTyped } = this.#options;
    const files = this.#files;
    this.#files = [];
    this.paths.set(
      id,
      files.map(({ path }) => path),
    );
    const message = { conversation, content, id, ...more, ...actor };
    const whole = async (): Promise<PostMessage> => {
      await check();
      const parts = await partsOf(files);
      return parts.length > 0 ? { ...message, parts } : message;
    };
    if (this.isAway && isTyped) this.#mark('kept');
    const sent = isTyped ? this.outbox.send(message, whole) : this.#context.client.post(await whole());
    const answer = await sent.catch((error: unknown) => {
      this.#files = [...files, ...this.#files];
      throw error;
    });
    this.#wanted = Number.POSITIVE_INFINITY;
    // Entries of the same batch, such as the result of the answered call, are in the log by now.
    const state = () => this.#context.request('conversation', { conversation });
    const { length, agents } = await (isTyped ? this.outbox.untilAnswered(state) : state());
    this.#watch.addOutstanding(answer.index, thoseThatMayAnswer(this.#context, answer, agents, note));
    this.#wanted = length - 1;
    if (answer.agents.length === 0) note('no agent answers this message');
    if (answer.unknownMentions) note(unknownMentionsText(answer.unknownMentions));
    if (Object.values(agents).some(({ status }) => status === 'waiting')) await this.#approvals.others();
    return answer;
  }

  async #show(event: FollowEvent): Promise<void> {
    const { json } = this.#context;
    const { print } = this.#options;
    this.reach(true); // events may arrive before the log is read again
    if (event.kind === 'live') {
      if (!json) print(this.#transcript.live(event.agent, event.chunk));
      return;
    }
    const { entry } = event;
    this.recall(entry);
    if (entry.type === 'turn-ended' && (entry.outcome === 'failed' || entry.outcome === 'limited'))
      this.failed = true;
    if (json) print(`${escapeHidden(JSON.stringify(entry))}\n`);
    else if (!this.#own.has(entry.id)) print(this.#transcript.entry(entry));
    if (entry.type === 'approval-requested') await this.#approvals.requested(entry);
    if (this.#isQuiet) for (const wake of this.#waiters.splice(0)) wake();
  }
}

/** A file that goes with a message. */
interface ChosenFile {
  /** As typed. */
  readonly path: string;
  /** When it is uploaded; none if it is refused. */
  readonly parts: Promise<readonly FilePart[]>;
}

const partsOf = async (files: readonly ChosenFile[]) =>
  (await Promise.all(files.map(({ parts }) => parts))).flat();

/** A command to suggest in a chat: as typed there if the chat has it. */
function inChat({ command }: Context): (words: string) => string {
  return (words) =>
    /^(approve|deny) (?!.*--arguments)/.test(words)
      ? `/${words.replace('--reason "…"', 'REASON')}`
      : command(words);
}

/**
 * The messages of a chat that the daemon has not acknowledged.
 *
 * CHAT-OUTBOX-1 Messages are sent one at a time, in the order in which they were typed.
 * CHAT-OUTBOX-2 While the daemon does not answer, a message is kept and sent again with the same id: it is appended once.
 * CHAT-OUTBOX-3 A refused message is not kept; the next one is sent.
 * `onAway` is called when a request finds that the daemon does not answer.
 */
function createOutbox(client: ParleyClient, onAway: () => void) {
  const kept: PostMessage[] = [];
  const leaving = new AbortController();
  const { signal } = leaving;
  let isAway = false;
  let last: Promise<unknown> = Promise.resolve();
  let waiting: (() => void)[] = [];

  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise<void>((wake) => waiting.push(wake));
  };
  const changed = () => {
    const wakes = waiting;
    waiting = [];
    for (const wake of wakes) wake();
  };
  /** Reports whether the daemon answers. True: it did not, or did, before. */
  const reach = (isReachable: boolean) => {
    if (isAway !== isReachable) return false;
    isAway = !isReachable;
    changed();
    return true;
  };

  /** Repeats the work until the daemon answers or refuses. */
  async function untilAnswered<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      await until(() => !isAway || signal.aborted);
      signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        if (!isUnreachable(error)) throw error;
        onAway();
      }
    }
  }

  return {
    untilAnswered,
    reach,
    /** `whole`: what is sent, when its turn has come. Rejects with the refusal, or with an `AbortError` after `leave`. */
    send(message: PostMessage, whole: () => Promise<PostMessage>): Promise<PostAnswer> {
      kept.push(message);
      const sent = last.then(() => untilAnswered(async () => client.post(await whole(), { signal })));
      const done = () => {
        if (signal.aborted) return;
        kept.splice(kept.indexOf(message), 1);
        changed();
      };
      last = sent.then(done, done);
      return sent;
    },
    get isAway() {
      return isAway;
    },
    /** Ends all sending, at once if the daemon does not answer. Returns the messages that were not acknowledged. */
    async leave(): Promise<readonly PostMessage[]> {
      await until(() => isAway || kept.length === 0);
      leaving.abort();
      changed();
      return kept;
    },
    get hasLeft() {
      return signal.aborted;
    },
  };
}

/** Parses a line that was typed in a chat. Pure. */
type ChatLine =
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'help' | 'agents' }
  | { readonly kind: 'quit' }
  | { readonly kind: 'phase'; readonly phase: string }
  | { readonly kind: 'mode'; readonly mode: string; readonly agent?: string }
  | { readonly kind: 'explain'; readonly agent?: string }
  | { readonly kind: 'decide'; readonly answer: 'approve' | 'deny'; readonly words: readonly string[] }
  | { readonly kind: 'answer'; readonly text: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'run'; readonly workflow: string; readonly text: string }
  | { readonly kind: 'wrong'; readonly say: string };

const CHAT_HELP = `/agents              list the agents
/phase PHASE         enter a phase
/mode MODE [AGENT]   enter a mode: chat, agent or run
/explain [AGENT]     print the request that led to the newest answer, or that this
                     agent's model would get now
/file PATH           send this file with the next message
/run WORKFLOW TEXT   start a workflow with this input
/approve [ID]        approve the pending call, or the one with this id
/deny [ID] [REASON]  deny it
/answer TEXT         answer the question of an agent
/quit                leave (also Ctrl-D)
@slug in a message addresses an agent. Ctrl-C aborts running turns; a second Ctrl-C leaves.
To send a message that begins with a slash, type two slashes.
Pasted lines are one message: Enter sends it.`;

export function parseChatLine(line: string): ChatLine {
  const text = line.trim();
  if (!hasVisible(text)) return { kind: 'nothing' };
  if (text.includes('\n')) return { kind: 'message', text }; // pasted text is never a command
  if (text.startsWith('//')) return { kind: 'message', text: text.slice(1) };
  if (!text.startsWith('/')) return { kind: 'message', text };
  const [command = '', ...words] = text.slice(1).split(/\s+/);
  const [first, second] = words;
  switch (command) {
    case 'help':
    case 'agents':
    case 'quit':
      return { kind: command };
    case 'exit':
      return { kind: 'quit' };
    case 'phase':
      return first ? { kind: 'phase', phase: first } : wrong('/phase needs the name of a phase');
    case 'mode':
      if (!first) return wrong('/mode needs chat, agent or run');
      return { kind: 'mode', mode: first, ...(second ? { agent: second } : {}) };
    case 'explain':
      return { kind: 'explain', ...(first && { agent: first }) };
    case 'approve':
    case 'deny':
      return { kind: 'decide', answer: command, words };
    case 'answer':
      if (!first) return wrong('/answer needs a text');
      return { kind: 'answer', text: text.replace(/^\S+\s+/, '') };
    case 'file':
      if (!first) return wrong('/file needs the path of a file');
      return { kind: 'file', path: text.replace(/^\S+\s+/, '') };
    case 'run':
      if (!first || !second) return wrong('/run needs a workflow and its input');
      return { kind: 'run', workflow: first, text: text.replace(/^\S+\s+\S+\s+/, '') };
    default:
      return wrong(`unknown command /${command}: /help lists all commands`);
  }
}

const wrong = (say: string): ChatLine => ({ kind: 'wrong', say });

const LIKE_AN_ANSWER =
  /^(y|yes|yep|yeah|ok|okay|sure|approved?|allow(ed)?|go( ahead| on)?|do it|run it|n|no|nope|den(y|ied)|refused?|reject(ed)?|don't|stop)[.!]*$/i;

/** Whether a text may be meant as the answer to an approval. */
export function looksLikeAnAnswer(text: string): boolean {
  return LIKE_AN_ANSWER.test(text.trim());
}
