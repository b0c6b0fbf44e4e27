import { connect, readConnectionFile } from '../../src/client/index.ts'; // in your own project: 'parleyd/client'

/**
 * An agent in a process of its own. It reads what it was asked, thinks aloud, and answers.
 *
 *   node --import tsx examples/remote-agent/agent.ts critic [DATA_DIRECTORY or nats://…]     (default: PARLEY_DATA, else data)
 *
 * For a URL, PARLEY_NATS_NKEY names a file with an nkey seed, and PARLEY_NATS_INBOX_PREFIX where this user gets answers.
 */
const [slug = 'critic', where = process.env.PARLEY_DATA || 'data'] = process.argv.slice(2);
const { PARLEY_NATS_NKEY: nkey, PARLEY_NATS_INBOX_PREFIX: inboxPrefix } = process.env;
const address = where.includes('://')
  ? { url: where, ...(nkey && { nkey }), ...(inboxPrefix && { inboxPrefix }) }
  : await readConnectionFile(where);
if (!address) throw new Error(`no daemon has left its address in ${where}: start one with \`parley up\``);

const client = await connect(address);
const agent = await client.agent(slug, async (turn) => {
  turn.write('Let me see. ');
  const asked = turn.messages.at(-1)?.content ?? '';
  const words = asked.split(/\s+/).filter((word) => word !== '').length;
  turn.write(`You used ${words} words; `);
  turn.write(words > 12 ? 'half of them would do.' : 'that is short enough.');
  return undefined; // what was written is the answer; a string would be one too
});
process.stdout.write(`${slug} is there (${agent.instance})\n`);

/** Finishes the turn it has, then leaves. */
process.once('SIGTERM', async () => {
  await agent.stop();
  await client.close();
});
