import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import words from './words.json' with { type: 'json' };

/** What clients send, and what the stand-in model (`model.ts`) answers. */

export { words };

export const WEATHER = {
  name: 'get_weather',
  description: 'the weather of a city',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
};
export const forecastOf = ({ city }) => `${city} has 4 degrees.`;

export const FORECAST = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'number' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
};

const answerOf = (bytes) => `I see ${createHash('sha256').update(bytes).digest('hex').slice(0, 8)}.`;
const fileOf = (mediaType, bytes) => ({
  bytes,
  mediaType,
  base64: bytes.toString('base64'),
  url: `data:${mediaType};base64,${bytes.toString('base64')}`,
  answer: answerOf(bytes),
});

export const image = fileOf('image/png', png(8, 8));
export const pdf = fileOf(
  'application/pdf',
  Buffer.from('%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n'),
);

function png(width, height) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const framed = Buffer.alloc(body.length + 8);
    framed.writeUInt32BE(data.length, 0);
    body.copy(framed, 4);
    framed.writeUInt32BE(crc32(body), body.length + 4);
    return framed;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2], 8); // eight bits, RGB
  const rows = Buffer.alloc(height * (1 + width * 3), 0x7f);
  for (let row = 0; row < height; row++) rows[row * (1 + width * 3)] = 0;
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return ~crc >>> 0;
}
