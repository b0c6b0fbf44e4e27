import type { AnswerOf, RequestOf, Verb } from '../../bus/contract.ts';
import type { FilePart } from '../../conversation/index.ts';
import { apiFor } from './browser.ts';

/** The requests of the console, all to the public API (`/api/openapi.json`). */

export interface Identity {
  readonly role: string;
  /** Null: may act as any publisher. */
  readonly publisher: string | null;
  /** The owner of the token; null: the user chooses a name. */
  readonly name: string | null;
  readonly isSession: boolean;
}

/** The actor, in addition to the token. */
export type Sender = Pick<RequestOf<'stop'>, 'publisher' | 'author'>;

export type ApprovalAnswer = Body<'answer'>;

export type Post = Omit<Body<'post'>, 'parts'> & {
  readonly id: string;
  readonly parts?: readonly FilePart[] | undefined;
};

/** A request without what its path names. */
type Body<V extends Verb> = Omit<RequestOf<V>, 'conversation' | 'approvalId' | 'sequence'>;

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

/** With a token (`Bearer …`), or the one-time code of an address (`Code …`). */
export async function signIn(authorization: string, mark: string): Promise<void> {
  await reach(`${apiFor(mark)}/session`, { method: 'POST', headers: { authorization } });
}

export async function signOut(): Promise<void> {
  await reach(`${apiFor()}/session`, { method: 'DELETE' });
}

async function ask<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const response = await reach(`${apiFor()}/${path}`, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
  return (await response.json()) as T;
}

/** The answer, if it is no refusal. The own error of `fetch` differs by browser. */
async function reach(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(path, init).catch((cause) => {
    throw new Unreachable('The daemon does not answer', { cause });
  });
  if (!response.ok) throw await refusalOf(response);
  return response;
}

async function refusalOf(response: Response): Promise<RequestError> {
  const { status, statusText, headers } = response;
  const said = (await response.json().catch(() => ({}))) as Partial<Record<string, string>>; // a proxy may send a page
  const { code = `HTTP_${status}`, detail = statusText, hint = '' } = said;
  return new RequestError(status, code, detail, hint, 1_000 * (Number(headers.get('retry-after')) || 0));
}

/** `fetch` does not say how much is sent. */
function upload(file: File, signal: AbortSignal, onSent: (bytes: number) => void): Promise<FilePart> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', `${apiFor()}/blobs?${new URLSearchParams({ name: file.name })}`);
    request.upload.onprogress = ({ loaded }) => onSent(loaded);
    request.onerror = request.onabort = () => reject(new Unreachable('The daemon does not answer'));
    request.onload = () => {
      const { status, statusText, response } = request;
      const headers = { 'retry-after': request.getResponseHeader('retry-after') ?? '' };
      if (status === 201) resolve(JSON.parse(response));
      else refusalOf(new Response(response, { status, statusText, headers })).then(reject);
    };
    signal.onabort = () => request.abort();
    request.send(file);
  });
}

/** Bytes of a request's body that the daemon accepts. */
const MOST_BYTES = 1_048_576;

/** Throws if the daemon would not read it. It closes the connection then, as if it did not answer. */
export function checkSize(post: Post): void {
  const { size } = new Blob([JSON.stringify(post)]);
  if (size <= MOST_BYTES) return;
  const megabytes = (bytes: number) => `${(bytes / MOST_BYTES).toFixed(2)} MiB`;
  const message = `The message has ${megabytes(size)}. A message may have ${megabytes(MOST_BYTES)}`;
  const hint = 'Shorten it, send it in parts, or let the agents read it from a file.';
  throw new RequestError(413, 'TOO_LARGE', message, hint);
}

/** Longer than the daemon waits for its server. */
const POST_TIMEOUT_MS = 30_000;

const of = (conversation: string) => `conversations/${encodeURIComponent(conversation)}`;

const get = <V extends Verb>(path: string) => ask<AnswerOf<V>>('GET', path);

/** What a person changes in a conversation. */
const step =
  <V extends Verb>(path: string) =>
  (conversation: string, body: Body<V>) =>
    ask<AnswerOf<V>>('POST', `${of(conversation)}/${path}`, body);

