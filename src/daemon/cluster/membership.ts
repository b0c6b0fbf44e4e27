import {
  type Bus,
  handlePeerMessage,
  type IngressOptions,
  invalidAnswer,
  type PeerHandlers,
  type PeerRequestOf,
  type SharedIngress,
  type Sharing,
} from '../../bus/index.ts';
import type { LiveArrival } from '../../conversation/index.ts';
import { hasCode, type Log, messageOf, ParleyError, refusal, sizeOf, sleep } from '../../kernel/index.ts';
import type { SharedLogs } from '../../persistence/index.ts';
import type { Api } from '../api/api.ts';
import type { IngressProgress } from '../conversations/ingress-progress.ts';
import { moved, type Ownership } from '../conversations/ownership.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Elsewhere, Follow, Watchers } from '../feed/watchers.ts';
import type { OtherDaemons } from '../ingress/posts.ts';
import { type Claimant, ClaimingOwner } from './claims.ts';
import { type ConfigFingerprint, PeerMonitor } from './peer-monitor.ts';
import { Reconciler } from './reconciler.ts';
import { Router } from './router.ts';
import { SharedApi } from './shared-api.ts';
import { SharedPosts, type SharedPostsParts } from './shared-posts.ts';

/**
 * Connects this daemon with the others on the same server and prefix that share its logs
 * (docs/decisions.md, 0011).
 *
 * MEMBERSHIP-1  It answers peers before it takes over work, and reads posts before it searches for orphaned work.
 * MEMBERSHIP-2  To leave, it takes no more posts, lets running work finish, hands over each conversation as soon
 *               as it is idle, and announces that it leaves when it has none left.
 */

const READ_RETRY_MS = 250;
const CONFIG_DIFFERS =
  'another daemon has a different configuration: the result depends on which daemon works on a conversation';
/** Time for the peers' first heartbeats. */
const GREETING_MS = 200;

interface MembershipParts {
  readonly daemon: string;
  readonly bus: Bus;
  readonly logs: SharedLogs;
  readonly failureTimeoutMs: number;
  readonly fingerprint: ConfigFingerprint;
  readonly log: Log;
}

export interface MemberWork {
  readonly workers: Workers;
  readonly api: Api;
  readonly watchers: Watchers;
  readonly runtime: SharedPostsParts['runtime'] & { readonly progress: Pick<IngressProgress, 'settledUpTo'> };
  /** For the daemon that reads the posts. */
  readonly ingress: IngressOptions;
  /** Aborted when this daemon leaves. */
  readonly leaving: AbortSignal;
}

export class Membership {
  readonly ownership: Ownership;
  readonly daemon: string;
  readonly #parts: MembershipParts;
  readonly #sharing: Sharing;
  readonly #freezes: FreezeWatch;
  #work: MemberWork | null = null;
  #monitor: PeerMonitor | null = null;
  #router: Router | null = null;
  #reconciler: Reconciler | null = null;
  #ingress: SharedIngress | null = null;
  #shared: SharedPosts | null = null;
  /** The identity of the ingress stream. */
  #ingressCreated: string | undefined;

  constructor(parts: MembershipParts) {
    this.#parts = parts;
    this.daemon = parts.daemon;
    this.#sharing = parts.bus.share(parts.daemon);
    this.#freezes = new FreezeWatch(parts.failureTimeoutMs / 2, (frozenMs) => this.#resumed(frozenMs));
    this.ownership = new ClaimingOwner({
      daemon: parts.daemon,
      logs: parts.logs,
      ingressCreated: () => this.#ingressCreated,
      mayTakeOver: (conversation, from) => this.#router?.mayTakeOver(conversation, from) ?? false,
      mayAct: (conversation, signal) => this.#mayAct(conversation, signal),
      publishGivenUp: (conversation, triggers) => void this.#publishGivenUp(conversation, triggers),
    });
  }

