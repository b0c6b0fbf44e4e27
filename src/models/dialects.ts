import type { Dialect, DialectName } from '../agents/dialect-port.ts';
import { anthropic } from './anthropic/encode.ts';
import { chat } from './chat/encode.ts';
import { responses } from './responses/encode.ts';

/** The encoders of all dialects. Pure: `explain` uses them without a network. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = { chat, anthropic, responses };
