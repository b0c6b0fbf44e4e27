import { type ExplainContext, type Explained, explainStored } from '../../agents/index.ts';
import {
  type AnswerOf,
  type ApiAnswer,
  type ApiRequest,
  type Bus,
  isVerb,
  parseRequest,
  partOf,
  type RequestOf,
  type Verb,
} from '../../bus/index.ts';
import {
  type Author,
  type CallersResult,
  type Command,
  type CommandOf,
  contentOf,
  conversationOfApproval,
  type Entry,
  type ExplainedRequest,
  filesOf,
  isApprover,
  pendingApprovals,
  placeOfCallId,
  publisherOf,
  type Reply,
  refusalOfApproval,
  refusalOfGrant,
  toolError,
  unknownApproval,
} from '../../conversation/index.ts';
import {
  asError,
  cut,
  fittingIn,
  isRecord,
  messageOf,
  ParleyError,
  pageOf,
  refusal,
  refusalOf,
  sha256Of,
  sizeOf,
} from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import { conversationDocument, phasesPage, workflowsPage } from '../conversations/projections.ts';
import { noConversation, type Workers } from '../conversations/workers.ts';
import { type Files, pieceOf, Uploads } from '../files/files.ts';
import { type Posts, type PostsContext, tooLarge } from '../ingress/posts.ts';
import { PublisherLimits } from '../ingress/publisher-limits.ts';
import type { Reloader } from '../reload/reloader.ts';
import type { Definitions } from '../team/definitions.ts';
import { shownWithPrompt } from '../team/team.ts';
import { listAgents, listTools } from './agents.ts';
import { approvalsPage, changeOf } from './approvals.ts';
import {
  askedPost,
  type Caller,
  type Handler,
  type Handlers,
  isNameBound,
  OPERATOR,
  operatorOf,
  refuseOther,
} from './authorship.ts';
import { DeadLetterOffice } from './dead-letters.ts';
import { beyondReach, type Erasure } from './erasure.ts';
import { forkConversation, refusalOfHistory, seedsOf } from './fork.ts';
import { keepUnless } from './retention.ts';
import type { Search } from './search.ts';
import { collectStatus, type StatusParts } from './status.ts';
import { turnsPage } from './turns.ts';
import { type WhatIfContext, whatIfHandlers } from './what-if.ts';

/** The request API: one handler for each verb of `src/bus/contract.ts`. */

/** Entries or conversations of one answer, by default and at most. */
const PAGE_LIMIT = 1_000;
/** The share of the broker's payload that an answer may use; the envelope needs the rest. */
const PAYLOAD_SHARE = 0.9;

/** What operators do beyond one conversation. */
interface Admin extends Pick<StatusParts, 'facts' | 'metrics'> {
  readonly search: Pick<Search, 'search' | 'forget'>;
  readonly erasure: Pick<Erasure, 'erase'>;
  readonly reloader: Pick<Reloader, 'reload'>;
}

/** What the request API needs of the daemon. */
interface ApiContext extends WhatIfContext, PostsContext {
  readonly definitions: Definitions;
  readonly files: Files;
  readonly progress: Parameters<typeof keepUnless>[1];
  readonly health: StatusParts['health'];
}

