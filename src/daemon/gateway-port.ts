import type { Bus } from '../bus/index.ts';
import type { GatewayPort } from '../gateway/index.ts';
import type { Api } from './api/api.ts';
import type { Watchers } from './api/watchers.ts';
import { conversationIn } from './cluster/shared-api.ts';
import type { Gauges, Metrics } from './metrics.ts';

/** What the HTTP doors lead to: the API that answers the bus, and what is published there. */
export function createGatewayPort(
  api: Pick<Api, 'handle'>,
  watchers: Watchers,
  metrics: Metrics,
  bus: Pick<Bus, 'isConnected'>,
  gauges: () => Promise<Gauges>,
): GatewayPort {
  return {
    async request(request) {
      const conversation = conversationIn(request.body);
      if (conversation !== null) await watchers.ready(conversation);
      return api.handle(request);
    },
    subscribe: (conversation, onArrival) => watchers.watch(conversation, onArrival),
    measure: async () => metrics.measure(await gauges()),
    get isConnected() {
      return bus.isConnected;
    },
  };
}
