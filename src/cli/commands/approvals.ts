import type { Command } from 'commander';
import type { ParleyClient } from '../../client/index.ts';
import { ParleyError } from '../../client/index.ts';
import type { Act } from '../act.ts';
import type { Context } from '../context.ts';
import { withDaemon } from '../find-daemon.ts';
import { conversationId } from '../options.ts';
import { publisherOf } from '../publisher.ts';
import { approvalLines } from '../render/approvals.ts';

/** What waits for a person's word, and giving it. */

type Answer = {
  answer: 'approve' | 'deny' | 'rerun' | 'result' | 'failed';
  reason?: string;
  result?: unknown;
};

export function addApprovals(program: Command, act: Act): void {
  program
    .command('approvals')
    .description('list the calls that wait for a person')
    .argument('[conversation]', 'only of this one', conversationId)
    .action((conversation: string | undefined, _options: object, command: Command) =>
      act(command, (context) => withDaemon(context, (client) => list(context, client, conversation))),
    );
  addAnswer(program, act, 'approve', 'let a call run', () => ({ answer: 'approve' }));
  program
    .command('deny')
    .description('refuse a call')
    .argument('<id>', 'of the approval')
    .option('--reason <text>', 'the model reads it')
    .action((id: string, { reason }: { reason?: string }, command: Command) =>
      act(command, (context) => give(context, id, { answer: 'deny', reason })),
    );
  addResolve(program, act);
}

async function list(
  context: Context,
  client: ParleyClient,
  conversation: string | undefined,
): Promise<number> {
  const { approvals, more } = await client.request('approvals', { conversation });
  for (const approval of approvals) {
    if (context.json) context.value(approval);
    else for (const line of approvalLines(approval)) context.line(line);
  }
  if (more) context.note(`${more} more wait: name a conversation, or answer some of these`);
  if (!context.json && approvals.length === 0) context.line('nothing waits for approval');
  return 0;
}

function addAnswer(
  program: Command,
  act: Act,
  verb: string,
  description: string,
  answer: () => Answer,
): void {
  program
    .command(verb)
    .description(description)
    .argument('<id>', 'of the approval')
    .action((id: string, _options: object, command: Command) =>
      act(command, (context) => give(context, id, answer())),
    );
}

interface ResolveOptions {
  readonly result?: string;
  readonly rerun?: boolean;
  readonly failed?: boolean;
}

function addResolve(program: Command, act: Act): void {
  program
    .command('resolve')
    .description('say what became of a call whose outcome is unknown')
    .argument('<id>', 'of the approval')
    .option('--result <json>', 'it happened, and gave this')
    .option('--rerun', 'run it again')
    .option('--failed', 'it did not happen')
    .action((id: string, options: ResolveOptions, command: Command) =>
      act(command, (context) => give(context, id, resolution(options))),
    );
}

function resolution({ result, rerun, failed }: ResolveOptions): Answer {
  const chosen = [result !== undefined, rerun === true, failed === true].filter(Boolean).length;
  if (chosen !== 1) {
    throw new ParleyError('USAGE', 'resolve takes exactly one of --result, --rerun and --failed', {
      hint: 'parley resolve ID --rerun',
    });
  }
  if (rerun) return { answer: 'rerun' };
  if (failed) return { answer: 'failed' };
  return { answer: 'result', result: asJson(result ?? '') };
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ParleyError('USAGE', `--result is not JSON: ${text}`, {
      hint: 'quote it: --result \'"done"\'',
    });
  }
}

function give(context: Context, approvalId: string, answer: Answer): Promise<number> {
  return withDaemon(context, async (client) => {
    const accepted = await client.request('answer', {
      approvalId,
      publisher: publisherOf(context),
      ...answer,
    });
    if (context.json) context.value(accepted);
    else context.line(`${approvalId}: ${answer.answer}`);
    return 0;
  });
}
