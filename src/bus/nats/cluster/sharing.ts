import type { Msg, Subscription } from 'nats';
import type { Entry } from '../../../conversation/index.ts';
import type {
  Feed,
  IngressLag,
  LiveChunk,
  SharedIngress,
  SharedIngressOptions,
  Sharing,
} from '../../port.ts';
import { ANY } from '../../subjects.ts';
import type { IngressSources } from '../ingress/ingress-sources.ts';
import { NatsPeers } from './peers.ts';
import { SharedReader } from './shared-reader.ts';

/** Daemons set it on appends; messages without it are not from a daemon. */
const APPEND_HEADER = 'Parley-Append';

/** One daemon among others on the same server and prefix. */
export class NatsSharing implements Sharing {
  readonly peers: NatsPeers;
  readonly #sources: () => IngressSources;
  #ingress: SharedReader | null = null;

  /** `sources`: new ones for each reader. */
  constructor(sources: () => IngressSources, daemon: string) {
    this.#sources = sources;
    const { connection, subjects, log } = sources();
    this.peers = new NatsPeers(connection, subjects, log, daemon);
  }

  async startIngress(options: SharedIngressOptions): Promise<SharedIngress> {
    const ingress = new SharedReader(this.#sources, options);
    this.#ingress = ingress;
    await ingress.start();
    return ingress;
  }

  /** Null: it is not known. */
  async lag(): Promise<IngressLag | null> {
    return this.#ingress?.lag() ?? null;
  }

  follow(conversation: string, feed: Feed): { readonly ready: Promise<void>; stop(): void } {
    const { connection, subjects } = this.#sources();
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
