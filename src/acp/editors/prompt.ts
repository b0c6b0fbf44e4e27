import {
  type AgentContext,
  methods,
  type PermissionOption,
  RequestError,
  type RequestPermissionRequest,
  type StopReason,
} from '@agentclientprotocol/sdk';
import {
  type FollowEvent,
  isUnreachable,
  logEntries,
  type ParleyClient,
  type PostAnswer,
  type RequestOf,
} from '../../client/index.ts';
import {
  cutBy,
  type Ending,
  type Entry,
  type FilePart,
  type OpenCall,
  OpenCalls,
  Progress,
  Roots,
  revertibleStop,
  type Stopped,
  stoppedAmong,
  unknownMentionsText,
  wireCallId,
} from '../../conversation/index.ts';
import { asError, escapeHidden, type NewId, type Refusal, sleep, visibleCall } from '../../kernel/index.ts';
import { textBlock } from '../blocks.ts';
import { toolCallOf, type Update, type Updates } from './updates.ts';

/**
 * One prompt: posts it, and sends what follows, with the requests for permission that it waits for, until no work is outstanding or
 * only a person can continue.
 *
 * EDITOR-PROMPT-1 It subscribes before it posts. What was written since the last prompt is sent first.
 * EDITOR-PROMPT-2 While the daemon does not answer, it waits; the post is repeated with the same id.
 * EDITOR-PROMPT-3 It stays open while a request for permission is pending. Each answer continues it with another progress.
 * EDITOR-PROMPT-4 A cancelled prompt stops the agents whose turns it began, until these have ended, then resumes them unless another
 *    person has stopped them too.
 * EDITOR-PROMPT-5 A client that disconnects stops nothing.
 */

/** For whom an editor speaks, and how the command line puts things to that person. */
export interface Person {
  readonly actor: { readonly publisher: string; readonly author?: { readonly name: string } };
  readonly newId: NewId;
  explain(error: unknown): Refusal;
  /** A command to suggest, with the flags by which the daemon was found. */
  command(words: string): string;
}

/** What the parts of a session share. */
export interface SessionContext extends Person {
  /** The id of the session, and of its conversation. */
  readonly id: string;
  readonly cwd: string;
  readonly editor: AgentContext;
  readonly client: ParleyClient;
  readonly updates: Updates;
  /** The next entry that the client was not sent. */
  next: number;
  send(updates: Iterable<Update>): Promise<void>;
}

/** The code of JSON-RPC. */
export const INTERNAL = -32_603;
/** Entries before the post that are read for what is open there. */
const OPEN_WITHIN = 1_000;
const AGAIN_MS = 1_000;

const WAKE = Symbol('wake');

interface ToPost {
  readonly text: string;
  readonly uploads: readonly { readonly bytes: Uint8Array; readonly name?: string | undefined }[];
}

export class Prompt {
  readonly #session: SessionContext;
  readonly #leaving = new AbortController();
  readonly #calls = new OpenCalls();
  readonly #turns = new StartedTurns();
  readonly #permissions: Permissions;
  /** What was open before the post, and everything since. */
  #log: Entry[] = [];
  #progress: Progress | null = null;
  #ending: Ending | null = null;
  #finishReason: string | undefined;
  /** The log was read to an end that comes after the post. */
  #hasRead = false;
  #isAway = false;
  #isCancelled = false;
  /** The agents that the cancellation stopped; null: none yet. */
  #stopped: readonly string[] | null = null;
  #wake: () => void = () => {};

