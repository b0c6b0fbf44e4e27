import { type ClientRequest, request } from 'node:http';

/** Readers of event streams, in a process of their own: what they cost is not the server's. They count what comes. */

export type Told =
  | { readonly kind: 'read'; readonly url: string; readonly readers: number }
  /** Answered when each of them has so many bytes. */
  | { readonly kind: 'bytes'; readonly each: number };

let received: number[] = [];
let wanted = Number.POSITIVE_INFINITY;
const open: ClientRequest[] = [];

function look(): void {
  if (received.some((bytes) => bytes < wanted)) return;
  wanted = Number.POSITIVE_INFINITY;
  process.send?.('there');
}

function read(url: string, readers: number): void {
  for (const one of open.splice(0)) one.destroy();
  received = Array.from({ length: readers }, () => 0);
  let answered = 0;
  for (const place of received.keys()) {
    const asking = request(url, { agent: false }, (response) => {
      response.on('data', (piece: Buffer) => {
        received[place] = (received[place] ?? 0) + piece.length;
        look();
      });
      response.on('error', () => undefined);
      answered += 1;
      if (answered === readers) process.send?.('there');
    });
    asking.on('error', () => undefined);
    open.push(asking.end());
  }
}

process.on('message', (told: Told) => {
  if (told.kind === 'read') return read(told.url, told.readers);
  wanted = told.each;
  look();
});
process.on('disconnect', () => process.exit());
