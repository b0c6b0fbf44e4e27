import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { connect, nkeys } from 'nats';
import { describe, expect, it, onTestFinished } from 'vitest';
import '../../../src/bus/nats/connection/client-patches.ts';

describe('nkeys that Node computes', () => {
  const seed = Buffer.from('SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y');

  it('a seed has the public key and the signature that nkeys.js computes', () => {
    const pair = nkeys.fromSeed(seed);
    expect(pair.getPublicKey()).toBe('UAB2CB576PHBBPQ5ODORRZ2LYCMWPZGWGCN2KDK7DXOIMZASKUY3RLKK');
    expect(Buffer.from(pair.sign(Buffer.from('nonce'))).toString('base64url')).toBe(
      '-HTq4d6DDHVNb8MsTRAZtSIa0vXA_yuZblwTA7JT5wYzmKBxJ2wpYfjHh7hcptZlidbVw_6ZLyubjm_yDk-OCQ',
    );
  });

  it('the library verifies the signatures of new keys by their public keys', () => {
    for (const pair of [nkeys.createUser(), nkeys.createAccount(), nkeys.createOperator()]) {
      const data = Buffer.from('any nonce');
      const own = nkeys.fromPublic(pair.getPublicKey());
      expect(own.verify(data, pair.sign(data))).toBe(true);
      expect(own.verify(Buffer.from('another nonce'), pair.sign(data))).toBe(false);
    }
  });
});

describe('attempts to connect', () => {
  /** What a nats-server says first, and its answer to each PING. */
  const speak = (socket: Socket) => {
    socket.write('INFO {"server_id":"S","version":"2.10.0","max_payload":1048576,"headers":true}\r\n');
    socket.on('data', (bytes) => bytes.includes('PING') && socket.write('PONG\r\n'));
  };
  const listening = async (onDialled: (socket: Socket) => void) => {
    const server = createServer(onDialled).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  it('one that a silent server does not answer closes its socket: a process that gave up can end', async () => {
    let closed: Promise<unknown> | undefined;
    const servers = await listening((socket) => {
      closed = once(socket, 'close');
    });
    await expect(connect({ servers, timeout: 50, reconnect: false })).rejects.toThrow('TIMEOUT');
    await closed;
  });

  it('one that runs when its connection is closed closes its socket', async () => {
    const dialled: Socket[] = [];
    const servers = await listening((socket) => {
      dialled.push(socket);
      if (dialled.length === 1) speak(socket);
    });
    const connection = await connect({ servers, reconnectTimeWait: 1 });
    dialled[0]?.destroy();
    await expect.poll(() => dialled.length).toBe(2);
    await connection.close();
    await once(dialled[1] as Socket, 'close');
  });
});
