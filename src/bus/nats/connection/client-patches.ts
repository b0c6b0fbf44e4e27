import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { MsgHdrsImpl } from 'nats';
import { NodeTransport } from 'nats/lib/src/node_transport.js';
import { getEd25519Helper, setEd25519Helper } from 'nkeys.js/lib/helper.js';

/**
 * Three changes of the client library, in effect once this module is loaded.
 *
 * Headers: nats.js 2.29 throws for a header line that it would not write itself, and then reads nothing more from its connection.
 * A publisher may write any bytes there, so such lines are dropped, in every message that is received.
 */
const KNOWN_LINE = /^[\x21-\x39\x3b-\x7e]+:[^\r\n]*$/;

const { decode } = MsgHdrsImpl;

MsgHdrsImpl.decode = (bytes) => {
  try {
    return decode(bytes);
  } catch {
    const [first = '', ...lines] = new TextDecoder().decode(bytes).split('\r\n');
    const kept = lines.filter((line) => KNOWN_LINE.test(line));
    return decode(new TextEncoder().encode([first, ...kept, '', ''].join('\r\n')));
  }
};

/**
 * Dials: the client forgets the socket of an attempt that it gave up, for example because the server is frozen. It stayed open as long
 * as that server: a process did not end, and a daemon collected one with each attempt.
 */
interface Dialling {
  readonly connected: boolean;
  socket?: Socket;
}

const { close } = NodeTransport.prototype;

Object.assign(NodeTransport.prototype, {
  async dial(this: Dialling, { port, hostname }: { readonly port: number; readonly hostname: string }) {
    const socket = createConnection(port, hostname).setNoDelay(true);
    this.socket = socket; // before it is connected
    await once(socket, 'connect');
    return socket;
  },
  async close(this: NodeTransport & Dialling, error?: Error) {
    if (!this.connected) this.socket?.destroy();
    await close.call(this, error);
  },
});

/**
 * Keys: Node computes those of nkeys, and their signatures. The library does it in JavaScript, several times for each connection,
 * which takes a fifth of the time that a command needs to start.
 */
const PRIVATE_KEY = Buffer.from('302e020100300506032b657004220420', 'hex'); // PKCS #8 of Ed25519 (RFC 8410), without the seed
const SEED_BYTES = 32;

const privateKeyOf = (seed: Uint8Array) =>
  createPrivateKey({ key: Buffer.concat([PRIVATE_KEY, seed]), format: 'der', type: 'pkcs8' });

setEd25519Helper({
  ...getEd25519Helper(),
  fromSeed(seed) {
    const publicKey = createPublicKey(privateKeyOf(seed))
      .export({ format: 'der', type: 'spki' })
      .subarray(-32);
    return { publicKey, secretKey: Buffer.concat([seed, publicKey]) };
  },
  sign: (data, secretKey) => sign(null, data, privateKeyOf(secretKey.subarray(0, SEED_BYTES))),
});
