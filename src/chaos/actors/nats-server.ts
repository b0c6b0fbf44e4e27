import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { choosePort } from '../../bus/nats/managed/index.ts';
import { type Child, startChild } from './child.ts';

/** A nats-server of the run's own: a fixed port and store, ended and started as often as the schedule likes. */
export interface ServerActor {
  readonly port: number;
  start(): Promise<void>;
  /** Ends it by this signal; resolves when it is gone. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  freeze(): void;
  thaw(): void;
}

export async function createServerActor(binary: string, directory: string): Promise<ServerActor> {
  const port = await choosePort();
  const configuration = join(directory, 'nats.conf');
  const store = JSON.stringify(join(directory, 'jetstream'));
  await writeFile(configuration, `host: 127.0.0.1\nport: ${port}\njetstream { store_dir: ${store} }\n`);
  let child: Child | null = null;
  return {
    port,
    async start() {
      if (child?.isAlive) return;
      child = startChild({
        command: binary,
        args: ['-c', configuration],
        env: {},
        workingDirectory: directory,
      });
      await child.said(/Server is ready/);
    },
    async end(signal) {
      child?.signal('SIGCONT'); // a frozen one hears nothing
      child?.signal(signal);
      await child?.exited;
    },
    freeze: () => child?.signal('SIGSTOP'),
    thaw: () => child?.signal('SIGCONT'),
  };
}
