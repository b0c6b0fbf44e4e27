import type { JetStreamManager, NatsConnection, StreamInfo } from 'nats';
import type { BusLog } from '../../log.ts';
import type { Subjects } from '../../subjects.ts';
import type { ConnectionWatch } from '../connection/connection-life.ts';
import type { CapacityGuard } from './capacity-guard.ts';
import type { Purger } from './purger.ts';

/** The durable consumer of daemons that share their logs: one for all of a prefix, and a stream belongs to one prefix. */
export const SHARED_CONSUMER = 'parley';

/** What readers of the ingress stream use. */
export interface IngressSources {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: Subjects;
  readonly log: BusLog;
  readonly purger: Purger;
  readonly room: CapacityGuard;
  readonly watch: ConnectionWatch;
  /** The ingress stream as it is now; made if it is gone. */
  readonly stream: () => Promise<StreamInfo>;
  /** Makes what is gone of the bus's streams. */
  readonly ensureStreams: () => Promise<unknown>;
}
