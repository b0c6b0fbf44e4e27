import { z } from 'zod';

/** The parts of a message, as entries have them (`parts.ts`). Pages that only read parts do not load the schema. */

export const SHA256 = /^[0-9a-f]{64}$/;

export const textPartSchema = z.object({ type: z.literal('text'), text: z.string() });

export const filePartSchema = z.object({
  type: z.literal('file'),
  sha256: z.string().regex(SHA256),
  name: z.string().optional(),
  mediaType: z.string(),
  /** Bytes. */
  size: z.int().nonnegative(),
  /** Pixels of a picture. */
  width: z.int().positive().optional(),
  height: z.int().positive().optional(),
});
export type FilePart = Readonly<z.infer<typeof filePartSchema>>;

export const partSchema = z.discriminatedUnion('type', [textPartSchema, filePartSchema]);
export type Part = Readonly<z.infer<typeof partSchema>>;
