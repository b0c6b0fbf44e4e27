// Posts a message to a conversation with nothing but the `nats` package, and prints what the agents answer.
//
//   node examples/post/post.mjs demo "Hello! What can you do?"
//
// It shows the whole of what any NATS client has to do: subscribe to the log, publish to the ingress subject, wait
// for the acknowledgement of the stream, read the log until the turns that the message began have ended.

import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, nkeyAuthenticator } from 'nats';

/** How long to wait for the answers. */
const PATIENCE_MS = 120_000;

const [conversation, ...words] = process.argv.slice(2);
if (!/^[\w-]{1,128}$/.test(conversation ?? '') || words.length === 0) {
  console.error(
    'usage: node post.mjs CONVERSATION TEXT…   (CONVERSATION: letters, digits, _ and -; PARLEY_DATA names the data directory; default: data)',
  );
  process.exit(2);
}

// The daemon leaves its address in the data directory, with the credentials of the server that it manages.
const address = await addressOfDaemon(process.env.PARLEY_DATA ?? 'data');
const connection = await connect({
  servers: address.urls ?? address.url, // all of them, where there are several
  user: address.user,
  pass: address.password,
  // The managed server wants a signature: the seed stays in its file and on this machine.
  ...(address.nkey && { authenticator: nkeyAuthenticator(await seedIn(address.nkey)) }),
});
const { prefix } = address;
const publisher = 'example';

// Subscribed before anything is posted: the answer cannot come too early.
const log = connection.subscribe(`${prefix}.log.${conversation}`);
const refusals = connection.subscribe(`${prefix}.dead.${publisher}.${conversation}`);
const timer = setTimeout(() => {
  console.error(
    `no end after ${PATIENCE_MS / 1000} s; the answer will be in the log: parley show ${conversation}`,
  );
  process.exitCode = 1;
  void connection.close();
}, PATIENCE_MS);

try {
  // The same id may be sent again after a lost connection, at any time: it is one entry and one turn.
  const post = { id: randomUUID(), content: words.join(' ') };
  const acknowledgement = await connection
    .jetstream()
    .publish(`${prefix}.in.${publisher}.${conversation}`, JSON.stringify(post));
  console.error(`accepted: ${acknowledgement.stream} has it as number ${acknowledgement.seq}`);
  await Promise.race([printAnswers(post.id), printRefusal(post.id)]);
} finally {
  clearTimeout(timer);
  await connection.close();
}

/** Reads the log until every turn that the post began has ended. */
async function printAnswers(id) {
  let index = null; // of the post's own entry
  let waitingFor = new Set(); // agents that are to answer it
  const turns = new Map(); // the turns that answer it, and whose they are
  for await (const message of log) {
    for (const entry of message.json().entries) {
      if (entry.id === id) {
        index = entry.index;
        waitingFor = new Set(entry.to);
        console.error(`entry ${index}, for ${entry.to?.join(', ') ?? 'no agent'}`);
      }
      if (index === null) continue;
      if (entry.type === 'turn-started' && entry.trigger.includes(index))
        turns.set(entry.turnId, entry.agent);
      // A message that was steered into a turn which ran already is answered by that turn.
      if (entry.type === 'message-delivered' && entry.entries.includes(index))
        turns.set(entry.turnId, entry.agent);
      if (!turns.has(entry.turnId)) continue;
      if (entry.type === 'message' && entry.role === 'assistant' && entry.content) {
        console.log(`${entry.author.name}: ${entry.content}`);
      }
      if (entry.type === 'turn-ended') waitingFor.delete(entry.agent);
    }
    if (index !== null && waitingFor.size === 0) return;
  }
}

/** A post that can never be accepted goes to the dead-letter subject, with the reason. */
async function printRefusal(id) {
  for await (const message of refusals) {
    const { code, reason, hint, original } = message.json();
    if (!original.includes(id)) continue; // another program's, under the same name
    console.error(`refused: ${code}: ${reason}${hint ? ` (${hint})` : ''}`);
    process.exitCode = 1;
    return;
  }
}

async function seedIn(file) {
  return new TextEncoder().encode((await readFile(file, 'utf8')).trim());
}

async function addressOfDaemon(data) {
  const file = join(data, 'connection.json');
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    console.error(
      `no daemon has left its address in ${file} (${error.code ?? error.message}): start one with parley up`,
    );
    process.exit(1);
  }
}