export class Api {
  readonly #handlers: Handlers = {
    post: (request, caller) => this.#post(request, caller),
    upload: (request, { sender }) => {
      refuseOther(sender, request.publisher);
      return this.#uploads.take(request, sender ?? request.publisher ?? OPERATOR);
    },
    blob: (request, { sender }) => {
      refuseOther(sender, request.publisher);
      return pieceOf(this.daemon.files, request, this.room);
    },
    entries: (request) => this.#entries(request),
    conversation: ({ conversation }) => this.#document(conversation),
    conversations: (request) => this.#list(request),
    search: (request) => this.#admin.search.search(request),
    reading: (request, caller) => this.#reading(request, caller),
    turns: (request) => turnsPage(request, this.workers, this.daemon.definitions, this.room),
    view: (request) => this.#view(request),
    delete: (request, caller) => this.#delete(request, caller),
    label: (request, caller) =>
      this.#steer(request, caller, ({ title, archived }, by) => ({ type: 'label', title, archived, by })),
    feedback: (request, caller) => this.#feedback(request, caller),
    phase: (request, caller) =>
      this.#control(request, caller, ({ phase, reason }, by) => ({ type: 'set-phase', phase, reason, by })),
    mode: (request, caller) => this.#mode(request, caller),
    seed: (request, caller) => this.#seed(request, caller),
    fork: (request, caller) => this.#fork(request, caller),
    hire: (request, caller) =>
      this.#steer(request, caller, ({ conversation: _, publisher: __, author: ___, ...agent }, by) => ({
        type: 'hire',
        agent,
        by,
      })),
    dismiss: (request, caller) =>
      this.#steer(request, caller, ({ agent, reason }, by) => ({ type: 'dismiss', agent, reason, by })),
    reload: (request, { isBound }) => this.#admin.reloader.reload(this.#operator(request, isBound)),
    ...whatIfHandlers(this),
    stop: (request, caller) =>
      this.#steer(request, caller, ({ agent = null }, by) => ({ type: 'stop', agent, by })),
    resume: (request, caller) =>
      this.#steer(request, caller, ({ agent = null, stop }, by) => ({ type: 'resume', agent, stop, by })),
    approvals: ({ conversation }) => this.#approvals(conversation),
    change: (request, caller) => this.#change(request, caller),
    answer: (request, caller) => this.#answer(request, caller),
    results: (request, caller) => this.#results(request, caller),
    dead: (request) => this.#deadLetters.list(request),
    'dead-letter': ({ sequence }) => this.#deadLetters.show(sequence),
    'dead-retry': ({ sequence }) => this.#deadLetters.retry(sequence),
    'dead-discard': ({ sequence }) => this.#deadLetters.discard(sequence),
    agents: async (request) => listAgents(this.daemon, await this.workers.rows(), this.#bus, request),
    tools: () => listTools(this.daemon.team),
    status: (request) =>
      collectStatus(
        {
          team: this.daemon.team,
          now: this.daemon.now,
          health: this.daemon.health,
          workers: this.workers,
          bus: this.#bus,
          ...this.#admin,
        },
        request,
      ),
    phases: () => phasesPage(this.daemon.team.rules.phases),
    workflows: () => workflowsPage(this.daemon.team.rules.workflows),
  };
  readonly daemon: ApiContext;
  readonly workers: Workers;
  readonly #posts: Posts;
  readonly #bus: Pick<Bus, 'isAgentConnected' | 'ingressLag' | 'deadLetters'>;
  readonly #histories: PublisherLimits;
  readonly #ratings: PublisherLimits;
  readonly #uploads: Uploads;
  /** The largest answer, in bytes. */
  readonly room: number;
  readonly #deadLetters: DeadLetterOffice;
  readonly #admin: Admin;

  constructor(
    daemon: ApiContext,
    workers: Workers,
    posts: Posts,
    bus: Pick<Bus, 'maxPayload' | 'deadLetters' | 'isAgentConnected' | 'ingressLag'>,
    admin: Admin,
  ) {
    this.#bus = bus;
    this.#admin = admin;
    this.daemon = daemon;
    this.workers = workers;
    this.#posts = posts;
    const counted = () => new PublisherLimits(() => daemon.team.publishers);
    this.#histories = counted();
    this.#ratings = counted();
    this.#uploads = new Uploads(daemon.files);
    this.room = bus.maxPayload * PAYLOAD_SHARE;
    this.#deadLetters = new DeadLetterOffice(bus, posts, daemon.isManagedServer, this.room);
  }

  async handle(request: ApiRequest): Promise<ApiAnswer> {
    try {
      return { ok: true, body: await this.#dispatch(request) };
    } catch (error) {
      if (error instanceof ParleyError) return { ok: false, refusal: refusalOf(error) };
      this.daemon.log.error({ endpoint: request.endpoint, error: messageOf(error) }, 'a request failed');
      const hint = 'the daemon log has the details; try again';
      return {
        ok: false,
        refusal: refusal('INTERNAL', `${request.endpoint} failed: ${messageOf(error)}`, hint),
      };
    }
  }

  #dispatch({ endpoint, body, ...request }: ApiRequest): Promise<AnswerOf<Verb>> {
    if (!isVerb(endpoint)) throw new ParleyError('NOT_FOUND', `there is no endpoint ${endpoint}`);
    const { publisher: sender, upTo, origin, traceparent } = request;
    const isBound = isNameBound(request, this.daemon.isManagedServer);
    const mayOperate = request.mayOperate ?? (sender === null || this.daemon.isManagedServer);
    return this.#call(endpoint, body, { sender, isBound, mayOperate, upTo, origin, traceparent });
  }

  async #call<V extends Verb>(verb: V, body: unknown, caller: Caller): Promise<AnswerOf<V>> {
    const handler: Handler<V> = this.#handlers[verb];
    // `askedPost` checks a post, with codes of its own.
    return handler(verb === 'post' ? (body as RequestOf<V>) : parseRequest(verb, body), caller);
  }

  async #post(body: unknown, { sender, mayOperate, ...caller }: Caller): Promise<AnswerOf<'post'>> {
    const { post, bytes } = askedPost(body, sender, this.daemon.newId, caller);
    const posted = await this.#posts.post(post, bytes, { isByOperator: mayOperate });
    this.daemon.reach('before-answer');
    return posted;
  }

  async #entries(request: RequestOf<'entries'>): Promise<AnswerOf<'entries'>> {
    const worker = await this.workers.existing(request.conversation);
    const limit = Math.min(request.limit ?? PAGE_LIMIT, PAGE_LIMIT);
    const found = worker.entries(request.from ?? 0, limit);
    const entries = pageOf(found, this.room, cutEntry);
    return { conversation: request.conversation, length: worker.state.length, entries };
  }

  /** Merges what the request has, and answers the whole. */
  async #reading(request: RequestOf<'reading'>, { sender, isBound }: Caller): Promise<Reading> {
    const { publisher, author, read = {}, filters } = request;
    if (sender === null || author === undefined || !isBound || (publisher ?? sender) !== sender)
      throw new ParleyError('BAD_REQUEST', 'reading: this token is not of one person', {
        hint: 'give each person a token in `http.people`',
      });
    const { people } = this.daemon.store;
    const now = new Date(this.daemon.now()).toISOString();
    const person = sha256Of(`${sender}/${author.name}`);
    if (filters === undefined && Object.keys(read).length === 0) {
      const known = await people.get(person);
      if (known !== null) return readingIn(known, now);
    }
    const there: Record<string, number> = {};
    for (const [id, length] of Object.entries(read)) if (await this.workers.isThere(id)) there[id] = length; // else it was deleted
    let kept = readingIn(null, now);
    await people.change(person, (stored) => {
      kept = merged(readingIn(stored, now), there, filters);
      return kept;
    });
    return kept;
  }

  async #document(id: string): Promise<AnswerOf<'conversation'>> {
    const worker = await this.workers.existing(id);
    const { state } = worker;
    const [summary] = state.newestSummary === null ? [] : worker.entries(state.newestSummary, 1);
    const { roster } = this.daemon.team.for(state).sources;
    const document = conversationDocument(id, state, worker.entries(), roster, summary);
    const files = await this.daemon.store.blobs.of(id);
    if (files.length === 0) return document;
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    const maxBytes = this.daemon.team.files.maxBytesPerConversation;
    return { ...document, files: { count: files.length, bytes, maxBytes } };
  }

  async #list(request: RequestOf<'conversations'>): Promise<AnswerOf<'conversations'>> {
    const limit = Math.min(request.limit ?? PAGE_LIMIT, PAGE_LIMIT);
    const after = request.after ?? '';
    const rows = (await this.workers.rows(request.days)).filter((row) => row.id > after);
    const page = [...pageOf(rows.slice(0, limit), this.room)];
    return { conversations: page, next: rows.length > page.length ? (page.at(-1)?.id ?? null) : null };
  }

  async #delete(request: RequestOf<'delete'>, { upTo, origin }: Caller): Promise<AnswerOf<'delete'>> {
    const { conversation: id, lastEntryBefore: before } = request;
    const keep = before === undefined ? undefined : keepUnless(before, this.daemon.progress);
    const { posts: upToPost, existed, kept, ...removed } = await this.workers.delete(id, upTo, keep, origin);
    if (kept !== undefined) return { deleted: false, existed: true, kept };
    await this.#admin.search.forget(id);
    const { left, ...onBus } = await this.#admin.erasure.erase({ conversation: id, ...upToPost });
    const { store } = this.daemon;
    const notReached = beyondReach(store);
    const hasTraces =
      left.length + Object.values({ ...removed, ...onBus }).reduce((sum, n) => sum + n, 0) > 0;
    if (!existed && !hasTraces && before === undefined && !(await isKnown(store, id)))
      throw noConversation(id);
    return { deleted: true, existed, erased: { ...removed, ...onBus }, left, notReached };
  }

  async #view(request: RequestOf<'view'>): Promise<AnswerOf<'view'>> {
    const worker = await this.workers.existing(request.conversation);
    const { definitions, team } = this.daemon;
    const { sources } = team.for(worker.state);
    const known = { sources, definitions };
    const explained = await explainRequest(worker.entries(), request, known, this.room);
    if (!explained.ok)
      throw asError({ hint: '`parley show` lists the entries by index', ...explained.refusal });
    return explained.explanation;
  }

  #mode(request: RequestOf<'mode'>, caller: Caller): Promise<AnswerOf<'mode'>> {
    return this.#control(request, caller, ({ mode, agent, workflow, input }, by) => {
      const oversized = input === undefined ? null : tooLarge({ content: input, author: by }, this.room);
      if (oversized) throw asError(oversized);
      return { type: 'set-mode', mode, agent, workflow, input, by };
    });
  }

  async #seed(request: RequestOf<'seed'>, caller: Caller): Promise<AnswerOf<'seed'>> {
    const by = this.#operator(request, caller.isBound);
    const post = request.post && (await this.#nextPost(request, request.post, caller));
    const from = { publisher: request.publisher ?? by.id, now: this.daemon.now() };
    const beyond = refusalOfHistory(request.messages, this.#histories, from);
    if (beyond) throw asError(beyond);
    let after = 0;
    // An entry is larger than its text: it has an author and an index.
    const batches = seedsOf(request.messages, by, this.room / 2);
    for (const messages of batches.length > 0 ? batches : [[]]) {
      const command: Command = { type: 'seed', messages, after, by, post };
      await this.#submit(request.conversation, command);
      after += messages.length;
    }
    if (batches.length === 0) return { accepted: true };
    return this.#document(request.conversation);
  }

  /** The post that follows a seed. Throws the refusal that `post` would give. */
  async #nextPost(
    { conversation, publisher, author }: RequestOf<'seed'>,
    given: object,
    { sender, isBound }: Caller,
  ): Promise<CommandOf<'post'>['post']> {
    const { newId } = this.daemon;
    const asked = { author, ...given, conversation, publisher };
    const { post, bytes } = askedPost(asked, sender, newId, { isBound });
    const refused = this.#posts.refusalOf(post, bytes);
    if (refused && (await this.workers.fateInConversation(post)) === 'new') throw asError(refused);
    return { ...post, meta: post.meta && { ...post.meta } };
  }

  async #fork(request: RequestOf<'fork'>, { isBound, mayOperate }: Caller): Promise<AnswerOf<'fork'>> {
    const by = this.#operator(request, isBound);
    const { store } = this.daemon;
    const count = mayOperate ? null : (bytes: number) => this.#count(this.#histories, by, bytes);
    await forkConversation(request, by, { workers: this.workers, store, room: this.room, count });
    return this.#document(request.as);
  }

  /** A command for a conversation that exists. */
  async #steer<R extends RequestOf<SteeringVerb>>(
    request: R,
    caller: Caller,
    commandOf: (request: R, by: Author) => Command,
  ): Promise<AnswerOf<'conversation'>> {
    await this.workers.existing(request.conversation);
    return this.#control(request, caller, commandOf);
  }

  async #control<R extends RequestOf<SteeringVerb | 'phase' | 'mode'>>(
    request: R,
    { isBound }: Caller,
    commandOf: (request: R, by: Author) => Command,
  ): Promise<AnswerOf<'conversation'>> {
    const { conversation } = request;
    await this.#submit(conversation, commandOf(request, this.#operator(request, isBound)));
    return this.#document(conversation);
  }

  /** Throws the refusal. */
  async #submit(id: string, command: Command): Promise<Reply> {
    const reply = await this.workers.submit(id, command);
    if (reply.kind === 'refused') throw asError(reply.refusal);
    return reply;
  }

  #operator(request: Parameters<typeof operatorOf>[0], isBound: boolean): Author {
    return operatorOf(request, this.daemon.team.rules.roster, isBound);
  }

  /** Outstanding approvals, of every conversation or of one. */
  async #approvals(conversation: string | undefined): Promise<AnswerOf<'approvals'>> {
    if (conversation === undefined) return approvalsPage(await this.workers.approvals(), this.room);
    const { state } = await this.workers.existing(conversation); // also while no daemon works on it
    const pending = pendingApprovals(state).map((one) => ({ conversation, pending: one }));
    return approvalsPage(pending, this.room);
  }

  async #approvalThatWaits(id: string) {
    return (await this.workers.approvals()).find(({ pending }) => pending.approvalId === id);
  }

  async #change(
    { approvalId, arguments: others }: RequestOf<'change'>,
    { sender, isBound }: Caller,
  ): Promise<AnswerOf<'change'>> {
    const found = await this.#approvalThatWaits(approvalId);
    if (!found) throw asError(unknownApproval(approvalId));
    if (sender !== null && !isApprover(sender, undefined, this.daemon.team.approvers))
      return { change: null, why: refusalOfApproval(sender).message };
    const { toolbox } = this.daemon.team;
    if (!others) return changeOf(found, found.pending.call.arguments, toolbox);
    const changed = JSON.stringify(others);
    const by = this.#operator({ publisher: sender ?? undefined }, isBound);
    const command: Command = { type: 'answer', approvalId, answer: 'approve', arguments: changed, by };
    const reply = (await this.workers.existing(found.conversation)).replyTo(command);
    if (reply.kind === 'refused') return { change: null, why: reply.refusal.message };
    return changeOf(found, changed, toolbox);
  }

  /** Throws if the caller saw another change than the call would make now. */
  async #refuseUnseen({ seen, ...request }: RequestOf<'answer'>, caller: Caller): Promise<void> {
    if (seen === undefined || !(await this.#approvalThatWaits(request.approvalId))) return;
    const now = await this.#change(request, caller);
    if (now.seen === seen) return;
    throw new ParleyError('CHANGE_CONFLICT', 'the file changed since the difference was shown', {
      hint: 'look again: the call would change something else now',
    });
  }

  async #results(request: RequestOf<'results'>, caller: Caller): Promise<AnswerOf<'results'>> {
    const by = await this.#posterOf(request, caller);
    const results = request.results.map(resultOf);
    const reply = await this.#submit(request.conversation, { type: 'answer-calls', results, by });
    return { accepted: true, index: reply.kind === 'answered' ? reply.index : 0 };
  }

  async #feedback(
    { index: on, value, note, ...request }: RequestOf<'feedback'>,
    caller: Caller,
  ): Promise<AnswerOf<'feedback'>> {
    const by = await this.#posterOf(request, caller);
    this.#count(this.#ratings, by, 0);
    await this.#submit(request.conversation, { type: 'feedback', on, value, note, by });
    return { accepted: true };
  }

  /** Throws if the publisher is over its rate. */
  #count(limits: PublisherLimits, { id }: Author, bytes: number): void {
    const publisher = publisherOf(id);
    const waitMs = limits.count({ publisher, bytes, takenAt: this.daemon.now() });
    if (waitMs > 0) throw asError(limits.tooFast(publisher, waitMs));
  }

  /** The author of a request that a publisher makes about a conversation that exists. */
  async #posterOf(
    { conversation, publisher, author }: Pick<RequestOf<'feedback'>, 'conversation' | 'publisher' | 'author'>,
    { sender, isBound }: Caller,
  ): Promise<Author> {
    refuseOther(sender, publisher);
    const by = this.#operator({ publisher: sender ?? publisher, author }, isBound);
    await this.workers.existing(conversation);
    return by;
  }

  async #answer(request: RequestOf<'answer'>, caller: Caller): Promise<AnswerOf<'answer'>> {
    const { sender, isBound, mayOperate } = caller;
    const { approvalId, answer, reason, result, publisher, author, always } = request;
    refuseOther(sender, publisher);
    const by = this.#operator({ publisher: sender ?? publisher, author }, isBound);
    const isStranger = !isApprover(sender, publisher, this.daemon.team.approvers);
    if (isStranger && answer !== 'deny') throw asError(refusalOfApproval(by.id));
    if (always && !mayOperate) throw asError(refusalOfGrant(by.id));
    const conversation = conversationOfApproval(approvalId);
    if (conversation === null || !(await this.workers.isThere(conversation)))
      throw asError(unknownApproval(approvalId));
    const text = typeof result === 'string' || result === undefined ? result : JSON.stringify(result);
    const changed = request.arguments && JSON.stringify(request.arguments);
    if (answer === 'approve') await this.#refuseUnseen(request, caller);
    const given = { approvalId, answer, reason, result: text, arguments: changed, always };
    await this.#submit(conversation, { type: 'answer', ...given, by, isStranger });
    return { accepted: true };
  }
}

