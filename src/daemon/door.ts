import type { Door } from '../gateway/index.ts';
import type { Api } from './api.ts';
import type { Gauges, Metrics } from './metrics.ts';
import type { Watchers } from './watchers.ts';

/** What the HTTP doors lead to: the API that answers the bus, and what is published there. */
export function createDoor(api: Api, watchers: Watchers, metrics: Metrics, gauges: () => Gauges): Door {
  return {
    request: (request) => api.handle(request),
    subscribe: (conversation, onArrival) => watchers.watch(conversation, onArrival),
    measure: async () => metrics.measure(gauges()),
  };
}
