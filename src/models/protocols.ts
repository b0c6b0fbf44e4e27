import type { DialectName } from '../agents/dialect-port.ts';
import { MessagesDecoder } from './anthropic/decode.ts';
import { bindsReasoning } from './anthropic/encode.ts';
import { ChatDecoder } from './chat/decode.ts';
import type { Decoder } from './reader.ts';
import { ResponsesDecoder } from './responses/decode.ts';

/** How a dialect is reached by HTTP, and what reads its answers. */
export interface Protocol {
  /** After the base URL. */
  readonly path: string;
  /** The header that contains the key; absent: `authorization`, as a bearer. */
  readonly keyHeader?: string;
  /** Sent with every request to this model. */
  headers?(model: string): Readonly<Record<string, string>>;
  decoder(): Decoder;
}

export const PROTOCOLS: Readonly<Record<DialectName, Protocol>> = {
  chat: { path: '/chat/completions', decoder: () => new ChatDecoder() },
  anthropic: {
    path: '/messages',
    keyHeader: 'x-api-key',
    // Interleaved thinking has an effect only with a thinking budget and tools. The other one: MESSAGES-6.
    headers: (model) => ({
      'anthropic-version': '2023-06-01',
      'anthropic-beta': `interleaved-thinking-2025-05-14${bindsReasoning(model) ? ',thinking-binding-controls-2026-08-01' : ''}`,
    }),
    decoder: () => new MessagesDecoder(),
  },
  responses: { path: '/responses', decoder: () => new ResponsesDecoder() },
};
