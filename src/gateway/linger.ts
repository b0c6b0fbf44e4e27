import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * What is still sent when the answer is already out: the body of a request that was refused by its head or its size.
 *
 * N1 It is read and thrown away, so that the sender comes to reading the answer. To close at once would reset the
 *    connection, and a reset takes from the sender what he had not read yet.
 * N2 But not for ever: what is more, or takes longer, is cut off.
 */

const MOST_MS = 30_000;
const MOST_BYTES = 268_435_456;

/** Is to be told of a request before anybody else. */
export function lingerAfterAnswer(incoming: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.prependOnceListener('finish', () => {
    if (incoming.complete || incoming.destroyed) return;
    const { socket } = incoming;
    // Where the connection is not kept, the server closes it next: only our side of it, then (N1).
    socket.destroySoon = () => void socket.end();
    const cut = () => void socket.destroy(); // N2
    const timer = setTimeout(cut, MOST_MS).unref();
    let read = 0;
    incoming.removeAllListeners('data'); // whoever stopped in the middle of it would pause it again
    incoming.on('data', (chunk: Buffer) => {
      read += chunk.length;
      if (read > MOST_BYTES) cut();
    });
    incoming.once('close', () => {
      clearTimeout(timer);
      Reflect.deleteProperty(socket, 'destroySoon');
    });
    incoming.resume();
  });
}
