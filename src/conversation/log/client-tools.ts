import { z } from 'zod';

/**
 * Tools that a post brings: the model of the turn that it starts may call them, and its author answers the calls.
 *
 * CLIENT-TOOLS-1 They belong to that one turn, and to no other turn that it causes.
 * CLIENT-TOOLS-2 The entry of an answer says which of its calls its caller answers (`callerCalls`), so that no later change of the
 *                configuration turns such a call into one that runs here.
 */

const MOST_TOOLS = 128;
/** Characters of all tools of one post, as JSON. */
const MOST_CHARACTERS = 64 * 1_024;

export const clientToolSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, { error: 'expected 1 to 64 letters, digits, _ or -' }),
  description: z.string().optional(),
  /** JSON Schema of the arguments. */
  parameters: z.record(z.string(), z.unknown()).optional(),
  strict: z.boolean().nullish(),
});
export type ClientTool = Readonly<z.infer<typeof clientToolSchema>>;

export const clientToolsSchema = z
  .array(clientToolSchema)
  .max(MOST_TOOLS, { error: `expected at most ${MOST_TOOLS} tools` })
  .refine((tools) => new Set(tools.map(({ name }) => name)).size === tools.length, {
    error: 'two tools have the same name',
  })
  .refine((tools) => JSON.stringify(tools).length <= MOST_CHARACTERS, {
    error: `the tools have more than ${MOST_CHARACTERS} characters as JSON: shorten descriptions and schemas`,
  });

/** `required` and a name: of the first model call of the turn. `none`: the tools are not offered. */
export const toolChoiceSchema = z.union(
  [z.enum(['auto', 'none', 'required']), z.strictObject({ name: z.string() })],
  { error: 'expected auto, none, required, or the name of a tool' },
);
export type ToolChoice = Readonly<z.infer<typeof toolChoiceSchema>> | 'auto' | 'none' | 'required';

/** What a post says of the tools that it brings. */
export interface BroughtTools {
  readonly tools?: readonly ClientTool[] | undefined;
  readonly toolChoice?: ToolChoice | undefined;
  /** The model is to call one tool at a time. */
  readonly parallelToolCalls?: false | undefined;
}

/** The tools of a post that are offered. */
export function offeredBy({ tools = [], toolChoice }: BroughtTools): readonly ClientTool[] {
  return toolChoice === 'none' ? [] : tools;
}
