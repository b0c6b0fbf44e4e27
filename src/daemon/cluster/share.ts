import {
  type Bus,
  handlePeerMessage,
  invalidAnswer,
  type Owner,
  type PeerHandlers,
  type PeerRequestOf,
  type SharedIngress,
  type StreamPosition,
} from '../../bus/index.ts';
import { messageOf, ParleyError, refusal, sleep } from '../../kernel/index.ts';
import type { SharedLogs } from '../../persistence/index.ts';
import type { Api } from '../api/api.ts';
import type { Follow } from '../api/watchers.ts';
import type { Ownership } from '../conversations/ownership.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Posts } from '../ingress/posts.ts';
import type { Log } from '../runtime.ts';
import type { ConfigFingerprint } from './config-fingerprint.ts';
import { leasedOwnership } from './lease.ts';
import { PeerMonitor } from './peer-monitor.ts';
import { Reconciler } from './reconciler.ts';
import { Router } from './router.ts';
import { type Claimant, FreezeWatch } from './self.ts';
import { SharedApi } from './shared-api.ts';
import { SharedPosts } from './shared-posts.ts';
import { Suspects } from './suspects.ts';

/**
 * This daemon among others on the same server and prefix, whose logs are shared. Its parts, put together; the decision
 * is told in docs/decisions/0011-shared-work.md.
 *
 * SHARE-1 It can be asked before it takes anything, and takes posts before it looks for what others left behind.
 * SHARE-2 Leaving: it takes no more, lets what runs end, hands over each conversation as soon as that is at rest, and says
 *    that it has left when it has nothing any more.
 */

/** Between two looks at a log that could not be read. */
const LOOK_AGAIN_MS = 250;
const UNLIKE =
  'another daemon was started with another configuration: how a conversation goes depends on which of them works on it';
/** For the others to say that they are there. */
const GREETING_MS = 200;

export interface ShareParts {
  readonly daemon: string;
  readonly bus: Bus;
  readonly logs: SharedLogs;
  readonly silenceMs: number;
  readonly likeness: ConfigFingerprint;
  readonly log: Log;
}

export interface Work {
  readonly workers: Workers;
  readonly posts: Posts;
  readonly api: Api;
  readonly maxInFlight: number;
  readonly after: StreamPosition | null;
  readonly owner: Owner;
  readonly isReplay: boolean;
  readonly onFloor: (position: StreamPosition) => void;
  readonly onSkip: (isElsewhere: (position: StreamPosition) => boolean) => void;
  /** Aborted when this daemon leaves. */
  readonly leaving: AbortSignal;
}

export class Share {
  readonly ownership: Ownership;
  readonly daemon: string;
  readonly #parts: ShareParts;
  readonly #freezes: FreezeWatch;
  #work: Work | null = null;
  #members: PeerMonitor | null = null;
  #router: Router | null = null;
  #reconciler: Reconciler | null = null;
  #ingress: SharedIngress | null = null;

  constructor(parts: ShareParts) {
    this.#parts = parts;
    this.daemon = parts.daemon;
    this.#freezes = new FreezeWatch(parts.silenceMs / 2, (frozenMs) => this.#thawed(frozenMs));
    this.ownership = leasedOwnership({
      daemon: parts.daemon,
      ingressLife: () => this.#ingress?.life,
      mayTakeOver: (conversation, from) => this.#router?.mayTakeOver(conversation, from) ?? false,
      mayAct: (conversation, signal) => this.#mayAct(conversation, signal),
      gaveUp: (conversation, triggers) => void this.#gaveUp(conversation, triggers),
    });
  }

