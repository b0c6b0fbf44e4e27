import { computed, effect, signal } from '@preact/signals';
import { keptList } from '../api/browser.ts';
import { checkSize, isRetryable, type Post, RequestError, requests, Unreachable } from '../api/requests.ts';
import { filesFor, moveFiles, next, partsFor, postOf, remove } from './files.ts';
import { access, isAway, nameFault, noteSigned, notice, owner, report, sender } from './session.ts';

/**
 * The posts of this tab that the daemon has not confirmed.
 *
 * OUTBOX-1 A post is stored with its id before it is sent. The daemon appends a post that it gets twice once.
 * OUTBOX-2 Posts are sent one at a time, and those of a conversation in the order in which they were written.
 * OUTBOX-3 A post without an answer is sent again until there is one. A refused post is kept until the person decides.
 * OUTBOX-4 After an answer that names a time, nothing is sent before: each attempt would be refused.
 * OUTBOX-5 A post is sent with a token of its writer alone. With another one, it waits for the person's decision.
 */

export interface KeptPost {
  readonly conversation: string;
  readonly post: Post;
  /** The owner of the token (OUTBOX-5). */
  readonly by: string;
  /** `sending`: for the first time. */
  readonly state: 'sending' | 'waiting' | 'refused';
  readonly reason?: string | undefined;
}

const RETRY_MS = 2_000;
const LONGEST_WAIT_MS = 300_000;
/** Posts that are shown until the log has them. */
const MOST_ACCEPTED = 20;

/** Posts that the daemon has accepted, and their entries. */
export const accepted = signal<readonly (KeptPost & { readonly index: number })[]>([]);

export const { list: outbox, keep: store } = keptList<KeptPost>('parley.outbox', sessionStorage, (stored) =>
  stored
    .map((kept) => ({ by: 'an unknown person', ...(kept as object) })) // an older page kept no writer
    .filter(isKept)
    .map((kept) => (kept.state === 'sending' ? { ...kept, state: 'waiting' } : kept)),
);

function isKept(value: unknown): value is KeptPost {
  const { conversation, post, by, state } = (value ?? {}) as Partial<Record<string, unknown>>;
  const { id, content } = (post ?? {}) as Partial<Record<string, unknown>>;
  const isText = [conversation, by, id, content].every((one) => typeof one === 'string');
  return isText && ['sending', 'waiting', 'refused'].includes(String(state));
}

/** The first of these posts by conversation. It may begin one that the daemon does not list yet. */
export const firstPosts = computed(() => byConversation([...accepted.value, ...outbox.value].reverse()));

export const heldPosts = computed(() =>
  byConversation(outbox.value.filter(({ state }) => state !== 'sending')),
);

function byConversation(posts: readonly KeptPost[]): ReadonlyMap<string, KeptPost> {
  return new Map(posts.map((kept) => [kept.conversation, kept]));
}

let passes = Promise.resolve();
/** OUTBOX-4. Milliseconds since the epoch. */
let notBefore = 0;
let retry: ReturnType<typeof setTimeout> | undefined;

/** Tries to send it, with the files of `draft`. False: it was refused, and the person sees the reason. */
export async function send(conversation: string, message: Omit<Post, 'id'>, draft = ''): Promise<boolean> {
  let post: Post = { id: crypto.randomUUID(), ...message, ...sender() };
  let isUploaded: boolean;
  try {
    const parts = partsFor(draft);
    isUploaded = parts !== null;
    if (parts && parts.length > 0) post = { ...post, parts };
    checkSize(post);
    if (nameFault.peek() !== null) throw new Error(nameFault.peek() ?? ''); // each post would be refused
  } catch (error) {
    reportUnsent(error);
    return false;
  }
  noteSigned();
  moveFiles(draft, postOf(post.id));
  const mustWait = !isUploaded || isAway.value || outbox.value.some(({ state }) => state === 'waiting');
  store([...outbox.value, { conversation, post, by: owner.peek(), state: mustWait ? 'waiting' : 'sending' }]);
  const isTried = flush();
  if (mustWait) return true;
  await isTried;
  if (keptOf(post.id)?.state !== 'refused') return true;
  moveFiles(postOf(post.id), draft);
  discard(post.id);
  return false;
}

