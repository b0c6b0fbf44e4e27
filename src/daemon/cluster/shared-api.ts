import {
  type AnswerOf,
  type ApiAnswer,
  type ApiRequest,
  type Bus,
  type PeerList,
  readPeerList,
  type SharedList,
} from '../../bus/index.ts';
import { conversationOfApproval, NAME_PATTERN } from '../../conversation/index.ts';
import { messageOf, refusal, sleep } from '../../kernel/index.ts';
import type { SharedLogs } from '../../persistence/index.ts';
import { mergeAgents } from '../api/agents.ts';
import type { Api } from '../api/api.ts';
import { mergedApprovals } from '../api/approvals.ts';
import { mergeSearch } from '../api/search.ts';
import { mergeStatus } from '../api/status.ts';
import { isMovedCode } from '../conversations/ownership.ts';
import { type ListedRow, mergeConversations, numberIn } from '../conversations/projections.ts';
import { firstChoice, type ReconcilerParts } from './reconciler.ts';
import type { Answered } from './router.ts';

/**
 * The request API when several daemons share the work: any of them answers any request.
 *
 * SHARED-API-1  A request about one conversation is answered by its owner; without an owner, from the log.
 * SHARED-API-2  A request about all conversations merges the answers of all daemons. A daemon that does not answer is
 *               left out; the conversation list names it.
 * SHARED-API-3  The id of an approval names its conversation: an answer goes to the owner of that one.
 * SHARED-API-4  A deletion covers the posts that the stream had when the first daemon received the request, whichever
 *               daemon executes it.
 * SHARED-API-5  A post without an id gets one before it is sent to the owner: if the owner ends before it answers, the post is
 *               repeated with the same id.
 * SHARED-API-6  A reload is executed here first. If it is refused, no other daemon reloads; else all do, each from its own
 *               files, and the answer names each one that keeps its configuration.
 * SHARED-API-7  A daemon that leaves takes over nothing: it passes a request about a conversation without an owner on.
 * SHARED-API-8  The pieces of an upload go to one daemon, which their id and the daemons that are alive decide. When that changes, the
 *               upload begins again.
 */

const MAX_ATTEMPTS = 8;

export interface SharedApiParts
  extends Pick<ReconcilerParts, 'daemon' | 'workers' | 'monitor' | 'router' | 'log'> {
  readonly bus: Pick<Bus, 'lastPost' | 'deadLetters'>;
  readonly logs: Pick<SharedLogs, 'origin'>;
  /** Aborted when this daemon leaves. */
  readonly leaving: AbortSignal;
}

export class SharedApi {
  readonly #api: Api;
  readonly #parts: SharedApiParts;

  constructor(api: Api, parts: SharedApiParts) {
    this.#api = api;
    this.#parts = parts;
  }

