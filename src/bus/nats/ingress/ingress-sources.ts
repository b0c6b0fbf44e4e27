import type { JetStreamManager, NatsConnection, StreamInfo } from 'nats';
import type { BusLog } from '../../port.ts';
import type { Subjects } from '../../subjects.ts';
import type { ConnectionWatch } from '../connection/connection-life.ts';
import type { Capacity } from './capacity.ts';

/** The dependencies of the readers of the ingress stream. */
export interface IngressSources {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: Subjects;
  readonly log: BusLog;
  readonly capacity: Capacity;
  readonly watch: ConnectionWatch;
  /** The current ingress stream; created if it is missing. */
  readonly stream: () => Promise<StreamInfo>;
  /** Creates the bus's streams that are missing. */
  readonly ensureStreams: () => Promise<unknown>;
}