export const requests = {
  identity: () => ask<Identity>('GET', 'identity'),
  /** `persona`: the agent whose persona the answer contains. */
  agents: (persona?: string) =>
    get<'agents'>(persona === undefined ? 'agents' : `agents?${new URLSearchParams({ persona })}`),
  phases: () => get<'phases'>('phases'),
  workflows: () => get<'workflows'>('workflows'),
  conversation: (conversation: string) => get<'conversation'>(of(conversation)),
  entries: (conversation: string, from: number, limit: number) =>
    get<'entries'>(`${of(conversation)}/entries?from=${from}&limit=${limit}`),
  /** `days`: with what model calls used on each of them. */
  status: (days?: number) =>
    get<'status'>(days === undefined ? 'status?limit=1' : `status?limit=20&days=${days}`),
  tools: () => get<'tools'>('tools'),
  deadLetters: (limit: number) => get<'dead'>(`dead-letters?limit=${limit}`),
  deadLetter: (sequence: number) => get<'dead-letter'>(`dead-letters/${sequence}`),
  retryLetter: (sequence: number) => ask('POST', `dead-letters/${sequence}/retry`),
  discardLetter: (sequence: number) => ask('DELETE', `dead-letters/${sequence}`),
  search: (q: string, more: Readonly<Record<string, string>>) =>
    get<'search'>(`search?${new URLSearchParams({ q, ...more })}`),
  /** What the daemon keeps for this person, with these changes. */
  reading: (changes: Omit<RequestOf<'reading'>, 'publisher' | 'author'>) =>
    ask<AnswerOf<'reading'>>('POST', 'reading', changes),
  turns: (query: Readonly<Record<string, string>>) => get<'turns'>(`turns?${new URLSearchParams(query)}`),
  /** A post without an answer may be sent again with its id. */
  post: (conversation: string, post: Post) =>
    ask<AnswerOf<'post'>>('POST', `${of(conversation)}/messages`, post, AbortSignal.timeout(POST_TIMEOUT_MS)),
  /** `at`: as of this entry; null: now. `texts`: the parts of the definition whose texts the answer contains. */
  view(conversation: string, agent: string, at: number | null, texts: readonly string[] = []) {
    const query = new URLSearchParams({ agent, ...(at !== null && { at: String(at) }) });
    if (texts.length > 0) query.set('texts', texts.join(','));
    return get<'view'>(`${of(conversation)}/view?${query}`);
  },
  fork: step<'fork'>('fork'),
  whatIf: step<'what-if'>('what-if'),
  whatIfs: (conversation: string) => get<'what-ifs'>(`${of(conversation)}/what-ifs`),
  whatIfResult: (conversation: string, id: string) =>
    get<'what-if-result'>(`${of(conversation)}/what-ifs/${id}`),
  whatIfStop: (conversation: string, id: string) =>
    ask('POST', `${of(conversation)}/what-ifs/${id}/stop`, {}),
  upload,
  /** Rejects with the reason why the browser did not load this address. */
  check: (address: string) => reach(address, {}),
  label: step<'label'>('label'),
  feedback: step<'feedback'>('feedback'),
  phase: step<'phase'>('phase'),
  mode: step<'mode'>('mode'),
  stop: step<'stop'>('stop'),
  resume: step<'resume'>('resume'),
  delete: (conversation: string) => ask('DELETE', of(conversation)),
  /** `others`: instead of the arguments of the call. */
  change(approvalId: string, others?: RequestOf<'change'>['arguments']) {
    const path = `approvals/${encodeURIComponent(approvalId)}/change`;
    return others ? ask<AnswerOf<'change'>>('POST', path, { arguments: others }) : get<'change'>(path);
  },
  answer: (approvalId: string, body: ApprovalAnswer) =>
    ask('POST', `approvals/${encodeURIComponent(approvalId)}`, body),
};

/** Addresses that the browser loads itself. The daemon names their files. */
export const addressOf = {
  /** `format`: `markdown` or `openai`. */
  export: (conversation: string, format: string) => `${apiFor()}/${of(conversation)}/export?format=${format}`,
  file: (conversation: string, { sha256, name = '' }: FilePart) =>
    `${apiFor()}/${of(conversation)}/blobs/${sha256}?${new URLSearchParams({ name })}`,
};