  async handle(request: ApiRequest): Promise<ApiAnswer> {
    switch (request.endpoint) {
      case 'tools':
      case 'blob': // each daemon reads every stored file
        return this.#api.handle(request);
      case 'agents':
        return this.#gather('agents', request, mergeAgents);
      case 'conversations':
        return this.#gather('conversations', request, (pages, missing) =>
          naming(missing, mergeConversations(pages, request.body, this.#api.room)),
        );
      case 'search':
        return this.#gather('search', request, (pages, missing) =>
          naming(missing, mergeSearch(pages, numberIn(request.body, 'limit') ?? undefined)),
        );
      case 'status':
        return this.#status(request);
      case 'reload':
        return this.#reload(request);
      case 'post':
        return this.#post(request);
      case 'dead-retry':
        return this.#retry(request);
      case 'upload':
        return this.#upload(request);
    }
    const approvalId = ['answer', 'change'].includes(request.endpoint)
      ? fieldOf(request.body, 'approvalId')
      : null;
    const conversation =
      approvalId === null ? conversationIn(request.body) : conversationOfApproval(approvalId);
    if (conversation !== null && request.endpoint === 'delete') return this.#delete(conversation, request);
    if (conversation !== null) return this.#route(conversation, request);
    if (request.endpoint === 'approvals')
      return this.#gather('approvals', request, (pages, missing) =>
        naming(missing, mergedApprovals(pages, this.#api.room)),
      );
    return this.#api.handle(request);
  }

  /** A request from a peer. `answer` is null if this daemon does not own that conversation. */
  async handleFromPeer(
    conversation: string | null,
    request: ApiRequest,
  ): Promise<{ answer: ApiAnswer | null }> {
    if (conversation !== null && !(await this.#parts.workers.willHold(conversation))) return { answer: null };
    return { answer: await this.#api.handle(request) };
  }

  async #post(request: ApiRequest): Promise<ApiAnswer> {
    const conversation = conversationIn(request.body);
    const size = Buffer.byteLength(JSON.stringify(request.body) ?? '');
    if (conversation === null || size > this.#api.room) return this.#api.handle(request); // which refuses it
    const { id = this.#api.daemon.newId(), ...body } = request.body as { readonly id?: unknown };
    return this.#route(conversation, { ...request, body: { ...body, id } });
  }

  /** The conversation of the letter decides. */
  async #retry(request: ApiRequest): Promise<ApiAnswer> {
    const sequence = numberIn(request.body, 'sequence');
    const letter =
      sequence === null ? null : await this.#parts.bus.deadLetters.get(sequence).catch(() => null);
    return letter ? this.#route(letter.conversation, request) : this.#api.handle(request);
  }

  async #route(conversation: string, request: ApiRequest): Promise<ApiAnswer> {
    for (let tries = 1; ; tries++) {
      const location = await this.#parts.router.locate(conversation);
      if (location.kind === 'elsewhere') {
        const response = await this.#parts.router.ask(location.claim.daemon, 'api', {
          conversation,
          request,
        });
        if (response.kind === 'answered' && response.body.answer) return response.body.answer;
        if (response.kind === 'answered') this.#parts.router.noteReleased(conversation, location.claim);
        const lost = unread(location.claim.daemon, response);
        if (lost) return lost;
      }
      const answer = await this.#api.handle(request);
      const isElsewhere = !answer.ok && isMovedCode(answer.refusal.code);
      const passedOn = isElsewhere && this.#parts.leaving.aborted ? await this.#passOn(request) : null;
      if (passedOn) return passedOn;
      if (!isElsewhere || tries >= MAX_ATTEMPTS) return answer;
      await sleep(tries * 10);
    }
  }

  /** SHARED-API-8 */
  async #upload(request: ApiRequest): Promise<ApiAnswer> {
    const upload = fieldOf(request.body, 'upload') ?? '';
    const chosen = firstChoice(upload, [this.#parts.daemon, ...this.#parts.monitor.others]);
    if (chosen === this.#parts.daemon) return this.#api.handle(request);
    const response = await this.#parts.router.ask(chosen, 'api', { conversation: null, request });
    const lost = unread(chosen, response);
    if (lost) return lost;
    const answer = response.kind === 'answered' ? response.body.answer : null;
    const message = `daemon ${chosen}, which has the first pieces, does not answer`;
    return answer ?? { ok: false, refusal: refusal('TIMEOUT', message, 'send the piece again') };
  }

  /** Null: none that can be read. */
  async #answerOf(daemon: string, request: ApiRequest): Promise<ApiAnswer | null> {
    const response = await this.#parts.router.ask(daemon, 'api', { conversation: null, request });
    return response.kind === 'answered' ? response.body.answer : null;
  }

  async #passOn(request: ApiRequest): Promise<ApiAnswer | null> {
    const [next] = this.#parts.monitor.responsive;
    if (next === undefined) return null;
    const answer = await this.#answerOf(next, request);
    return answer?.ok === false && isMovedCode(answer.refusal.code) ? null : answer;
  }

  async #status(request: ApiRequest): Promise<ApiAnswer> {
    const rows: ListedRow[] = [];
    const days = numberIn(request.body, 'days') ?? undefined;
    for (let after: string | null | undefined; after !== null; ) {
      const page = await this.handle({ ...request, endpoint: 'conversations', body: { after, days } });
      if (!page.ok) return page;
      const { conversations, next } = page.body as AnswerOf<'conversations'>;
      rows.push(...conversations);
      after = next;
    }
    const limit = numberIn(request.body, 'limit') ?? undefined;
    return this.#gather('status', request, (answers, silent) =>
      mergeStatus(answers, { rows, silent, limit }),
    );
  }

  async #reload(request: ApiRequest): Promise<ApiAnswer> {
    const own = await this.#api.handle(request);
    if (!own.ok) return own;
    const daemons = await Promise.all(
      this.#parts.monitor.others.map(async (daemon) => {
        const answer = await this.#answerOf(daemon, request);
        if (answer?.ok) return { daemon };
        return {
          daemon,
          error: answer?.refusal.message ?? 'it did not answer in time: its log has the outcome',
        };
      }),
    );
    return { ok: true, body: { ...(own.body as object), daemons } };
  }

  async #delete(conversation: string, request: ApiRequest): Promise<ApiAnswer> {
    const upTo = request.upTo ?? (await this.#parts.bus.lastPost(conversation).catch(() => undefined)); // else the owner reads it
    const origin = await this.#parts.logs.origin(conversation).catch(() => undefined);
    return this.#route(conversation, {
      ...request,
      ...(upTo && { upTo }),
      ...(origin !== undefined && { origin }),
    });
  }

  async #gather<V extends SharedList>(
    verb: V,
    request: ApiRequest,
    merge: (pages: readonly PeerList<V>[], missing: readonly string[]) => object,
  ): Promise<ApiAnswer> {
    const own = await this.#api.handle(request);
    if (!own.ok) return own;
    const missing = this.#parts.monitor.suspected; // they are not asked
    const pages = await Promise.all(
      this.#parts.monitor.others.map(async (daemon) => {
        const answer = await this.#answerOf(daemon, request);
        try {
          if (answer?.ok) return [readPeerList(verb, answer.body)];
        } catch (error) {
          this.#parts.log.warn(
            { daemon, verb, reason: messageOf(error) },
            'the list of another daemon is left out as invalid',
          );
        }
        missing.push(daemon);
        return [];
      }),
    );
    return { ok: true, body: merge([own.body as PeerList<V>, ...pages.flat()], missing) };
  }
}

/** A list that other daemons have a part of, with those that did not answer. */
function naming(missing: readonly string[], list: object): object {
  return missing.length > 0 ? { ...list, incomplete: missing } : list;
}

/** The answer instead of one that exists and could not be read here; null: there is none, or it was read. */
function unread(daemon: string, response: Answered<'api'>): ApiAnswer | null {
  if (response.kind === 'too-large')
    return {
      ok: false,
      refusal: refusal('TOO_LARGE', response.reason, 'ask for less, or send less, at once'),
    };
  if (response.kind !== 'invalid') return null;
  const message = `the answer of daemon ${daemon}, which works on this conversation, is invalid: ${response.reason}`;
  return { ok: false, refusal: refusal('INTERNAL', message, 'run the same version of all daemons') };
}

function fieldOf(body: unknown, name: string): string | null {
  const value = typeof body === 'object' && body !== null ? Reflect.get(body, name) : null;
  return typeof value === 'string' ? value : null;
}

export function conversationIn(body: unknown): string | null {
  const id = fieldOf(body, 'conversation');
  return id !== null && NAME_PATTERN.test(id) ? id : null;
}
