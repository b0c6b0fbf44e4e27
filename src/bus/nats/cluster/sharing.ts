import type { Msg, Subscription } from 'nats';
import type { Entry } from '../../../conversation/index.ts';
import type { IngressLag, LiveChunk } from '../../port.ts';
import type { Feed, SharedIngress, SharedIngressOptions, Sharing } from '../../sharing.ts';
import { ANY } from '../../subjects.ts';
import type { IngressSources } from '../ingress/ingress-sources.ts';
import { NatsPeers } from './peers.ts';
import { NatsSharedIngress, sharedLag } from './shared-ingress.ts';

/** Daemons set it on appends; messages without it are not from a daemon. */
const APPEND_HEADER = 'Parley-Append';

/** One daemon among others on the same server and prefix. */
export class NatsSharing implements Sharing {
  readonly peers: NatsPeers;
  readonly #sources: IngressSources;
  #ingress: NatsSharedIngress | null = null;

  constructor(sources: IngressSources, daemon: string) {
    this.#sources = sources;
    this.peers = new NatsPeers(sources.connection, sources.subjects, sources.log, daemon);
  }

  async startIngress(options: SharedIngressOptions): Promise<SharedIngress> {
    const ingress = new NatsSharedIngress(this.#sources, options);
    await ingress.start();
    this.#ingress = ingress;
    return ingress;
  }

  /** Null: it does not read posts. */
  async lag(): Promise<IngressLag | null> {
    return this.#ingress === null ? null : sharedLag(this.#sources);
  }

  follow(conversation: string, feed: Feed): { readonly ready: Promise<void>; stop(): void } {
    const { connection, subjects } = this.#sources;
    const subscribe = (subject: string, pass: (message: Msg) => void): Subscription =>
      connection.subscribe(subject, {
        callback: (error, message) => {
          try {
            if (!error) pass(message);
          } catch {
            // Not published by a daemon.
          }
        },
      });
    const following = [
      subscribe(subjects.log(conversation), (message) => {
        if (message.headers?.has(APPEND_HEADER)) feed.entries(message.json<{ entries: Entry[] }>().entries);
      }),
      subscribe(subjects.live(conversation, ANY), (message) => {
        feed.live(message.subject.slice(message.subject.lastIndexOf('.') + 1), message.json<LiveChunk>());
      }),
    ];
    return {
      ready: connection.flush().catch(() => undefined), // a new connection subscribes again by itself
      stop() {
        if (!connection.isClosed()) for (const one of following) one.unsubscribe();
      },
    };
  }

  lost(reason: string): void {
    this.#ingress?.interrupt(reason);
    this.peers.lost();
  }

  async stop(): Promise<void> {
    await this.#ingress?.stop();
  }
}
