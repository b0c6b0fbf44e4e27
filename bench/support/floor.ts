import { fdatasync, openSync, write } from 'node:fs';
import { connect, DeliverPolicy, type NatsConnection } from 'nats';

/**
 * The least that a program between NATS and a model must do for a turn, in a process of its own: consume a post, append
 * it and wait for fdatasync (one for all that wait), fetch a streamed answer, append that, publish it.
 * Arguments: the server, the endpoint, the log file; `live` publishes each token too.
 */

const [url = '', endpoint = '', file = '', mode = ''] = process.argv.slice(2);

const descriptor = openSync(file, 'a');
let batch: string[] = [];
let committed: Promise<void> | null = null;

function sync(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const bytes = Buffer.from(text);
    write(descriptor, bytes, 0, bytes.length, null, (writeError) => {
      if (writeError) return reject(writeError);
      fdatasync(descriptor, (syncError) => (syncError ? reject(syncError) : resolve()));
    });
  });
}

let writing: Promise<void> = Promise.resolve();

/** Group commit: what is appended while a write runs is written together. */
function append(entry: object): Promise<void> {
  batch.push(`${JSON.stringify(entry)}\n`);
  committed ??= writing.then(() => {
    const text = batch.join('');
    batch = [];
    committed = null;
    writing = sync(text);
    return writing;
  });
  return committed;
}

async function ask(content: string, onToken: (token: string) => void): Promise<string> {
  const response = await fetch(`${endpoint}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
    body: JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content }] }),
  });
  const decoder = new TextDecoder();
  let [rest, text] = ['', ''];
  for await (const bytes of response.body!) {
    const events = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      const data = event.slice('data: '.length);
      if (data === '[DONE]') continue;
      const token: string = JSON.parse(data).choices[0]?.delta.content ?? '';
      if (token !== '') onToken(token);
      text += token;
    }
  }
  return text;
}

async function turn(nats: NatsConnection, conversation: string, content: string, seq: number): Promise<void> {
  await append({ type: 'message', conversation, content, seq });
  const live = `floor.live.${conversation}`;
  const text = await ask(content, mode === 'live' ? (token) => nats.publish(live, token) : () => undefined);
  const end = { type: 'turn-ended', conversation, text, seq };
  await append(end);
  nats.publish(`floor.log.${conversation}`, JSON.stringify({ entries: [end] }));
}

const nats = await connect({ servers: url });
const manager = await nats.jetstreamManager();
await manager.streams.add({ name: 'FLOOR', subjects: ['floor.in.>'] });
const consumer = await nats.jetstream().consumers.get('FLOOR', { deliver_policy: DeliverPolicy.New });
const posts = await consumer.consume({
  max_messages: 1_000,
  callback: (message) => {
    void turn(nats, message.subject.split('.')[3]!, message.string(), message.seq);
  },
});
process.on('disconnect', () => void posts.close().finally(() => process.exit()));
process.send?.('ready');
