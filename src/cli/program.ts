import { Command, CommanderError } from 'commander';
import { escapeHidden, ParleyError, VERSION } from '../kernel/index.ts';
import { addAcp } from './commands/conversations/acp.ts';
import { addApprovals } from './commands/conversations/approvals.ts';
import { addChat } from './commands/conversations/chat.ts';
import { addExplain } from './commands/conversations/explain.ts';
import { addFile } from './commands/conversations/file.ts';
import { addLs, addSearch, addTurns } from './commands/conversations/ls.ts';
import { addRm } from './commands/conversations/rm.ts';
import { addRun, addSay } from './commands/conversations/say.ts';
import { addRecord, addShow, addTail } from './commands/conversations/show.ts';
import {
  addDismiss,
  addFeedback,
  addFork,
  addHire,
  addMode,
  addPhase,
  addResume,
  addStop,
} from './commands/conversations/steer.ts';
import { addWhatIf } from './commands/conversations/what-if.ts';
import { addDead } from './commands/daemon/dead.ts';
import { addDoctor } from './commands/daemon/doctor.ts';
import { addJoin } from './commands/daemon/join.ts';
import { addMcp } from './commands/daemon/mcp.ts';
import { addAgents, addReload, addStatus, addToken } from './commands/daemon/status.ts';
import { addUp } from './commands/daemon/up.ts';
import { addCompletion } from './commands/offline/completion.ts';
import { addExport, addFsck, addImport, addNatsConfig } from './commands/offline/files.ts';
import { addInit } from './commands/offline/init.ts';
import { addBackup, addMigrate } from './commands/offline/stores.ts';
import { type Act, createContext } from './context.ts';
import { type CliDependencies, type Io, realDependencies } from './io.ts';
import { addGlobalOptions, type GlobalOptions, refuseIgnored } from './options/options.ts';
import { type Failure, renderFailure } from './render/text.ts';

/**
 * The command line.
 *
 * main.ts      the process; program.ts the parser and the exit codes; io.ts, context.ts the input of a command; find-daemon.ts
 * commands/    short commands of one kind share a file (steer.ts). conversations/: of one conversation or their list; daemon/:
 *              start, state and dead letters of a daemon; offline/: without a running daemon (new projects, logs, server configuration)
 * chat/        the interactive chat: lines, the screen with pasted text, the session with the outbox of its messages
 * doctor/      the checks of `parley doctor`, and file permissions
 * follow/      posts, follows and waits (post-and-wait.ts: for say and run), prints pending approvals
 * options/     global options, which command accepts which, suggested commands, the publisher
 * output/      log, telemetry, spinner, questions
 * render/      text for people; pure
 *
 * PROGRAM-1 Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.
 * PROGRAM-2 Results go to stdout, everything else to stderr. With `--json` an error is also one line on stdout.
 * PROGRAM-3 No code here ends the process: `run` returns the exit code.
 */

const DONE = 0;
const FAILED = 1;
const MISUSED = 2;

export async function run(
  argv: readonly string[],
  io: Io,
  dependencies: CliDependencies = realDependencies(),
): Promise<number> {
  let exitCode = DONE;
  const act: Act = (command, work) =>
    command.action(async (...given) => {
      refuseIgnored(command, io);
      const context = createContext(io, dependencies, command.optsWithGlobals<GlobalOptions>());
      const code = await work(context, ...(given.slice(0, -1) as never));
      if (typeof code === 'number') exitCode = code;
    });
  const program = createProgram(io, act);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return usageOutcome(error, program, argv, io);
    const context = createContext(io, dependencies, program.opts<GlobalOptions>());
    tell(context.failure(error), argv, io);
    if (argv.includes('--verbose') && error instanceof Error)
      io.stderr.write(`${escapeHidden(error.stack ?? '')}\n`);
    return error instanceof ParleyError && /^(CONFIG_|USAGE)/.test(error.code) ? MISUSED : FAILED;
  }
}

export function createProgram(io: Io, act: Act): Command {
  const program = new Command('parley')
    .description('People and several LLM agents on one thread, over NATS.')
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: () => {}, // `run` prints it, like every other error
    });
  addGlobalOptions(program);
  program.addHelpText('afterAll', ({ command }) =>
    command === program ? '' : '\nGlobal options (--json, --data, --nats, …): parley --help',
  );
  for (const [group, adders] of Object.entries(COMMANDS)) {
    program.commandsGroup(`${group}:`);
    for (const add of adders) add(program, act);
  }
  return program;
}

/** By heading of `parley --help`. */
const COMMANDS = {
  Talk: [addChat, addSay, addRun, addLs, addSearch, addTurns, addShow, addTail, addFeedback, addFile, addAcp],
  Explain: [addExplain, addWhatIf, addFork, addRecord],
  Steer: [addPhase, addMode, addStop, addResume, addApprovals, addHire, addDismiss, addRm],
  'Run a daemon': [addUp, addJoin, addReload, addStatus, addAgents, addDead, addToken, addMcp, addDoctor],
  'Without a daemon': [addBackup, addFsck, addExport, addImport, addMigrate, addNatsConfig],
  'Set up': [addInit, addCompletion],
};

/** Help and version are results; every other parser error is wrong usage (PROGRAM-1). */
function usageOutcome(error: CommanderError, program: Command, argv: readonly string[], io: Io): number {
  if (error.exitCode === 0) return DONE;
  if (error.code === 'commander.help') return MISUSED; // no command given: the parser has printed the help
  const commands = named(program, argv);
  const words = commands.map((command) => ` ${command.name()}`).join('');
  const hint = `usage: parley${words} ${(commands.at(-1) ?? program).usage()}\nmore: ${io.invocation}${words} --help`;
  tell({ code: 'USAGE', message: error.message.replace(/^error: /, ''), hint }, argv, io);
  return MISUSED;
}

/** The command in `argv`, after its parent commands; empty if there is none. */
function named(program: Command, argv: readonly string[]): Command[] {
  for (const [at, word] of argv.entries()) {
    const command = program.commands.find((candidate) => candidate.name() === word);
    if (command) return [command, ...named(command, argv.slice(at + 1))];
  }
  return [];
}

function tell(failure: Failure, argv: readonly string[], io: Io): void {
  const end = argv.indexOf('--');
  const json = (end === -1 ? argv : argv.slice(0, end)).includes('--json');
  if (json) io.stdout.write(`${escapeHidden(JSON.stringify({ error: failure }))}\n`);
  io.stderr.write(`${renderFailure(failure)}\n`);
}
