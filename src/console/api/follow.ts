import type { Entry } from '../../conversation/index.ts';
import type { Chunk } from '../model/thread/live.ts';
import { apiFor, sessionMark } from './browser.ts';
import workerAddress from './events-worker.ts?sharedworker&url';
import type { Connection, ListChange, Sent, Told, Wanted } from './hub.ts';
import { ALIVE_EVERY_MS, joinHubs } from './hub.ts';

/**
 * What this tab gets of the stream that it shares with the other tabs.
 *
 * FOLLOW-1 A tab that is hidden for a while releases its conversation, and gets what it missed when it is shown. It keeps
 *    the list, which costs a shared stream nothing.
 * FOLLOW-2 A stream of its own is released soon after: a browser opens six connections to a daemon over HTTP/1.1. One hidden tab
 *    keeps the list, for what it notifies of.
 */

export interface Following {
  readonly conversation: string;
  readonly next: () => number;
  readonly onEntry: (entry: Entry) => void;
  readonly onChunk: (chunk: Chunk) => void;
  /** The log had so many entries; 0: there is no such conversation. */
  readonly onCurrent: (length: number) => void;
  readonly onConnection: (connection: Connection) => void;
  readonly signal: AbortSignal;
}

export interface ListListener {
  readonly onList: (change: ListChange) => void;
  readonly onConnection: (connection: Connection) => void;
}

const RELEASE_MS = 60_000;
const RELEASE_OWN_MS = 1_000;

let following: Following | null = null;
let list: ListListener | null = null;
let id = 0;
let isReleased = false;
let link: ((told: Told) => void) | null = null;
let isShared = true;
/** This hidden tab keeps the list (FOLLOW-2). */
let isKeeper = false;

/** Follows until the signal aborts. One conversation at a time. */
export function follow(next: Following): void {
  following = next;
  id++;
  next.signal.addEventListener('abort', () => {
    if (following !== next) return;
    following = null;
    update();
  });
  update();
}

export function followList(listener: ListListener): () => void {
  list = listener;
  const alive = setInterval(update, ALIVE_EVERY_MS);
  let release: ReturnType<typeof setTimeout> | undefined;
  const ended = new AbortController();
  const options = { signal: ended.signal };
  let shown = new AbortController();
  const onVisibility = () => {
    clearTimeout(release);
    shown.abort();
    if (document.visibilityState === 'visible') return setReleased(false);
    shown = new AbortController();
    const { signal } = shown;
    release = setTimeout(
      () => {
        setReleased(true);
        if (!isShared) keepOne(AbortSignal.any([signal, ended.signal]));
      },
      isShared ? RELEASE_MS : RELEASE_OWN_MS,
    );
  };
  document.addEventListener('visibilitychange', onVisibility, options);
  addEventListener('pagehide', () => tell(null), options);
  addEventListener('pageshow', update, options);
  update();
  onVisibility(); // a tab may be opened in the background
  return () => {
    list = null;
    clearInterval(alive);
    clearTimeout(release);
    ended.abort();
    update();
  };
}

/** The first of the hidden tabs is the keeper until the signal aborts; then the next one. */
function keepOne(signal: AbortSignal): void {
  const keep = () => {
    isKeeper = true;
    update();
    return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  };
  const over = () => (isKeeper = false);
  navigator.locks?.request('parley-stream', { signal }, keep).then(over, over); // null where the page is not secure
}

function setReleased(next: boolean): void {
  if (isReleased === next) return;
  isReleased = next;
  id++;
  update();
}

function update(): void {
  const { conversation } = following ?? {};
  const isFollowed = conversation !== undefined && !isReleased;
  const wanted: Wanted = {
    list: list !== null && (isShared || isKeeper || !isReleased),
    follow: isFollowed ? { conversation, id, next: following?.next() ?? 0 } : null,
  };
  tell(wanted.list || wanted.follow ? wanted : null);
}

function tell(wanted: Wanted | null): void {
  link ??= openLink();
  link({ address: new URL(`${apiFor()}/events`, document.baseURI).href, session: sessionMark(), wanted });
}

function receive(batch: readonly Sent[]): void {
  for (const sent of batch) {
    if (sent.kind === 'list') list?.onList(sent.change);
    else if (sent.kind === 'connection' && sent.id === null) {
      list?.onConnection(sent.connection);
      following?.onConnection(sent.connection);
    } else if (sent.id !== id)
      continue; // of a conversation that was left
    else if (sent.kind === 'entry') following?.onEntry(sent.entry);
    else if (sent.kind === 'chunk') following?.onChunk(sent.chunk);
    else if (sent.kind === 'current') following?.onCurrent(sent.length);
    else following?.onConnection(sent.connection);
  }
}

function openLink(): (told: Told) => void {
  if (typeof SharedWorker === 'undefined') return ownLink();
  const worker = new SharedWorker(trusted(workerAddress), { name: 'parley' });
  worker.port.onmessage = ({ data }: MessageEvent<readonly Sent[]>) => receive(data);
  worker.onerror = () => {
    link = ownLink();
    update();
  };
  return (told) => worker.port.postMessage(told);
}

/** Without a SharedWorker, the tab has a stream of its own (FOLLOW-2). */
function ownLink(): (told: Told) => void {
  isShared = false;
  return joinHubs(receive);
}

type TrustedTypes = { createPolicy(name: string, rules: object): { createScriptURL(url: string): string } };

/** The page's policy allows this script as a worker, and no other. */
function trusted(url: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  const policy = trustedTypes?.createPolicy('parley-worker', { createScriptURL: () => url });
  return policy?.createScriptURL(url) ?? url;
}