  /** Follows a conversation, whichever daemon publishes it. */
  readonly follow: Follow = (conversation, tell) =>
    this.#sharing.follow(conversation, {
      entries: (entries) => tell({ kind: 'entries', entries }),
      live: (agent, chunk) => tell({ kind: 'live', agent, chunk }),
    });

  /** None, if its daemon does not answer or does not know the verb. */
  readonly textsOf: Elsewhere['textsOf'] = async (conversation) => {
    const router = required(this.#router);
    const location = await router.locate(conversation);
    if (location.kind !== 'elsewhere') return [];
    const response = await router.ask(location.claim.daemon, 'texts', { conversation });
    return response.kind === 'answered' ? response.body.texts.map((one) => ({ kind: 'live', ...one })) : [];
  };

  /** MEMBERSHIP-1. Returns the request API of the whole cluster. */
  async join(work: MemberWork): Promise<SharedApi> {
    const { daemon, bus, logs, failureTimeoutMs, fingerprint, log } = this.#parts;
    this.#work = work;
    const { workers, runtime, ingress, leaving } = work;
    const { peers } = this.#sharing;
    const monitor = new PeerMonitor({
      daemon,
      peers,
      failureTimeoutMs,
      fingerprint,
      onConfigDifference: (other, differs) => this.#reportDifference(other, differs),
      onGone: (gone, handedOver) => {
        log.info({ daemon: gone, handedOver }, 'a daemon is gone');
        this.#reconciler?.gone(handedOver);
      },
      onBack: () => this.#recheckAll(),
    });
    this.#monitor = monitor;
    const router = new Router(daemon, { logs, workers, monitor, peers, log }, failureTimeoutMs);
    this.#router = router;
    const shared = new SharedPosts({ daemon, workers, router, monitor, logs, runtime, leaving });
    this.#shared = shared;
    const api = new SharedApi(work.api, {
      workers,
      router,
      monitor,
      daemon,
      log,
      logs,
      bus,
      leaving,
    });
    const handlers = this.#peerHandlers(work, { monitor, shared, api });
    await peers.listen(async (verb, body) => {
      this.#freezes.check();
      return answerPeer(verb, body, handlers, log);
    });
    monitor.start();
    await sleep(GREETING_MS);
    if (ingress.isReplay && monitor.others.length > 0) throw replayBesideOthers(monitor.others.length);
    this.#ingress = await this.#sharing.startIngress({
      ...ingress,
      daemon,
      failureTimeoutMs,
      mayTakeOver: (reader) => this.#mayRead(reader),
      onClaim: (from) => log.info({ from }, 'this daemon reads the ingress stream'),
      onFloor: (position) => runtime.progress.settledUpTo(position),
      onIngressStream: (created) => {
        this.#ingressCreated = created;
      },
    });
    this.#reconciler = new Reconciler({ daemon, logs, workers, monitor, router, failureTimeoutMs, log });
    await this.#reconciler.start();
    return api;
  }

  /** The answers to the messages of other daemons (`src/bus/peer-contract.ts`). */
  #peerHandlers(
    { workers, watchers }: MemberWork,
    { monitor, shared, api }: { monitor: PeerMonitor; shared: SharedPosts; api: SharedApi },
  ): PeerHandlers {
    const { daemon: self, bus } = this.#parts;
    return {
      alive: ({ daemon, isNew = false, fingerprint }) => monitor.noteHeartbeat(daemon, isNew, fingerprint),
      left: ({ daemon }) => (daemon === self ? undefined : monitor.noteLeft(daemon)),
      probe: () => ({}),
      post: async (handed) => {
        await this.#ingress?.ready();
        this.#ingressCreated = handed.position.stream;
        return shared.receive(handed);
      },
      holds: async ({ conversations }) => ({ held: await heldOf(workers, conversations) }),
      released: async ({ conversation, claim }) => this.#reconciler?.released(conversation, claim),
      api: ({ conversation, request }) =>
        api.handleFromPeer(conversation, { ...request, body: request.body }),
      texts: ({ conversation }) => ({
        texts: fitting(watchers.textsOf(conversation), bus.maxPayload * SHARE_OF_TEXTS),
      }),
    };
  }

  /** Whether that daemon, which reads the posts, does not run any more: an unknown one is asked. */
  async #mayRead(reader: string): Promise<boolean> {
    const [monitor, router] = [required(this.#monitor), required(this.#router)];
    if (!monitor.isFailed(reader) && !monitor.others.includes(reader)) await router.ask(reader, 'probe', {}); // notes a missing answer
    return monitor.isFailed(reader);
  }

  /** For `Posts`. */
  readonly otherDaemons: OtherDaemons = {
    handOver: (handed) => required(this.#shared).handOver(handed),
    isAtWork: (conversation) => this.#shared?.isAtWork(conversation) ?? false,
    mayRefuse: async () => {
      if (!(await required(this.#ingress).holdsClaim())) throw moved('of this post');
    },
  };

  #reportDifference(daemon: string, differs: readonly string[]): void {
    const { log } = this.#parts;
    if (differs.length > 0) log.warn({ daemon, differs }, CONFIG_DIFFERS);
    else log.info({ daemon }, 'another daemon has the same configuration again');
  }

  /** This daemon has another configuration from now on. */
  reconfigured(fingerprint: ConfigFingerprint): void {
    this.#monitor?.reconfigured(fingerprint);
  }

  /** Takes no more posts; resolves when those in progress are settled. */
  async stopIngress(): Promise<void> {
    await this.#reconciler?.stop();
    await this.#ingress?.stop();
  }

  /** No other daemon works on that conversation, and its last claimant is not alive: it is asked. */
  readonly isOurs = async (conversation: string): Promise<boolean> => {
    const router = required(this.#router);
    const location = await router.locate(conversation);
    if (location.kind === 'here') return true;
    const { kind } = await router.ask(location.claim.daemon, 'probe', {}); // notes a missing answer
    return (
      (kind === 'no-responder' || kind === 'silent') && (await router.locate(conversation)).kind === 'here'
    );
  };

  /** MEMBERSHIP-2: offers a released conversation to a random peer. */
  readonly released = (conversation: string, claim: Claimant | null): void => {
    if (!claim) return;
    const { responsive = [] } = this.#monitor ?? {};
    const next = responsive[Math.floor(Math.random() * responsive.length)];
    const message: PeerRequestOf<'released'> = { conversation, claim };
    if (next) this.#sharing.peers.tell(next, 'released', message);
  };

  leave(): void {
    this.#freezes.stop();
    this.#monitor?.stop();
    this.#sharing.peers.tellAll('left', { daemon: this.daemon } satisfies PeerRequestOf<'left'>);
  }

  async #mayAct(conversation: string, signal: AbortSignal): Promise<boolean> {
    const { daemon, logs, failureTimeoutMs } = this.#parts;
    while (!signal.aborted) {
      const askedAt = performance.now();
      const newest = await logs.newest(conversation).catch(() => 'unknown' as const);
      const isFresh = performance.now() - askedAt < failureTimeoutMs / 2;
      if (newest === 'unknown') await sleep(READ_RETRY_MS, signal);
      else if (newest?.status?.claim?.daemon !== daemon) {
        this.#recheck(conversation);
        return false;
      } else if (isFresh) return true;
    }
    return true; // the caller starts nothing after an abort
  }

  #resumed(frozenMs: number): void {
    this.#monitor?.resumed(frozenMs);
    this.#parts.log.warn({}, 'this daemon was frozen; checking what other daemons have taken over');
    this.#recheckAll();
  }

  /** Compares every conversation of this daemon with its log: peers may have taken it over (FREEZE-WATCH-1). */
  #recheckAll(): void {
    for (const id of this.#work?.workers.held ?? []) this.#recheck(id);
  }

  /** Drops the worker if another daemon has taken over. */
  #recheck(conversation: string): void {
    this.#work?.workers.current(conversation, true).catch((error: unknown) => {
      this.#parts.log.warn(
        { conversation, error: messageOf(error) },
        'the log of a conversation could not be read',
      );
    });
  }

  async #publishGivenUp(conversation: string, triggers: readonly number[]): Promise<void> {
    const { bus, log } = this.#parts;
    const why = refusal(
      'TOO_MANY_ATTEMPTS',
      'each daemon that worked on it ended before it finished',
      'find the cause in the logs of the daemons; post it again when it is fixed',
    );
    try {
      const entries = await required(this.#work).workers.entriesOf(conversation);
      for (const index of triggers) {
        const entry = entries[index];
        if (entry?.type !== 'message' || entry.ingressSequence === undefined) continue;
        const delivery = await required(this.#ingress).at(entry.ingressSequence);
        if (delivery?.conversation === conversation) await bus.publishDead(delivery, why, entry.id);
      }
    } catch (error) {
      log.error({ conversation, error: messageOf(error) }, 'a dead letter could not be stored');
    }
  }
}

