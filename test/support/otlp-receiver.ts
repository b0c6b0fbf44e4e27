import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** A collector on loopback that decodes OTLP/HTTP protobuf by hand, independently of the exporter's package. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root span. */
  readonly parentId: string;
  readonly name: string;
  readonly kind: number;
  /** Nanoseconds since the epoch. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly string[];
  readonly isError: boolean;
}

export interface OtlpReceiver {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  /** The headers of each request. */
  readonly requests: IncomingMessage['headers'][];
  /** The status of the next answers, 200 by default. */
  status: number;
  close(): Promise<void>;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: IncomingMessage['headers'][] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    requests.push(request.headers);
    const body = Buffer.concat(chunks);
    const plain = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    const isPath = request.url === '/v1/traces';
    if (isPath && receiver.status === 200) spans.push(...spansIn(plain));
    response.writeHead(isPath ? receiver.status : 404, { 'content-type': 'application/x-protobuf' }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const receiver: OtlpReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    status: 200,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return receiver;
}

/** One span for each id, as a backend shows after repeated exports. */
export function distinct(spans: readonly ReceivedSpan[]): ReceivedSpan[] {
  return [...new Map(spans.map((span) => [span.spanId, span])).values()];
}

type Value = bigint | Buffer;
type Fields = readonly (readonly [number, Value])[];

/** The fields of a protobuf message, in order. */
function fieldsOf(bytes: Buffer): Fields {
  const fields: [number, Value][] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const [field, type] = [Number(tag >> 3n), Number(tag & 7n)];
    if (type === 0) fields.push([field, varint()]);
    else {
      const length = type === 2 ? Number(varint()) : type === 1 ? 8 : 4;
      const value = bytes.subarray(at, at + length);
      fields.push([
        field,
        type === 2 ? value : type === 1 ? value.readBigUInt64LE() : BigInt(value.readUInt32LE()),
      ]);
      at += length;
    }
  }
  return fields;
}

const all = (fields: Fields, number: number) =>
  fields.flatMap(([field, value]) => (field === number ? [value] : []));
const bytesIn = (fields: Fields, number: number) =>
  (all(fields, number)[0] as Buffer | undefined) ?? Buffer.alloc(0);
const intIn = (fields: Fields, number: number) => (all(fields, number)[0] as bigint | undefined) ?? 0n;

function spansIn(body: Buffer): ReceivedSpan[] {
  return all(fieldsOf(body), 1)
    .flatMap((resource) => all(fieldsOf(resource as Buffer), 2))
    .flatMap((scope) => all(fieldsOf(scope as Buffer), 2))
    .map((span) => spanOf(fieldsOf(span as Buffer)));
}

function spanOf(fields: Fields): ReceivedSpan {
  return {
    traceId: bytesIn(fields, 1).toString('hex'),
    spanId: bytesIn(fields, 2).toString('hex'),
    parentId: bytesIn(fields, 4).toString('hex'),
    name: bytesIn(fields, 5).toString(),
    kind: Number(intIn(fields, 6)),
    start: intIn(fields, 7),
    end: intIn(fields, 8),
    attributes: Object.fromEntries(
      all(fields, 9).map((pair) => {
        const attribute = fieldsOf(pair as Buffer);
        return [bytesIn(attribute, 1).toString(), anyValue(bytesIn(attribute, 2))];
      }),
    ),
    links: all(fields, 13).map((link) => bytesIn(fieldsOf(link as Buffer), 2).toString('hex')),
    isError: intIn(fieldsOf(bytesIn(fields, 15)), 3) === 2n,
  };
}

function anyValue(bytes: Buffer): unknown {
  const [[field, value] = [0, 0n]] = fieldsOf(bytes);
  if (field === 1) return (value as Buffer).toString();
  if (field === 2) return value === 1n;
  if (field === 3) return Number(BigInt.asIntN(64, value as bigint));
  if (field === 4) return Buffer.from(new BigUint64Array([value as bigint]).buffer).readDoubleLE();
  return all(fieldsOf(value as Buffer), 1).map((item) => anyValue(item as Buffer));
}
