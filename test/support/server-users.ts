import { setImmediate } from 'node:timers/promises';
import { type NatsConnection, type NatsOptions, openNats } from '../../src/bus/nats/index.ts';

/** bcrypt of `<name>-pw`, at the least cost. */
export const HASHES: Record<string, string> = {
  daemon: '$2b$05$OqYf59qOieyemJBcDoK4o.F8PGb2Rp/.mWzzxZESkJ5KnwFOgBQM.',
  alice: '$2b$05$APeRjghrTeblf/4MurCAR.Um7JPj5dWT6/1URxUjnqFrzUSC9dQzK',
  bob: '$2b$05$6jmTa9CbjpeS06XQ3wp.leXT7qjWniHwRtfeXGYpS2aQd0ECVOtV2',
  ops: '$2b$05$5kFR6J8IDHDG1etb4g992uRGkbIldI2Z2Ip8Hbadq1.lWC6ao2T1O',
  critic: '$2b$05$UMCbhcLlPwOY6qGXL7pgwehDokghj7vfMbu0.rlq2LbZqZ2kLE.ku',
};
/** Connections of one test. */
export interface Connections {
  connect(options: NatsOptions): Promise<NatsConnection>;
  /** What is heard on a subject from now on. */
  listen(options: NatsOptions, subject: string): Promise<string[]>;
  /** Of these subjects those that the server does not let this user publish on, and subscribe. */
  refused(options: NatsOptions, publish: readonly string[], subscribe: readonly string[]): Promise<string[]>;
  close(): Promise<void>;
}

export function createConnections(): Connections {
  const open: NatsConnection[] = [];
  const connect = async (options: NatsOptions) => {
    const made = await openNats(options);
    open.push(made);
    return made;
  };
  return {
    connect,
    async listen(options, subject) {
      const made = await connect(options);
      const heard: string[] = [];
      made.subscribe(subject, {
        callback: (error, message) => void heard.push(error ? String(error) : message.string()),
      });
      await made.flush();
      return heard;
    },
    refused: async (options, publish, subscribe) => refusedOn(await connect(options), publish, subscribe),
    async close() {
      for (const one of open.splice(0)) await one.close();
    },
  };
}

async function refusedOn(
  made: NatsConnection,
  publish: readonly string[],
  subscribe: readonly string[],
): Promise<string[]> {
  const refused = new Set<string>();
  void (async () => {
    for await (const status of made.status()) {
      const context = status.permissionContext;
      if (context) refused.add(`${context.operation} ${context.subject}`);
    }
  })();
  for (const subject of publish) made.publish(subject, '');
  for (const subject of subscribe) made.subscribe(subject, { callback: () => undefined });
  await made.flush();
  await made.flush();
  await setImmediate();
  const isRefused = (operation: string) => (subject: string) => refused.has(`${operation} ${subject}`);
  return [...publish.filter(isRefused('publish')), ...subscribe.filter(isRefused('subscription'))];
}
