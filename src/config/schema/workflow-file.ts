import { z } from 'zod';
import { toolName } from './schema.ts';

/**
 * The shape of `workflows/<id>.yaml`.
 *
 * Nothing is required here: a missing key is reported by whoever reads the file, so that the rest of the file is
 * checked all the same (K1).
 */

const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
export const NAME_RULE = 'letters, digits, _ and -, at most 64, that begin with a letter or digit';

/** Ids, nodes and outcomes: they stand in what agents read, and agents repeat them. */
const name = z.string().regex(NAME_PATTERN, `a name: ${NAME_RULE}`);

const node = z.strictObject({
  agent: z.string().min(1).optional(),
  brief: z.string().trim().min(1).optional(),
  tools: z.array(toolName).optional(),
  outcomes: z.record(name, z.string().min(1)).optional(),
});
export type NodeFile = z.infer<typeof node>;

export const workflowFileSchema = z.strictObject({
  id: z.string().optional(),
  start: z.string().min(1).optional(),
  nodes: z.record(name, node).optional(),
});
export type WorkflowFile = z.infer<typeof workflowFileSchema>;

export function isWorkflowName(text: string): boolean {
  return NAME_PATTERN.test(text);
}
