import { computed, effect, signal } from '@preact/signals';
import type { FilePart } from '../../conversation/index.ts';
import { inOneLine } from '../../kernel/hidden.ts';
import { keptList } from '../api/browser.ts';
import { isRetryable, type RequestError, requests, Unreachable } from '../api/requests.ts';
import { isPicture } from '../model/files.ts';
import { access, identity, isAway, owner, report } from './session.ts';

/**
 * Files that a person adds to messages, from the choice to the post.
 *
 * CHOSEN-1 Files are uploaded when they are chosen, one after the other. An upload that is cut off begins again; a refused one waits
 *         for the person.
 * CHOSEN-2 The content is in the memory of the tab. After a reload, files that were not uploaded are `lost`: the page names them,
 *         and the person chooses them again.
 * CHOSEN-3 A post is sent after its files. Files of a post that is refused are those of the message again.
 */

type State =
  /** `reason`: why the last attempt failed. */
  | { readonly kind: 'uploading'; readonly reason?: string }
  | { readonly kind: 'uploaded'; readonly part: FilePart }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'lost' };

export interface ChosenFile {
  readonly id: string;
  /** Of a message that is written, or of its post (`draftOf`, `postOf`). */
  readonly of: string;
  /** The person who chose it. */
  readonly by?: string;
  readonly name: string;
  readonly size: number;
  readonly state: State;
}

export const draftOf = (place: string): string => `draft ${place}`;
export const postOf = (id: string): string => `post ${id}`;

const RETRY_MS = 2_000;
const MOST_PREVIEWS = 50;

/** CHOSEN-2 */
const contents = new Map<string, File>();
/** Addresses of pictures in memory, by the id of the file and by its hash. */
const previews = new Map<string, string>();

export const { list: chosen, keep: store } = keptList<ChosenFile>('parley.files', sessionStorage, (stored) =>
  stored
    .filter(isChosen)
    .map((file) => (file.state.kind === 'uploading' ? { ...file, state: { kind: 'lost' } } : file)),
);
/** How much of the file that is uploaded is sent, from 0 to 1. */
export const progress = signal<{ readonly id: string; readonly share: number } | null>(null);
export const next = computed(() => chosen.value.find(({ state }) => state.kind === 'uploading')?.id);

/** Another version of the page may have stored anything. */
function isChosen(value: unknown): value is ChosenFile {
  const { id, of, name, state } = (value ?? {}) as Partial<ChosenFile>;
  return [id, of, name, state?.kind].every((one) => typeof one === 'string');
}

/** Those of the messages that another person wrote in this tab are forgotten with their texts. */
effect(() => {
  if (!identity.value) return;
  const person = owner.value;
  store(chosen.peek().filter(({ of, by = person }) => by === person || !of.startsWith(draftOf(''))));
});

export const filesFor = (of: string): readonly ChosenFile[] => chosen.value.filter((file) => file.of === of);

/** Undefined: it is not in memory, or no picture. */
export const previewOf = (idOrHash: string): string | undefined => previews.get(idOrHash);

/** `id`: of a lost file, which it replaces. */
export function choose(of: string, content: File, id: string = crypto.randomUUID()): void {
  const { name, size, type } = content;
  contents.set(id, content);
  if (isPicture(type)) keepPreview(id, URL.createObjectURL(content));
  const file: ChosenFile = { id, of, by: owner.peek(), name, size, state: { kind: 'uploading' } };
  store(find(id) ? chosen.peek().map((one) => (one.id === id ? file : one)) : [...chosen.peek(), file]);
  void uploadNext();
}

export function remove(id: string): void {
  store(chosen.peek().filter((file) => file.id !== id));
  contents.delete(id);
  if (running?.id === id) running.stop.abort();
}

export function moveFiles(from: string, to: string): void {
  store(chosen.peek().map((file) => (file.of === from ? { ...file, of: to } : file)));
}

/** The parts for a post; null: they are uploaded first. Throws if the person must do something first. */
export function partsFor(of: string): readonly FilePart[] | null {
  const files = filesFor(of);
  const namesOf = (kind: State['kind']) =>
    files.flatMap(({ state, name }) => (state.kind === kind ? inOneLine(name) : [])).join(', ');
  if (namesOf('lost') !== '') throw new Error(`choose again, or remove: ${namesOf('lost')}`);
  if (namesOf('refused') !== '') throw new Error(`remove what was refused: ${namesOf('refused')}`);
  const parts = files.flatMap(({ state }) => (state.kind === 'uploaded' ? state.part : []));
  return parts.length === files.length ? parts : null;
}

let running: { readonly id: string; readonly stop: AbortController } | null = null;

effect(() => {
  if (isAway.value) running?.stop.abort();
  else if (access.value === 'granted') void uploadNext();
});

async function uploadNext(): Promise<void> {
  const id = next.peek();
  if (running || !id || access.peek() !== 'granted' || isAway.peek()) return;
  running = { id, stop: new AbortController() };
  const [state, afterMs = 0] = await upload(id, running.stop.signal);
  running = progress.value = null;
  store(chosen.peek().map((file) => (file.id === id ? { ...file, state } : file)));
  if (state.kind === 'uploading' && find(id)) setTimeout(uploadNext, Math.max(RETRY_MS, afterMs));
  else await uploadNext();
}

/** `afterMs`: before the next attempt. */
async function upload(id: string, signal: AbortSignal): Promise<[state: State, afterMs?: number]> {
  const content = contents.get(id);
  if (!content) return [{ kind: 'lost' }];
  const first = content.slice(0, 1).arrayBuffer(); // the upload of what cannot be read fails like a lost connection
  if (!(await first.catch(() => null)))
    return [{ kind: 'refused', reason: 'it cannot be read: it is a folder, or was changed or removed' }];
  try {
    const part = await requests.upload(
      content,
      signal,
      (bytes) => (progress.value = { id, share: Math.min(1, bytes / content.size) }),
    );
    const preview = previews.get(id);
    if (preview) keepPreview(part.sha256, preview);
    return [{ kind: 'uploaded', part }];
  } catch (error) {
    if (error instanceof Unreachable) return [{ kind: 'uploading' }];
    const { message, hint, status, afterMs } = error as RequestError;
    if (status === 401) report(error);
    if (isRetryable(error) || status === 401) return [{ kind: 'uploading', reason: message }, afterMs];
    return [{ kind: 'refused', reason: `${message}; ${hint}` }];
  }
}

const find = (id: string) => chosen.peek().find((file) => file.id === id);

/** Pictures of a person's own messages need no request. The oldest are forgotten. */
function keepPreview(key: string, address: string): void {
  previews.set(key, address);
  const [oldest, url] = [...previews][0] ?? ['', ''];
  if (previews.size <= MOST_PREVIEWS || url === address) return;
  previews.delete(oldest);
  if (![...previews.values()].includes(url)) URL.revokeObjectURL(url);
}

/** Saves what is at an address, as a link does: the page runs nothing of it. `name`: if the address gives none. */
export function save(address: string, name = ''): void {
  Object.assign(document.createElement('a'), { href: address, download: name }).click();
}
