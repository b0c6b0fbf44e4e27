import type { DeliveryMode, Entry, ExplainedRequest, Mode } from '../../conversation/index.ts';
import type { DeadLetter, McpServer, Status, TeamAgent } from '../model/system/system.ts';
import type { Workflow } from '../model/thread/runs.ts';
import { readToken } from './session.ts';
import type { WhatIf, WhatIfResult, WhatIfStart } from './what-if.ts';

/** The requests of the console, all to the public API (`/api/openapi.json`). */

export interface AgentCard {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly phases: readonly string[];
  readonly modes: readonly Mode[];
  /** Its key in `models`; absent: its program calls one. */
  readonly model?: string;
}

export interface Identity {
  readonly role: string;
  /** Null: may act as any publisher. */
  readonly publisher: string | null;
  /** The owner of the token; null: the user chooses a name. */
  readonly name: string | null;
}

export interface FoundMessage {
  readonly conversation: string;
  readonly title: string | null;
  readonly index: number;
  readonly at: string;
  readonly author: { readonly kind: string; readonly id: string; readonly name: string };
  readonly snippet: string;
  /** Start and end of each found word in the snippet. */
  readonly marks: readonly (readonly [number, number])[];
}

/** The actor, in addition to the token. */
export interface Sender {
  readonly publisher?: string;
  readonly author?: { readonly name: string };
}

export interface Post extends Sender {
  readonly id: string;
  readonly content: string;
  readonly delivery?: DeliveryMode;
  readonly to?: readonly string[];
  readonly replyTo?: string;
  /** The workflow that the message starts. */
  readonly workflow?: string;
}

/** A refusal of the daemon. */
export class RequestError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  /** Milliseconds before the same request may succeed; 0: not known. */
  readonly afterMs: number;

  constructor(status: number, code: string, message: string, hint: string, afterMs = 0) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.afterMs = afterMs;
  }
}

/** The daemon did not answer, or answered that it cannot at present. The same request may succeed later. */
export class Unreachable extends Error {}

/** Statuses of a daemon that starts, stops or has no server, and of a proxy without a daemon. */
const RETRYABLE: readonly number[] = [429, 502, 503, 504];

export function isRetryable(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof RequestError && RETRYABLE.includes(error.status));
}

export function headers(): Record<string, string> {
  const token = readToken();
  return token === null ? {} : { authorization: `Bearer ${token}` };
}

/** Exchanges the one-time code of an address for the daemon's token. */
export async function tokenFor(code: string): Promise<string> {
  const headers = { authorization: `Code ${code}` };
  const response = await reach('api/console-token', { method: 'POST', headers });
  if (!response.ok) throw await refusalOf(response);
  return ((await response.json()) as { token: string }).token;
}

async function ask<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const response = await reach(`api/${path}`, {
    method,
    headers: { ...headers(), ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
  if (!response.ok) throw await refusalOf(response);
  return (await response.json()) as T;
}

/** `fetch`, whose own error differs by browser. */
async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (cause) {
    throw new Unreachable('The daemon does not answer', { cause });
  }
}

async function refusalOf(response: Response): Promise<RequestError> {
  const said = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const text = (name: string, otherwise: string) => {
    const value = said[name];
    return typeof value === 'string' ? value : otherwise;
  };
  const code = text('code', `HTTP_${response.status}`);
  const seconds = Number(response.headers.get('retry-after')) || 0;
  const [detail, hint] = [text('detail', response.statusText), text('hint', '')];
  return new RequestError(response.status, code, detail, hint, seconds * 1_000);
}

/** Bytes of a request's body that the daemon accepts. */
const MOST_BYTES = 1_048_576;

/** Throws if the daemon would not read it. It closes the connection then, as if it did not answer. */
export function checkSize(post: Post): void {
  const { size } = new Blob([JSON.stringify(post)]);
  if (size <= MOST_BYTES) return;
  const megabytes = (bytes: number) => `${(bytes / MOST_BYTES).toFixed(2)} MiB`;
  throw new RequestError(
    413,
    'TOO_LARGE',
    `The message has ${megabytes(size)}. A message may have ${megabytes(MOST_BYTES)}`,
    'Shorten it, send it in parts, or let the agents read it from a file.',
  );
}

/** The name that the daemon gives a file: the one in UTF-8, if there are two. */
function fileNameIn({ headers }: Response): string {
  const given = headers.get('content-disposition') ?? '';
  const [, encoded] = /filename\*=UTF-8''([^;]+)/.exec(given) ?? [];
  return encoded === undefined ? (/filename="([^"]*)"/.exec(given)?.[1] ?? '') : decodeURIComponent(encoded);
}

/** Longer than the daemon waits for its server. */
const POST_TIMEOUT_MS = 30_000;

const of = (conversation: string) => `conversations/${encodeURIComponent(conversation)}`;

