import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { choosePort } from '../../bus/nats/managed/index.ts';
import { type Child, startChild } from './child.ts';

/** A nats-server of the run's own: a fixed port and store, ended and started as often as the schedule likes. */
export interface ServerActor {
  /** As the cluster calls it. */
  readonly name: string;
  readonly port: number;
  start(): Promise<void>;
  /** Ends it by this signal; resolves when it is gone. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  freeze(): void;
  thaw(): void;
}

export async function createServerActor(binary: string, directory: string): Promise<ServerActor> {
  const place = { name: 'server-1', port: await choosePort(), directory };
  return serverAt(binary, place, '');
}

/**
 * Servers of one cluster. It announces no addresses: a client knows the ways that it was given, and no way around the
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
      child?.signal('SIGCONT'); // a frozen one hears nothing
      child?.signal(signal);
      await child?.exited;
    },
    freeze: () => child?.signal('SIGSTOP'),
    thaw: () => child?.signal('SIGCONT'),
  };
}
