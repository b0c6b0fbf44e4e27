import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { choosePort } from '../../../src/bus/nats/managed/index.ts';
import { type Child, startChild } from './child.ts';

/** A nats-server of the run with a fixed port and store, restarted as often as the schedule requires. */
export interface ServerActor {
  /** Its name in the cluster. */
  readonly name: string;
  readonly port: number;
  start(): Promise<void>;
  /** Ends it with this signal. Resolves when it has ended. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  freeze(): void;
  thaw(): void;
}

export async function createServerActor(binary: string, directory: string): Promise<ServerActor> {
  const place = { name: 'server-1', port: await choosePort(), directory };
  return serverAt(binary, place, '');
}

/**
 * Servers of one cluster. They announce no addresses: a client knows only the given proxies, and cannot bypass the
 * faults of the network.
 */
export async function createClusterActors(
  binary: string,
  directory: string,
  size: number,
): Promise<ServerActor[]> {
  const places: (Place & { readonly route: number })[] = [];
  for (let number = 1; number <= size; number++) {
    const name = `server-${number}`;
    const own = join(directory, name);
    await mkdir(own, { recursive: true });
    places.push({ name, port: await choosePort(), route: await choosePort(), directory: own });
  }
  const routes = places.map(({ route }) => `nats://127.0.0.1:${route}`).join(', ');
  return Promise.all(
    places.map((place) =>
      serverAt(
        binary,
        place,
        `cluster { name: parley, host: 127.0.0.1, port: ${place.route}, no_advertise: true, routes: [${routes}] }\n`,
      ),
    ),
  );
}

interface Place {
  readonly name: string;
  readonly port: number;
  readonly directory: string;
}

async function serverAt(
  binary: string,
  { name, port, directory }: Place,
  cluster: string,
): Promise<ServerActor> {
  const configuration = join(directory, 'nats.conf');
  const store = JSON.stringify(join(directory, 'jetstream'));
  await writeFile(
    configuration,
    `server_name: ${name}\nhost: 127.0.0.1\nport: ${port}\njetstream { store_dir: ${store} }\n${cluster}`,
  );
  let child: Child | null = null;
  return {
    name,
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
      child?.signal('SIGCONT'); // a frozen one gets no SIGTERM
      child?.signal(signal);
      await child?.exited;
    },
    freeze: () => child?.signal('SIGSTOP'),
    thaw: () => child?.signal('SIGCONT'),
  };
}
