import { crc32, deflateRawSync, deflateSync } from 'node:zlib';

/** Small files of every kind that uploads meet. */

export const WITH_SCRIPT = '<html><script>alert(1)</script></html>';

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), content]);
  return Buffer.concat([numbers(content.length), body, numbers(crc32(body))]);
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, at) => void bytes.writeUInt32BE(value, 4 * at));
  return bytes;
}

/** A black picture; its pixels are missing if it is large. */
export function pngOf(width: number, height: number): Buffer {
  const header = Buffer.concat([numbers(width, height), Buffer.from([8, 0, 0, 0, 0])]);
  const pixels = width * height < 1_000_000 ? Buffer.alloc((width + 1) * height) : Buffer.alloc(0);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(pixels)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

export const PNG = pngOf(3, 2);

/** An archive with one entry of 50 MB. */
export function bombOf(name: string): Buffer {
  const content = deflateRawSync(Buffer.alloc(50_000_000));
  const head = Buffer.alloc(30);
  head.writeUInt32LE(0x04034b50, 0);
  head.writeUInt16LE(20, 4);
  head.writeUInt16LE(8, 8);
  head.writeUInt32LE(content.length, 18);
  head.writeUInt32LE(50_000_000, 22);
  head.writeUInt16LE(name.length, 26);
  return Buffer.concat([head, Buffer.from(name), content]);
}