export function sendAgain(id: string): void {
  change(id, { state: 'waiting', by: owner.peek() });
  void flush();
}

/** Conversations that were deleted. */
export function forgetAccepted(isGone: (conversation: string) => boolean): void {
  if (accepted.value.some(({ conversation }) => isGone(conversation)))
    accepted.value = accepted.value.filter(({ conversation }) => !isGone(conversation));
}

export function discard(id: string): void {
  store(outbox.value.filter(({ post }) => post.id !== id));
  for (const file of filesFor(postOf(id))) remove(file.id);
}

/** The browser asks before it closes the tab, which alone has them. */
addEventListener('beforeunload', (event) => {
  if (outbox.peek().length > 0) event.preventDefault();
});

effect(() => {
  void next.value; // an upload has ended
  if (access.value === 'granted' && !isAway.value) void flush();
});

function flush(): Promise<void> {
  passes = passes.then(sendAll);
  return passes;
}

async function sendAll(): Promise<void> {
  clearTimeout(retry);
  const blocked = new Set<string>();
  let isUnreachable = false;
  for (const { conversation, post } of outbox.peek()) {
    const kept = keptOf(post.id);
    if (access.peek() !== 'granted') return; // the token may be another one before its owner is known
    if (!kept || kept.state === 'refused') continue;
    if (kept.by !== owner.peek()) {
      const by = kept.by && `, as ${kept.by}`;
      change(post.id, { state: 'refused', reason: `it was written with another token${by}` }); // OUTBOX-5
      continue;
    }
    if (isUnreachable || blocked.has(conversation) || Date.now() < notBefore) {
      if (kept.state === 'sending') change(post.id, { state: 'waiting' });
      continue;
    }
    const error = await postWithFiles(kept);
    if (!error) continue;
    if (error === 'uploading' || isRetryable(error)) {
      blocked.add(conversation);
      const refusal = error instanceof RequestError ? error : null;
      if (refusal) notBefore = Date.now() + Math.min(refusal.afterMs, LONGEST_WAIT_MS);
      isUnreachable = error instanceof Unreachable;
      change(post.id, { state: 'waiting', reason: refusal?.message });
    } else {
      change(post.id, { state: 'refused', reason: error.message });
      reportUnsent(error);
    }
  }
  if (outbox.peek().some(({ state }) => state !== 'refused'))
    retry = setTimeout(flush, Math.max(RETRY_MS, notBefore - Date.now()));
}

function reportUnsent(error: unknown): void {
  report(error);
  if (notice.value) notice.value = { ...notice.value, text: `Not sent: ${notice.value.text}` };
}

/** `uploading`: its files are not. */
async function postWithFiles(kept: KeptPost): Promise<Error | 'uploading' | null> {
  try {
    const parts = partsFor(postOf(kept.post.id));
    if (parts === null) return 'uploading';
    const post = parts.length > 0 ? { ...kept.post, parts } : kept.post;
    const { index } = await requests.post(kept.conversation, post);
    accepted.value = [...accepted.peek(), { ...kept, post, index }].slice(-MOST_ACCEPTED);
    discard(post.id);
    if (/^Not sent: |Your text is in the message field\.$/.test(notice.value?.text ?? ''))
      notice.value = null;
    return null;
  } catch (error) {
    return error as Error;
  }
}

const keptOf = (id: string) => outbox.peek().find(({ post }) => post.id === id);

function change(id: string, to: Pick<KeptPost, 'state'> & Partial<KeptPost>): void {
  store(outbox.peek().map((kept) => (kept.post.id === id ? { ...kept, reason: undefined, ...to } : kept)));
}