  constructor(session: SessionContext) {
    this.#session = session;
    const onUndecided = (call: OpenCall, error: unknown) => {
      const next = `${call.question}; elsewhere: ${answerCommands(call, session.command)}`;
      const why = error === null ? [] : [this.#words(error)];
      void this.#note([...why, next].join('; ')).then(() => this.#wake());
    };
    this.#permissions = new Permissions(session, onUndecided);
  }

  /** EDITOR-PROMPT-4 */
  cancel(): void {
    this.#isCancelled = true;
    this.#wake();
  }

  /** EDITOR-PROMPT-5 */
  leave(): void {
    this.#leaving.abort();
    this.#wake();
  }

  /** `question`: the open question that it answers. */
  async run({ text: content, uploads }: ToPost, question: OpenCall | null): Promise<StopReason> {
    const { client, id: conversation, actor, newId } = this.#session;
    const { signal } = this.#leaving;
    const events = this.#events();
    let next = events.next();
    next.catch(() => {}); // reported where it is awaited
    try {
      const id = newId();
      const replyTo = question === null ? {} : { replyTo: wireCallId(question.place) };
      const files = await this.#untilReached(() => this.#upload(uploads));
      if (this.#isCancelled) return 'cancelled';
      const message = {
        conversation,
        content,
        id,
        ...replyTo,
        ...actor,
        ...(files.length > 0 && { parts: files }),
      };
      const posted = await this.#untilReached(() => client.post(message, { signal }));
      const stopped = await this.#begin(posted);
      while (!signal.aborted) {
        const woken = this.#woken(); // before the state is read
        const reason = await this.#reason(posted);
        if (reason !== null) return reason;
        const event = await Promise.race([next, woken]);
        if (event === WAKE) continue;
        if (event.done) break;
        next = events.next();
        next.catch(() => {});
        await this.#take(event.value, posted, stopped);
      }
    } catch (error) {
      if (!this.#isCancelled && !signal.aborted) throw error;
    } finally {
      this.#permissions.close();
      this.leave();
    }
    return 'cancelled';
  }

  /** The questions that it ended with. */
  get questions(): readonly OpenCall[] {
    return this.#calls.of(() => true).filter(({ approval }) => approval === null);
  }

  /** EDITOR-PROMPT-1, EDITOR-PROMPT-2 */
  async *#events(): AsyncGenerator<FollowEvent, void, undefined> {
    const { signal } = this.#leaving;
    const { client, id } = this.#session;
    const onReachable = (isReachable: boolean) => {
      this.#isAway = !isReachable;
      if (this.#isAway && this.#isCancelled) this.#wake();
    };
    while (!signal.aborted) {
      try {
        yield* client.follow(id, { from: this.#session.next, signal, onReachable });
      } catch (error) {
        if (!isUnreachable(error)) throw error;
        await sleep(AGAIN_MS, signal);
      }
    }
  }

  async #untilReached<T>(work: () => Promise<T>): Promise<T> {
    for (let isFirst = true; ; isFirst = false) {
      try {
        return await work();
      } catch (error) {
        const isOver = this.#isCancelled || this.#leaving.signal.aborted;
        if (!isUnreachable(error) || isOver) throw error;
        if (isFirst) await this.#note(this.#words(error));
        await sleep(AGAIN_MS, this.#leaving.signal);
      }
    }
  }

  async #upload(uploads: ToPost['uploads']): Promise<FilePart[]> {
    const { client, actor } = this.#session;
    const { publisher } = actor;
    const { signal } = this.#leaving;
    const files: FilePart[] = [];
    for (const { bytes, name } of uploads)
      files.push(await client.upload(bytes, { publisher, signal, ...(name && { name }) }));
    return files;
  }

  async #begin(posted: PostAnswer): Promise<Stopped> {
    const { client, id: conversation, updates, send } = this.#session;
    for (const entry of await this.#untilReached(() => this.#before(posted.index))) this.#see(entry);
    const { agents } = await this.#untilReached(() => client.request('conversation', { conversation }));
    const unknown = unknownMentionsText(posted.unknownMentions);
    if (unknown) await send(updates.note(unknown));
    if (posted.agents.length === 0) await send(updates.note('no agent answers this message'));
    const stopped = stoppedAmong(conversation, posted.agents, agents);
    this.#follow(posted, stopped);
    return stopped;
  }

  /** What may be open before the post. */
  async #before(index: number): Promise<Entry[]> {
    const { client, id } = this.#session;
    const entries: Entry[] = [];
    for await (const entry of logEntries(client, id, Math.max(0, index - OPEN_WITHIN))) {
      if (entry.index >= index) break;
      entries.push(entry);
    }
    return entries;
  }

  #follow(posted: PostAnswer, stopped: Stopped): void {
    this.#ending = null;
    const turns = this.#turns.open;
    this.#progress = new Progress({ agent: null, posts: [posted], before: this.#log, stopped, turns });
  }

  #see(entry: Entry): void {
    this.#log.push(entry);
    this.#calls.observe(entry);
    this.#turns.observe(entry);
  }

  async #take(event: FollowEvent, posted: PostAnswer, stopped: Stopped): Promise<void> {
    const { updates, send } = this.#session;
    if (event.kind === 'entry' && event.entry.index < posted.index) {
      this.#session.next = event.entry.index + 1;
      return send(updates.past(event.entry)); // EDITOR-PROMPT-1
    }
    if (this.#ending !== null) this.#follow(posted, stopped); // EDITOR-PROMPT-3
    if (event.kind === 'live') return this.#show(this.#progress?.accept(event) ?? []);
    const { entry, isCurrent = false } = event;
    this.#session.next = entry.index + 1;
    const steps = this.#progress?.accept({ kind: 'entries', entries: [entry], isCurrent }) ?? [];
    this.#see(entry);
    if (entry.index === posted.index) updates.begin();
    else await send(updates.entry(entry));
    await this.#show(steps);
    this.#hasRead ||= isCurrent;
    if (isCurrent && !this.#isCancelled) this.#permissions.update(this.#calls.of(() => true));
  }

  async #show(steps: ReturnType<Progress['accept']>): Promise<void> {
    const { updates, send } = this.#session;
    for (const step of steps) {
      if (step.kind === 'over') this.#ending = step.ending;
      if (step.kind === 'said') this.#finishReason = step.entry.finishReason;
      await send(updates.step(step));
    }
  }

  /** Why the prompt ends now; null: it does not. */
  async #reason(posted: PostAnswer): Promise<StopReason | null> {
    if (this.#isCancelled) return this.#cancelled(posted);
    const ending = this.#ending;
    if (ending === null) return null;
    switch (ending.kind) {
      case 'completed':
        return cutBy(this.#finishReason) === 'length' ? 'max_tokens' : 'end_turn';
      case 'waits':
        return this.#permissions.arePending ? null : 'end_turn'; // EDITOR-PROMPT-3
      case 'aborted':
        return 'cancelled';
      case 'limited':
        return 'max_turn_requests';
      case 'failed': {
        const { code, message } = ending.refusal; // of a model: its NOT_FOUND does not mean the session
        throw new RequestError(INTERNAL, message, { code });
      }
      case 'stopped':
        throw asError(ending.refusal);
      default:
        return ending satisfies never;
    }
  }

  /** EDITOR-PROMPT-4 */
  async #cancelled({ index, agents }: PostAnswer): Promise<StopReason | null> {
    const { client, id: conversation, actor, command } = this.#session;
    if (this.#isAway) {
      const next = this.#stopped
        ? `; \`${command(`resume ${conversation}`)}\` lets its agents answer again`
        : '';
      await this.#note(`the daemon does not answer: what this prompt began may go on${next}`);
      return 'cancelled';
    }
    if (!this.#hasRead) return null;
    const busy = this.#turns.agentsOf(index);
    try {
      if (this.#stopped === null) {
        this.#stopped = busy;
        this.#permissions.close();
        for (const agent of busy) await client.request('stop', { conversation, agent, ...actor });
        if (busy.length === 0 && agents.length > 0 && this.#ending === null)
          await this.#note(`nothing to stop: ${agents.join(', ')} will read the message later`);
      }
      if (busy.length > 0) return null;
      const since = this.#log.filter((entry) => entry.index > index);
      for (const agent of this.#stopped) {
        const stop = revertibleStop(since, agent);
        if (stop !== null) await client.request('resume', { conversation, agent, stop, ...actor });
      }
    } catch (error) {
      await this.#note(this.#words(error));
    }
    return 'cancelled';
  }

  #woken(): Promise<typeof WAKE> {
    return new Promise((resolve) => {
      this.#wake = () => resolve(WAKE);
    });
  }

  #words(error: unknown): string {
    const { code, message, hint } = this.#session.explain(error);
    return [`${code}: ${message}`, hint].filter((part) => part !== undefined).join('; ');
  }

  async #note(words: string): Promise<void> {
    const { updates, send } = this.#session;
    await send(updates.note(words)).catch(() => {}); // the client is gone
  }
}

