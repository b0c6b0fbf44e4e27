import { z } from 'zod';
import { PERMIT, PERMITTED } from '../../conversation/index.ts';
import { completed } from '../toolbox.ts';
import { defineTool } from './tool.ts';

/**
 * Permissions that a coding agent asks for (`src/acp/agents/permission.ts`): nothing runs here. The policy decides about the call, then a
 * person; the result says that the agent may go on, once.
 */

const common = {
  title: z.string().describe('what the agent wants to do, in its words'),
  input: z.unknown().optional().describe('the arguments of the call, as the agent has them'),
  shown: z.string().optional().describe('what would change'),
};
const about = 'Ask whether a coding agent may go on with a call of its own, which it then makes by itself: ';
const rules = { risk: 'risky', timeoutMs: 1_000, run: async () => completed(PERMITTED) } as const;

export const permitTools = [
  defineTool({
    name: PERMIT.edit,
    ...rules,
    description: `${about}it wants to change a file.`,
    schema: z.strictObject({ path: z.string(), kind: z.enum(['delete', 'move']).optional(), ...common }),
  }),
  defineTool({
    name: PERMIT.execute,
    ...rules,
    subject: { kind: 'command', argument: 'command' },
    description: `${about}it wants to run a command.`,
    schema: z.strictObject({ command: z.string(), ...common }),
  }),
  defineTool({
    name: PERMIT.other,
    ...rules,
    description: `${about}it wants to do anything else.`,
    schema: z.strictObject({ kind: z.string(), ...common }),
  }),
] as const;
