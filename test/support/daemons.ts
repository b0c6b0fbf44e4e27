import { connect as connectToNats, ErrorCode, type NatsConnection } from 'nats';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import { checkLaws, type Entry } from '../../src/conversation/index.ts';
import { entriesOf, openSite, providerSettings, type RunningDaemon, type Site } from './daemon.ts';
import { type FakeHandler, type FakeProvider, startFakeProvider } from './fake-provider.ts';
import { startNatsServer, type TestNatsServer } from './nats-server.ts';

/** Several daemons that share their logs, each with a directory of its own as on a machine of its own. */
export interface Crowd {
  readonly nats: TestNatsServer;
  readonly provider: FakeProvider;
  /** Straight to the server; whichever daemon answers. */
  readonly client: ParleyClient;
  /** A program that knows the server and none of the daemons. */
  readonly program: NatsConnection;
  /** Posts as that program does; resolves with the sequence when the stream has it, and rejects when it does not take it. */
  publish(conversation: string, id: string, messageId?: string): Promise<number>;
  readonly daemons: readonly RunningDaemon[];
  readonly sites: readonly Site[];
  /** One more. */
  add(env?: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<RunningDaemon>;
  close(): Promise<void>;
}

/** How long a daemon may be silent in these tests. */
export const SILENCE_MS = 1_000;

export interface CrowdOptions {
  readonly count: number;
  readonly handler?: FakeHandler;
  readonly settings?: object;
  readonly agents?: Readonly<Record<string, string>>;
}

export async function startCrowd({
  count,
  handler = () => ({ text: 'noted' }),
  settings = {},
  agents,
}: CrowdOptions): Promise<Crowd> {
  const nats = await startNatsServer();
  const provider = await startFakeProvider(handler);
  const sites: Site[] = [];
  const daemons: RunningDaemon[] = [];
  const add = async (env?: Readonly<Record<string, string>>, ...args: readonly string[]) => {
    const site = await openSite({
      nats: nats.url,
      settings: providerSettings(provider.url, { sharing: { silenceMs: SILENCE_MS }, ...settings }),
      ...(agents && { agents }),
      ...(env && { env }),
    });
    sites.push(site);
    const daemon = await site.up('--store', 'jetstream', ...args);
    daemons.push(daemon);
    return daemon;
  };
  // The server hands requests to a frozen daemon too, one in two of two: what is not answered is soon asked again.
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
    for (const site of sites) await site.close();
    await provider.close();
    await nats.stop();
  };
  try {
    await Promise.all(Array.from({ length: count }, () => add()));
  } catch (error) {
    await close();
    throw error;
  }
  return { nats, provider, client, program, publish, daemons, sites, add, close };
}

/** The one that works on a conversation: its ready line says which id it has. */
export async function ownerOf({ client, daemons }: Crowd, conversation: string): Promise<RunningDaemon> {
  const owner = claimants(await entriesOf(client, conversation)).at(-1);
  const found = daemons.find((daemon) => daemon.ready.daemon === owner);
  if (!found) throw new Error(`none of these daemons is ${owner}`);
  return found;
}

/** Who claimed it, in order. */
export function claimants(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => (entry.type === 'claim' ? [entry.daemon] : []));
}

const NO_MESSAGE = 10_037;

/** The log as the stream has it, whatever stands there: no daemon reads it first. */
export async function streamed({ program }: Crowd, conversation: string): Promise<Entry[]> {
  const manager = await program.jetstreamManager();
  const filter = `parley.log.${conversation}`;
  const entries: Entry[] = [];
  for (let seq = 1; ; seq++) {
    const found = await manager.streams
      .getMessage('PARLEY_LOG', { seq, next_by_subj: filter } as never)
      .catch((error: { code?: string; api_error?: { err_code: number } }) => {
        if (error.api_error?.err_code === NO_MESSAGE) return null; // the last one was read
        if (error.code === ErrorCode.Timeout) return 'again' as const; // a busy server
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

/** What is wrong with a log, whoever wrote it. */
export function faultsOf(entries: readonly Entry[]): string[] {
  return checkLaws(entries);
}

/** The ids of people's messages, in order. */
export function postedIds(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => (entry.type === 'message' && entry.role === 'user' ? [entry.id] : []));
}

/** What people and agents said, in order. */
export function said(entries: readonly Entry[]): (string | null)[] {
  return entries.flatMap((entry) =>
    entry.type === 'message' && entry.role !== 'tool' ? [entry.content] : [],
  );
}