/** It exists, or was deleted before: a deletion can be repeated. */
async function isKnown(store: ConversationStore, id: string): Promise<boolean> {
  return (await store.deletedUpTo(id)) !== null || store.exists(id);
}

type Result = RequestOf<'results'>['results'][number];

function resultOf({ call: id, content: given, parts = [], isError }: Result): CallersResult {
  const call = placeOfCallId(id);
  if (call === null) throw new ParleyError('BAD_REQUEST', `results: ${id} is no id of a call`);
  const text = given || contentOf(parts.filter(({ type }) => type === 'text').map(partOf));
  const files = filesOf({ parts: parts.map(partOf) });
  const content = isError ? toolError('FAILED', text || 'the tool failed and gave no reason') : text;
  return { call, content, ...(files.length > 0 && { files }) };
}

type SteeringVerb = 'label' | 'hire' | 'dismiss' | 'stop' | 'resume';

/** The verb `view`. `room`: the largest answer, in bytes; texts of the definition that do not fit are left out. */
export async function explainRequest(
  entries: readonly Entry[],
  request: RequestOf<'view'>,
  known: ExplainContext,
  room: number,
): Promise<
  { readonly ok: true; readonly explanation: ExplainedRequest } | Extract<Explained, { readonly ok: false }>
> {
  const explained = await explainStored(entries, request, known);
  if (!explained.ok) return explained;
  const shown = await shownWithPrompt(explained, request.body, known.definitions.files);
  return { ok: true, explanation: within(shown, room) };
}

