import type { ApiAnswer, ApiRequest } from '../../bus/index.ts';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { refusal, sleep } from '../../kernel/index.ts';
import type { Api } from '../api.ts';
import { type ApprovalsPage, mergedApprovals } from '../approvals.ts';
import type { Workers } from '../workers.ts';
import type { Members } from './members.ts';
import { agentsOf, conversationsOf } from './merge.ts';
import type { Router } from './router.ts';
import { isMovedCode } from './tenure.ts';

/**
 * The request API where several daemons answer it: whichever is asked.
 *
 * A1 What concerns one conversation is answered by the daemon that works on it; else from the log.
 * A2 What concerns all of them is put together from what each says. One that does not answer is left out.
 */

const MOST_TRIES = 8;

export class SharedApi {
  readonly #api: Api;
  readonly #workers: Workers;
  readonly #router: Router;
  readonly #members: Members;

  constructor(api: Api, parts: { workers: Workers; router: Router; members: Members }) {
    this.#api = api;
    this.#workers = parts.workers;
    this.#router = parts.router;
    this.#members = parts.members;
  }

  async handle(request: ApiRequest): Promise<ApiAnswer> {
    switch (request.endpoint) {
      case 'post': // goes through the stream, to whoever works on it
      case 'tools':
        return this.#api.handle(request);
      case 'agents':
        return this.#fromAll(request, agentsOf);
      case 'conversations':
        return this.#fromAll(request, (bodies) => conversationsOf(bodies, request.body));
      case 'answer':
        return this.#answer(request);
    }
    const conversation = conversationIn(request.body);
    if (conversation !== null) return this.#route(conversation, request);
    if (request.endpoint === 'approvals')
      return this.#fromAll(request, (pages) => mergedApprovals(pages as ApprovalsPage[], this.#api.room));
    return this.#api.handle(request);
  }

  /** What another daemon asks of this one. Undefined: it does not work on that conversation. */
  async asked(conversation: string | null, request: ApiRequest): Promise<{ answer: ApiAnswer | null }> {
    if (conversation !== null && !(await this.#workers.willHold(conversation))) return { answer: null };
    return { answer: await this.#api.handle(request) };
  }

  /** The conversation in which this daemon waits for an answer to an approval. */
  async askedFor(approvalId: string): Promise<{ conversation: string | null }> {
    return { conversation: (await this.#workers.conversationOf(approvalId)) ?? null };
  }

  /** A1 */
  async #route(conversation: string, request: ApiRequest): Promise<ApiAnswer> {
    for (let tries = 1; ; tries++) {
      const place = await this.#router.place(conversation);
      if (place.kind === 'there') {
        const heard = await this.#router.ask(place.claim.daemon, 'api', { conversation, request });
        const answer = heard.kind === 'answered' ? answerIn(heard.body) : null;
        if (answer) return answer;
        if (heard.kind === 'answered') this.#router.isFree(conversation, place.claim);
      }
      const answer = await this.#api.handle(request);
      const isElsewhere = !answer.ok && isMovedCode(answer.refusal.code);
      if (!isElsewhere || tries >= MOST_TRIES) return answer;
      await sleep(tries * 10);
    }
  }

  async #answer(request: ApiRequest): Promise<ApiAnswer> {
    const approvalId = fieldOf(request.body, 'approvalId');
    if (approvalId === null || (await this.#workers.conversationOf(approvalId)) !== undefined)
      return this.#api.handle(request);
    for (const daemon of this.#members.others) {
      const heard = await this.#router.ask(daemon, 'approval', { approvalId });
      if (heard.kind !== 'answered' || conversationIn(heard.body) === null) continue;
      const answered = await this.#router.ask(daemon, 'api', { conversation: null, request });
      if (answered.kind === 'answered') return answerIn(answered.body) ?? unanswered(request);
      return unanswered(request);
    }
    return this.#api.handle(request);
  }

  /** A2 */
  async #fromAll(request: ApiRequest, merge: (bodies: readonly unknown[]) => unknown): Promise<ApiAnswer> {
    const own = await this.#api.handle(request);
    if (!own.ok) return own;
    const bodies = await Promise.all(
      this.#members.others.map(async (daemon) => {
        const heard = await this.#router.ask(daemon, 'api', { conversation: null, request });
        const answer = heard.kind === 'answered' ? answerIn(heard.body) : null;
        return answer?.ok ? [answer.body] : [];
      }),
    );
    return { ok: true, body: merge([own.body, ...bodies.flat()]) };
  }
}

function unanswered({ endpoint }: ApiRequest): ApiAnswer {
  const message = `the daemon that has to answer ${endpoint} did not answer in time`;
  return { ok: false, refusal: refusal('TIMEOUT', message, 'ask again: it may have been done') };
}

function answerIn(body: unknown): ApiAnswer | null {
  if (typeof body !== 'object' || body === null || !('answer' in body)) return null;
  return body.answer as ApiAnswer | null;
}

function fieldOf(body: unknown, name: string): string | null {
  const value = typeof body === 'object' && body !== null ? Reflect.get(body, name) : null;
  return typeof value === 'string' ? value : null;
}

export function conversationIn(body: unknown): string | null {
  const id = fieldOf(body, 'conversation');
  return id !== null && NAME_PATTERN.test(id) ? id : null;
}