  /** What any of the daemons publishes of a conversation. */
  readonly follow: Follow = (conversation, tell) =>
    this.#parts.bus.share(this.#parts.daemon).follow(conversation, {
      entries: (entries) => tell({ kind: 'entries', entries }),
      live: (agent, chunk) => tell({ kind: 'live', agent, chunk }),
    });

  /** J1. Answers what the request API asks from now on. */
  async join(work: Work): Promise<SharedApi> {
    const { daemon, bus, logs, silenceMs, likeness, log } = this.#parts;
    this.#work = work;
    const { workers, posts, leaving } = work;
    const { peers, startIngress } = sharingOf(bus, daemon);
    const members = new PeerMonitor({
      daemon,
      peers,
      silenceMs,
      likeness,
      onUnlike: (other, differs) => log.warn({ daemon: other, differs }, UNLIKE),
      onGone: (gone, handedOver) => {
        log.info({ daemon: gone, handedOver }, 'a daemon is not there any more');
        this.#reconciler?.gone(handedOver);
      },
      onBack: () => this.#lookAtAll(),
    });
    this.#members = members;
    const router = new Router(daemon, { logs, workers, members, peers, log }, silenceMs);
    this.#router = router;
    const ingress = () => required(this.#ingress);
    const suspects = new Suspects(logs);
    const shared = new SharedPosts({ ingress, posts, suspects, workers, router, silenceMs, log, leaving });
    const api = new SharedApi(work.api, {
      workers,
      router,
      members,
      logs,
      log,
      lastPost: (id) => bus.lastPost(id),
    });
    posts.joinOthers({ daemon, tell: (origin, told) => peers.tell(origin, 'settled', told) });
    const handlers = this.#handlers(shared, api);
    await peers.listen((verb, body) => this.#heard(verb, body, handlers));
    members.start();
    await sleep(GREETING_MS);
    if (work.isReplay && members.others.length > 0) throw replayBesideOthers(members.others.length);
    this.#ingress = await startIngress({
      silenceMs,
      after: work.after,
      owner: work.owner,
      isReplay: work.isReplay,
      maxInFlight: work.maxInFlight,
      onToken: async (token) => shared.take(token),
      onFloor(position) {
        shared.settledUpTo(position);
        work.onFloor(position);
      },
      onBegin: () => workers.cutDeletions(),
      onSkip: work.onSkip,
    });
    this.#reconciler = new Reconciler({ daemon, logs, workers, members, router, silenceMs, log });
    await this.#reconciler.start();
    return api;
  }

  /** Takes no more posts; resolves when those under way are done with. */
  async stopIngress(): Promise<void> {
    await this.#reconciler?.stop();
    await this.#ingress?.stop();
  }

  /** No other daemon works on that conversation, nor did one that is there work on it last: it is asked. */
  readonly isOurs = async (conversation: string): Promise<boolean> => {
    const router = required(this.#router);
    const place = await router.place(conversation);
    if (place.kind === 'here') return true;
    const { kind } = await router.ask(place.claim.daemon, 'there', {}); // remembers that it is gone
    return (kind === 'nobody' || kind === 'silent') && (await router.place(conversation)).kind === 'here';
  };

  /** SHARE-2: somebody else may have it now. */
  readonly released = (conversation: string, claim: Claimant | null): void => {
    if (!claim) return;
    const { awake = [] } = this.#members ?? {};
    const next = awake[Math.floor(Math.random() * awake.length)];
    const message: PeerRequestOf<'released'> = { conversation, claim };
    if (next) this.#parts.bus.share(this.#parts.daemon).peers.tell(next, 'released', message);
  };

  /** SHARE-2 */
  leave(): void {
    const { bus, daemon } = this.#parts;
    this.#freezes.stop();
    this.#members?.stop();
    bus.share(daemon).peers.tellAll('left', { daemon } satisfies PeerRequestOf<'left'>);
  }

  /** PEER-CONTRACT-1 */
  async #heard(verb: string, body: unknown, handlers: PeerHandlers): Promise<unknown> {
    this.#freezes.look();
    try {
      return await handlePeerMessage(verb, body, handlers);
    } catch (error) {
      if (!(error instanceof ParleyError && error.code === 'BAD_REQUEST')) throw error;
      this.#parts.log.warn(
        { verb, reason: error.message },
        'a message of another daemon is refused as invalid',
      );
      return invalidAnswer(error.message);
    }
  }

  #handlers(shared: SharedPosts, api: SharedApi): PeerHandlers {
    const { workers, posts } = required(this.#work);
    const self = this.#parts.daemon;
    return {
      alive: ({ daemon, isNew = false, likeness }) => this.#members?.heard(daemon, isNew, likeness),
      left: ({ daemon }) => (daemon === self ? undefined : this.#members?.left(daemon)),
      there: () => ({}),
      async adopt(token) {
        const taken = await workers.willHold(token.conversation);
        if (taken) void shared.take(token);
        return { taken };
      },
      holds: async ({ conversations }) => ({ held: await heldOf(workers, conversations) }),
      released: async ({ conversation, claim }) => this.#reconciler?.released(conversation, claim),
      settled: (told) => posts.told(told),
      api: ({ conversation, request }) => api.asked(conversation, { ...request, body: request.body }),
      approval: ({ approvalId }) => api.askedFor(approvalId),
    };
  }

  async #mayAct(conversation: string, signal: AbortSignal): Promise<boolean> {
    const { daemon, logs, silenceMs } = this.#parts;
    while (!signal.aborted) {
      const askedAt = performance.now();
      const newest = await logs.newest(conversation).catch(() => 'unknown' as const);
      const isFresh = performance.now() - askedAt < silenceMs / 2; // else others may have taken over since
      if (newest === 'unknown') await sleep(LOOK_AGAIN_MS, signal);
      else if (newest?.status?.claim?.daemon !== daemon) {
        this.#lookAt(conversation);
        return false;
      } else if (isFresh) return true;
    }
    return true; // nothing is begun behind an aborted signal
  }

  #thawed(frozenMs: number): void {
    this.#members?.thawed(frozenMs);
    this.#parts.log.warn({}, 'this daemon did not run for a while; looking at what others have taken over');
    this.#lookAtAll();
  }

  /** Others may have taken over what is open here: it is looked at before it is gone on with. */
  #lookAtAll(): void {
    for (const id of this.#work?.workers.held ?? []) this.#lookAt(id);
  }

  /** What another daemon has taken over is let go. */
  #lookAt(conversation: string): void {
    this.#work?.workers.current(conversation, true).catch((error: unknown) => {
      this.#parts.log.warn(
        { conversation, error: messageOf(error) },
        'a conversation could not be looked at',
      );
    });
  }

  async #gaveUp(conversation: string, triggers: readonly number[]): Promise<void> {
    const { bus, log } = this.#parts;
    const why = refusal(
      'TOO_MANY_ATTEMPTS',
      'each daemon that worked on it ended before anything came of it',
      'the logs of the daemons say how they ended; post it again when that is mended',
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
      log.error({ conversation, error: messageOf(error) }, 'a dead letter could not be kept');
    }
  }
}

async function heldOf(workers: Workers, ids: readonly string[]): Promise<string[]> {
  const held = await Promise.all(ids.map((id) => workers.willHold(id)));
  return ids.filter((_, place) => held[place]);
}

function sharingOf(bus: Bus, daemon: string) {
  const sharing = bus.share(daemon);
  return { peers: sharing.peers, startIngress: sharing.startIngress.bind(sharing) };
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
