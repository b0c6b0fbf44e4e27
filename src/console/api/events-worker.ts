import { joinHubs, type Told } from './hub.ts';

/** The SharedWorker of all tabs: one hub, and so one stream, for each token. */
addEventListener('connect', (event) => {
  const [port] = (event as MessageEvent).ports;
  if (!port) return;
  const tell = joinHubs((batch) => port.postMessage(batch));
  port.onmessage = ({ data }: MessageEvent<Told>) => tell(data);
});