export const requests = {
  identity: () => ask<Identity>('GET', 'identity'),
  /** `models`: names for a what-if; absent from an older daemon. */
  agents: () => ask<{ agents: AgentCard[]; models?: string[]; default?: string }>('GET', 'agents'),
  phases: () => ask<{ phases: { phase: string; description: string }[] }>('GET', 'phases'),
  workflows: () => ask<{ workflows: Workflow[] }>('GET', 'workflows'),
  entries: (conversation: string, from: number, limit: number) =>
    ask<{ entries: Entry[] }>('GET', `${of(conversation)}/entries?from=${from}&limit=${limit}`),
  /** `days`: with what model calls used on each of them. */
  status: (days?: number) =>
    ask<Status>(
      'GET',
      `status?limit=${days === undefined ? 1 : 20}${days === undefined ? '' : `&days=${days}`}`,
    ),
  /** `persona`: the agent whose persona the answer contains. */
  team: (persona?: string) =>
    ask<{ agents: (TeamAgent & { persona?: string })[] }>(
      'GET',
      persona === undefined ? 'agents' : `agents?persona=${encodeURIComponent(persona)}`,
    ),
  tools: () => ask<{ servers: McpServer[] }>('GET', 'tools'),
  deadLetters: (limit: number) => ask<{ letters: DeadLetter[] }>('GET', `dead-letters?limit=${limit}`),
  deadLettersOf: (conversation: string, publisher: string) =>
    ask<{ letters: DeadLetter[] }>(
      'GET',
      `dead-letters?${new URLSearchParams({ conversation, publisher, limit: '20' })}`,
    ),
  deadLetter: (sequence: number) => ask<DeadLetter & { original: string }>('GET', `dead-letters/${sequence}`),
  retryLetter: (sequence: number) => ask('POST', `dead-letters/${sequence}/retry`),
  discardLetter: (sequence: number) => ask('DELETE', `dead-letters/${sequence}`),
  search: (q: string, more: Readonly<Record<string, string>>) =>
    ask<{ hits: FoundMessage[]; pending: number }>('GET', `search?${new URLSearchParams({ q, ...more })}`),
  /** A post without an answer may be sent again with its id. */
  post: (conversation: string, post: Post) =>
    ask<{ index: number }>(
      'POST',
      `${of(conversation)}/messages`,
      post,
      AbortSignal.timeout(POST_TIMEOUT_MS),
    ),
  /** `at`: as of this entry; null: now. `texts`: the parts of the definition whose texts the answer contains. */
  view(conversation: string, agent: string, at: number | null, texts: readonly string[] = []) {
    const query = new URLSearchParams({ agent, ...(at !== null && { at: String(at) }) });
    if (texts.length > 0) query.set('texts', texts.join(','));
    return ask<ExplainedRequest>('GET', `${of(conversation)}/view?${query}`);
  },
  fork: (conversation: string, step: Sender & { as: string; at: number }) =>
    ask('POST', `${of(conversation)}/fork`, step),
  whatIf: (conversation: string, start: Sender & WhatIfStart) =>
    ask<WhatIf>('POST', `${of(conversation)}/what-if`, start),
  whatIfs: (conversation: string) => ask<{ whatIfs: WhatIf[] }>('GET', `${of(conversation)}/what-ifs`),
  whatIfResult: (conversation: string, id: string, limit?: number) =>
    ask<WhatIfResult>(
      'GET',
      `${of(conversation)}/what-ifs/${id}${limit === undefined ? '' : `?limit=${limit}`}`,
    ),
  whatIfStop: (conversation: string, id: string) =>
    ask<WhatIf>('POST', `${of(conversation)}/what-ifs/${id}/stop`, {}),
  /** As a file; `format`: `markdown` or `openai`. */
  async exported(conversation: string, format: string) {
    const response = await reach(`api/${of(conversation)}/export?format=${format}`, { headers: headers() });
    if (!response.ok) throw await refusalOf(response);
    return { name: fileNameIn(response), content: await response.blob() };
  },
  label: (conversation: string, step: Sender & { title?: string; archived?: boolean }) =>
    ask('POST', `${of(conversation)}/label`, step),
  phase: (conversation: string, step: Sender & { phase: string }) =>
    ask('POST', `${of(conversation)}/phase`, step),
  mode: (conversation: string, step: Sender & { mode: Mode; agent?: string; workflow?: string }) =>
    ask('POST', `${of(conversation)}/mode`, step),
  stop: (conversation: string, step: Sender & { agent?: string }) =>
    ask('POST', `${of(conversation)}/stop`, step),
  resume: (conversation: string, step: Sender & { agent?: string }) =>
    ask('POST', `${of(conversation)}/resume`, step),
  delete: (conversation: string) => ask('DELETE', of(conversation)),
  answer: (approvalId: string, answer: string, more: Sender & { reason?: string; result?: string }) =>
    ask('POST', `approvals/${encodeURIComponent(approvalId)}`, { answer, ...more }),
};
