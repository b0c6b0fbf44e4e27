import { connect as connectToNats, ErrorCode, type NatsConnection } from 'nats';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import type { Entry } from '../../src/conversation/index.ts';
import { type FakeHandler, type FakeProvider, startFakeProvider } from './fake-provider.ts';
import { claimants, entriesOf } from './log.ts';
import { startNatsServer, type TestNatsServer } from './nats-server.ts';
import { openProject, type Project, providerSettings, type RunningDaemon } from './project.ts';

/** Several daemons that share their logs, each with its own directory, as on separate machines. */
export interface Fleet {
  readonly nats: TestNatsServer;
  readonly provider: FakeProvider;
  /** Connected to the server, so that any daemon may answer. */
  readonly client: ParleyClient;
  /** A program that knows the server and no daemon. */
  readonly program: NatsConnection;
  /**
   * Posts as that program. Resolves with the sequence when the stream has the post, and rejects if it is refused.
   */
  publish(conversation: string, id: string, messageId?: string): Promise<number>;
  readonly daemons: readonly RunningDaemon[];
  readonly projects: readonly Project[];
  /** Starts one more. */
  add(env?: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<RunningDaemon>;
  close(): Promise<void>;
}

/** The failure timeout of these tests. */
export const FAILURE_TIMEOUT_MS = 1_000;

export interface FleetOptions {
  readonly count: number;
  readonly handler?: FakeHandler;
  readonly settings?: object;
  readonly agents?: Readonly<Record<string, string>>;
}

export async function startFleet({
  count,
  handler = () => ({ text: 'noted' }),
  settings = {},
  agents,
}: FleetOptions): Promise<Fleet> {
  const nats = await startNatsServer();
  const provider = await startFakeProvider(handler);
  const projects: Project[] = [];
  const daemons: RunningDaemon[] = [];
  const add = async (env?: Readonly<Record<string, string>>, ...args: readonly string[]) => {
    const project = await openProject({
      nats: nats.url,
      settings: providerSettings(provider.url, {
        sharing: { failureTimeoutMs: FAILURE_TIMEOUT_MS },
        ...settings,
      }),
      ...(agents && { agents }),
      ...(env && { env }),
    });
    projects.push(project);
    const daemon = await project.up('--store', 'jetstream', ...args);
    daemons.push(daemon);
    return daemon;
  };
  // The server also sends requests to a frozen daemon, so an unanswered request is soon repeated.
  const client = await connect({ url: nats.url, requests: { timeoutMs: 3_000, attempts: 15 } });
  const program = await connectToNats({
    servers: nats.url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
  });
  const publish = async (conversation: string, id: string, messageId?: string) => {
    const body = JSON.stringify({ id, content: id });
    const options = messageId === undefined ? {} : { msgID: messageId };
    return (await program.jetstream().publish(`parley.in.alice.${conversation}`, body, options)).seq;
  };
  const close = async () => {
    await program.close();
    await client.close();
    for (const project of projects) await project.close();
    await provider.close();
    await nats.stop();
  };
  try {
    await Promise.all(Array.from({ length: count }, () => add()));
  } catch (error) {
    await close();
    throw error;
  }
  return { nats, provider, client, program, publish, daemons, projects, add, close };
}

/** The owner of a conversation, found by the id in the ready lines. */
export async function ownerOf({ client, daemons }: Fleet, conversation: string): Promise<RunningDaemon> {
  const owner = claimants(await entriesOf(client, conversation)).at(-1);
  const found = daemons.find((daemon) => daemon.ready.daemon === owner);
  if (!found) throw new Error(`none of these daemons is ${owner}`);
  return found;
}

const NO_MESSAGE = 10_037;

/** The log as it is in the stream, read without a daemon. */
export async function streamed({ program }: Fleet, conversation: string): Promise<Entry[]> {
  const manager = await program.jetstreamManager();
  const filter = `parley.log.${conversation}`;
  const entries: Entry[] = [];
  for (let seq = 1; ; seq++) {
    const found = await manager.streams
      .getMessage('PARLEY_LOG', { seq, next_by_subj: filter } as never)
      .catch((error: { code?: string; api_error?: { err_code: number } }) => {
        if (error.api_error?.err_code === NO_MESSAGE) return null; // The last message was read.
        if (error.code === ErrorCode.Timeout) return 'again' as const; // The server is busy.
        throw error;
      });
    if (found === null) return entries;
    if (found === 'again') {
      seq -= 1;
      continue;
    }
    entries.push(...found.json<{ entries: Entry[] }>().entries);
    seq = found.seq;
  }
}