/** Folds a log into its open turns and the posts that caused them. */
class StartedTurns {
  readonly #roots = new Roots();
  readonly #open = new Map<string, string>();

  observe(entry: Entry): void {
    this.#roots.observe(entry);
    if (entry.type === 'turn-started') this.#open.set(entry.turnId, entry.agent);
    else if (entry.type === 'turn-ended' && entry.outcome !== 'waiting') this.#open.delete(entry.turnId);
  }

  get open(): { readonly turnId: string; readonly agent: string }[] {
    return [...this.#open].map(([turnId, agent]) => ({ turnId, agent }));
  }

  /** The agents whose open turns this post caused. */
  agentsOf(post: number): string[] {
    const own = this.open.filter(({ turnId }) => this.#roots.of(turnId).includes(post));
    return [...new Set(own.map(({ agent }) => agent))];
  }
}

/**
 * The pending approvals of a conversation, as requests for permission. The log decides which are pending.
 *
 * EDITOR-PERMISSIONS-1 Each approval is requested once. The request names the whole call, as it runs.
 * EDITOR-PERMISSIONS-2 A request whose approval was answered elsewhere, or that ended without an answer, is cancelled.
 * EDITOR-PERMISSIONS-3 An approval that this client or this person cannot answer remains pending, and is named.
 */

const ALLOW: readonly PermissionOption[] = [
  { optionId: 'approve', name: 'Allow', kind: 'allow_once' },
  { optionId: 'deny', name: 'Reject', kind: 'reject_once' },
];
/** It may have run already. */
const RESOLVE: readonly PermissionOption[] = [
  { optionId: 'rerun', name: 'Run it again', kind: 'allow_once' },
  { optionId: 'failed', name: 'It did not run', kind: 'reject_once' },
];

/** Its name says all that it allows. */
const alwaysOf = (covers: string | undefined): PermissionOption[] =>
  covers === undefined
    ? []
    : [
        {
          optionId: 'always',
          name: `Allow, also later ${escapeHidden(covers)} in this conversation`,
          kind: 'allow_always',
        },
      ];

type Chosen = 'approve' | 'always' | 'deny' | 'rerun' | 'failed';

interface Requested {
  readonly answeredElsewhere: AbortController;
  /** False: the client will not decide it (EDITOR-PERMISSIONS-3). */
  isDecidable: boolean;
}

/** An approval that will not be decided here; null: the client did not say why. */
type OnUndecided = (call: OpenCall, error: unknown) => void;

class Permissions {
  readonly #session: SessionContext;
  readonly #onUndecided: OnUndecided;
  readonly #requested = new Map<string, Requested>();

  constructor(session: SessionContext, onUndecided: OnUndecided) {
    this.#session = session;
    this.#onUndecided = onUndecided;
  }

  /** Whether an answer may still come from here. */
  get arePending(): boolean {
    return [...this.#requested.values()].some(({ isDecidable }) => isDecidable);
  }

  /** Call with all open calls of the log. */
  update(open: readonly OpenCall[]): void {
    const pending = new Map(open.flatMap((call) => (call.approval ? [[call.approval.id, call]] : [])));
    for (const [id, { answeredElsewhere }] of this.#requested) {
      if (pending.has(id)) continue;
      this.#requested.delete(id);
      answeredElsewhere.abort();
    }
    for (const [id, call] of pending) {
      if (this.#requested.has(id)) continue;
      const requested = { answeredElsewhere: new AbortController(), isDecidable: true };
      this.#requested.set(id, requested);
      void this.#ask(id, call, requested);
    }
  }

  /** Cancels all requests. */
  close(): void {
    this.update([]);
  }

  async #ask(approvalId: string, call: OpenCall, requested: Requested): Promise<void> {
    const { client } = this.#session;
    const { signal } = requested.answeredElsewhere;
    let cause: unknown = null;
    try {
      const answer = await this.#answerTo(call, signal);
      if (answer !== null)
        return void (await client.request('answer', { approvalId, ...this.#given(answer) }));
    } catch (error) {
      if (signal.aborted) return;
      cause = error;
    }
    requested.isDecidable = false;
    this.#onUndecided(call, cause);
  }

  /** GRANTS-1: as the operator, with the person's name. */
  #given(answer: Chosen): Omit<RequestOf<'answer'>, 'approvalId'> {
    const { actor } = this.#session;
    if (answer !== 'always') return { answer, ...actor };
    return { answer: 'approve', always: true, author: { name: actor.author?.name ?? actor.publisher } };
  }

  /** Null: the client does not decide. */
  async #answerTo(call: OpenCall, cancellationSignal: AbortSignal) {
    const { editor, id: sessionId, cwd } = this.#session;
    const { place, tool, question, arguments: given, approval } = call;
    const { content = [], ...shown } = toolCallOf(place, tool, given, cwd);
    const options = approval?.mayHaveRun ? RESOLVE : [...ALLOW, ...alwaysOf(approval?.covers)];
    const request: RequestPermissionRequest = {
      sessionId,
      options: [...options],
      toolCall: {
        ...shown,
        title: visibleCall(tool, given),
        status: 'pending',
        content: [...content, { type: 'content', content: textBlock(question) }],
      },
    };
    const settings = { cancellationSignal, stopWaitingOnCancel: true };
    const { outcome } = await editor.request(methods.client.session.requestPermission, request, settings);
    const chosen = outcome.outcome === 'selected' ? outcome.optionId : null;
    return options.some(({ optionId }) => optionId === chosen) ? (chosen as Chosen) : null;
  }
}

/** How to answer it elsewhere. `command`: as a person types it. */
function answerCommands({ approval }: OpenCall, command: (words: string) => string): string {
  const words = approval?.mayHaveRun ? ['resolve'] : ['approve', 'deny'];
  return words.map((word) => `\`${command(`${word} ${approval?.id}`)}\``).join(' or ');
}