function within({ report, ...request }: ExplainedRequest, room: number): ExplainedRequest {
  const { texts, ...definition } = report.definition;
  if (!texts) return { ...request, report };
  const others = { ...request, report: { ...report, definition } };
  const fitting = fittingIn(Object.entries(texts), room - sizeOf(others));
  return {
    ...request,
    report: { ...report, definition: { ...definition, texts: Object.fromEntries(fitting) } },
  };
}

/** An entry with its long texts cut, and `truncated`: the log has it complete. */
function cutEntry(entry: Entry, most: number): Entry {
  const shown = Object.entries(entry).map(([key, value]) => {
    if (typeof value === 'string') return [key, cut(value, most)];
    return [key, JSON.stringify(value ?? null).length > most ? undefined : value];
  });
  return { ...Object.fromEntries(shown), truncated: true };
}

/** Conversations of one person; the ones that were read first are forgotten. */
const MOST_READ = 2_000;

type Reading = AnswerOf<'reading'>;

function readingIn(stored: unknown, now: string): Reading {
  const { since = now, lengths, filters } = (isRecord(stored) ? stored : {}) as Partial<Reading>;
  return { since, lengths: { ...lengths }, filters: filters ?? [] };
}

function merged(known: Reading, read: Reading['lengths'], filters = known.filters): Reading {
  const others = Object.entries(known.lengths).filter(([id]) => !Object.hasOwn(read, id));
  const lengths = Object.fromEntries([...others, ...Object.entries(read)].slice(-MOST_READ));
  return { since: known.since, lengths, filters };
}
