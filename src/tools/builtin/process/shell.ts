import { z } from 'zod';
import type { ToolOutcome } from '../../../agents/tool-port.ts';
import { wellFormed } from '../../../kernel/index.ts';
import { completed, failed } from '../../guarded.ts';
import { openSandbox } from '../files/sandbox.ts';
import { defineTool, type ToolContext } from '../tool.ts';
import { type GroupEnd, runInGroup, SHELL_OUTPUT_BYTES } from './process-group.ts';

export const SHELL_TIMEOUT_MS = 120_000;
/** Characters of output in the failure of a command that timed out. */
const SHELL_LAST_WORDS = 8_000;

const schema = z.strictObject({
  command: z
    .string()
    .min(1)
    .max(100_000)
    .refine((command) => !command.includes('\0'), 'a command holds no null byte')
    .describe('for /bin/sh -c'),
});

export const shellTool = defineTool({
  name: 'shell',
  description:
    "Run a command with /bin/sh in the project's folder. Gives its exit code, then what it wrote (both outputs, in order; of much output the beginning and the end). It gets no input and at most 120 seconds, and what it leaves running in the background is ended with it. Prefer the fs_ tools for reading and changing files.",
  risk: 'risky',
  subject: { kind: 'command', argument: 'command' },
  schema,
  run: async ({ command }, context) => {
    const { root } = openSandbox(context.project);
    const { shellTimeoutMs: timeoutMs, signal, enclose } = context;
    const environment = { PATH: USUAL_PATH, ...context.environment, ...ALWAYS };
    const given = { command, directory: root, environment, timeoutMs, enclose };
    return outcomeOf(await runInGroup(given, signal), context);
  },
});

/** No colours, no pager, no interactive prompt. */
const ALWAYS = { TERM: 'dumb', NO_COLOR: '1', PAGER: 'cat', GIT_PAGER: 'cat', GIT_TERMINAL_PROMPT: '0' };
const USUAL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

function outcomeOf(end: GroupEnd, context: ToolContext): ToolOutcome {
  if (end.endedBy === 'abort') return { kind: 'aborted' };
  if (end.endedBy !== null) {
    const message =
      end.endedBy === 'timeout'
        ? `the command did not end within ${context.shellTimeoutMs / 1_000} seconds and was ended`
        : `the command wrote more than ${SHELL_OUTPUT_BYTES} bytes and was ended`;
    const last = wellFormed(end.output.text().slice(-SHELL_LAST_WORDS));
    const code = end.endedBy === 'timeout' ? 'TIMEOUT' : 'TOO_MUCH_OUTPUT';
    return failed(
      code,
      last === '' ? `${message}; it wrote nothing` : `${message}; its last output:\n${last}`,
    );
  }
  const status = end.signal === null ? `exit code ${end.code}` : `ended by ${end.signal}`;
  const left = end.leftBehind ? ', what it left running was ended' : '';
  const output = end.output.text();
  // The status comes first because a preview shows only the beginning.
  return completed(output === '' ? `[${status}${left}, no output]` : `[${status}${left}]\n${output}`);
}
