import { Hub, type Wanted } from './hub.ts';

/** The SharedWorker of all tabs: one hub, and so one stream, for each token. */

/** Null: the tab is closed. */
export type ToWorker = {
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly wanted: Wanted | null;
};

const hubs = new Map<string, Hub>();

addEventListener('connect', (event) => {
  const [port] = (event as MessageEvent).ports;
  if (!port) return;
  const client = (batch: unknown) => port.postMessage(batch);
  let joined: Hub | undefined;
  port.onmessage = ({ data: { address, headers, wanted } }: MessageEvent<ToWorker>) => {
    const key = JSON.stringify([address, headers]);
    const hub = hubs.get(key) ?? new Hub({ address, headers });
    hubs.set(key, hub);
    if (joined !== hub) joined?.leave(client);
    joined = hub;
    if (wanted) hub.want(client, wanted);
    else hub.leave(client);
    for (const [name, { isEmpty }] of hubs) if (isEmpty) hubs.delete(name);
  };
});
