// The agent `counter`: a program that answers turns. Start it beside the daemon: node programs/counter.mjs
import { connect, readConnectionFile } from 'parleyd/client';
import { count } from './count.mjs';

const data = process.env.PARLEY_DATA ?? 'data'; // the data directory of the daemon
const address = await readConnectionFile(data);
if (!address) throw new Error(`no daemon runs on ${data}: start it with \`npm start\``);

const client = await connect(address);
const agent = await client.agent('counter', async (turn) => count(turn.messages.at(-1)?.content ?? ''));
console.log('counter is ready');

for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, async () => {
    await agent.stop(); // finishes the turn in progress
    await client.close();
  });