function replayBesideOthers(others: number): ParleyError {
  return new ParleyError(
    'REPLAY_REFUSED',
    `--replay beside ${others} other daemons that read the same posts`,
    {
      hint: 'stop the others first; start them again, without --replay, once this one is ready',
    },
  );
}

function required<T>(value: T | null): T {
  if (value === null) throw new Error('this daemon has not joined the others yet');
  return value;
}

/**
 * Detects that this process was frozen.
 *
 * FREEZE-WATCH-1  After a freeze the daemon compares every open conversation with its log: peers may have taken it over.
 */
export class FreezeWatch {
  readonly #freezeMs: number;
  readonly #onResume: (frozenMs: number) => void;
  readonly #timer: NodeJS.Timeout;
  #checkedAt = performance.now();

  /** A gap of `longestGapMs` or more between two checks is a freeze. */
  constructor(longestGapMs: number, onResume: (frozenMs: number) => void) {
    this.#freezeMs = longestGapMs;
    this.#onResume = onResume;
    this.#timer = setInterval(() => this.check(), Math.max(10, longestGapMs / 8));
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Also call it when a message arrives: after a freeze, messages are processed before any timer runs. */
  check(): void {
    const now = performance.now();
    const gap = now - this.#checkedAt;
    this.#checkedAt = now;
    if (gap >= this.#freezeMs) this.#onResume(gap);
  }
}

/** The part of a message's payload for the texts: they need room for their names, too. */
const SHARE_OF_TEXTS = 0.5;

/** None, if they do not fit a message: the log has them soon. */
function fitting(texts: readonly LiveArrival[], mostBytes: number) {
  const size = texts.reduce((sum, { chunk }) => sum + sizeOf(chunk), 0);
  return size > mostBytes ? [] : texts.map(({ agent, chunk }) => ({ agent, chunk }));
}

/** PEER-CONTRACT-1 */
async function answerPeer(
  verb: string,
  body: unknown,
  handlers: PeerHandlers,
  log: Pick<Log, 'warn'>,
): Promise<unknown> {
  try {
    return await handlePeerMessage(verb, body, handlers);
  } catch (error) {
    if (!hasCode(error, 'BAD_REQUEST')) throw error;
    log.warn({ verb, reason: error.message }, 'a message of another daemon is refused as invalid');
    return invalidAnswer(error.message);
  }
}

async function heldOf(workers: Workers, ids: readonly string[]): Promise<string[]> {
  const held = await Promise.all(ids.map((id) => workers.willHold(id)));
  return ids.filter((_, place) => held[place]);
}
