import { parse } from 'shell-quote';

/**
 * Normalizes shell commands for the rules of the policy.
 *
 * SHELL-COMMAND-1  A plain command is one command with arguments that every shell parses alike: no operator, redirection,
 *                  expansion, pattern, comment, escape or assignment. Only a plain command can match an allow rule.
 * SHELL-COMMAND-2  It has one normal form, whatever its quotes: words of safe characters unquoted, others in '…'.
 * SHELL-COMMAND-3  A list of plain commands is parsed completely. Of other input only a part may be visible, so it is
 *                  never allowed while a rule might forbid it.
 * SHELL-COMMAND-4  A program that runs its arguments, or a text in them, hides a command. The list of such programs is never
 *                  complete, so each word may begin a command. A rule that forbids is still no boundary.
 */

/** These characters need no quotes in any shell. */
const BARE = String.raw`A-Za-z0-9_@%+=:,.\/\-`;
const UNSEEN = String.raw`\p{C}\p{Zl}\p{Zp}`;
const QUOTED = String.raw`'[^'${UNSEEN}]*'|"[^"$\x60\\${UNSEEN}]*"`;
const PLAIN = new RegExp(`^(?:[${BARE} \\t]|${QUOTED})*$`, 'u');
const LIST = new RegExp(`^(?:[${BARE} \\t;&|]|${QUOTED})*$`, 'u');
const BARE_WORD = new RegExp(`^[${BARE}]+$`, 'u');

const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/u;
/** After these words the shell expects a command, or it runs their arguments as commands. */
const KEYWORDS: ReadonlySet<string> = new Set(
  'if then else elif fi for while until do done case esac in function select time coproc eval exec command builtin trap alias source .'.split(
    ' ',
  ),
);

/** SHELL-COMMAND-4, by the name without its folder. */
const WRAPPERS: ReadonlySet<string> = new Set(
  (
    'env nice ionice timeout gtimeout nohup xargs parallel sudo sudoedit doas su runuser setpriv pkexec busybox toybox ' +
    'setsid stdbuf unbuffer time chroot chrt taskset numactl unshare nsenter flock watch script expect strace ltrace gdb ' +
    'valgrind systemd-run at batch entr ssh fakeroot proot bwrap firejail catchsegv caffeinate start-stop-daemon run-parts ' +
    'sh ash bash dash rbash zsh ksh mksh csh tcsh fish pwsh tclsh'
  ).split(' '),
);
const INTERPRETER = /^(python|perl|ruby|node|nodejs|php|lua|deno|bun|awk|gawk|mawk)[\d.]*$/;
const INLINE_CODE = /^(-\w*[cer]|--?(eval|print|run))|system|exec/i;
const FIND_ACTION = /^-(exec|execdir|ok|okdir)$/;

function hidesCommand([program = '', ...rest]: readonly string[]): boolean {
  const name = program.slice(program.lastIndexOf('/') + 1).toLowerCase();
  if (name === 'find') return rest.some((word) => FIND_ACTION.test(word));
  if (INTERPRETER.test(name)) return rest.some((word) => INLINE_CODE.test(word));
  return WRAPPERS.has(name) || KEYWORDS.has(name);
}

/** SHELL-COMMAND-1, SHELL-COMMAND-2; null: it is not plain. */
export function plainCommand(text: string): string | null {
  if (!PLAIN.test(text)) return null;
  const [words = [], ...others] = simpleCommands(text);
  const [name = ''] = words;
  if (others.length > 0 || name === '' || name.includes('=') || KEYWORDS.has(name)) return null;
  return inOneForm(words);
}

interface Commands {
  /** The visible ones in normal form (SHELL-COMMAND-2). */
  readonly commands: readonly string[];
  /** What a program may run that is given its arguments (SHELL-COMMAND-4): the text from each of its words on. */
  readonly possible: readonly string[];
  /** There are no others (SHELL-COMMAND-3). */
  readonly isAll: boolean;
}

export function commandsIn(text: string): Commands {
  const commands = simpleCommands(text.replaceAll('\n', ' ; ')).map(withoutAssignments);
  const words = text.split(NOT_IN_A_WORD).filter((word) => word !== '');
  const isShort = text.length <= LONGEST && words.length <= MOST_WORDS;
  const isAll = isShort && LIST.test(text) && !commands.some(hidesCommand);
  const possible = isShort ? words.map((_, at) => byName(words.slice(at)).join(' ')) : [];
  return { commands: commands.flatMap((one) => [inOneForm(one), inOneForm(byName(one))]), possible, isAll };
}

/** Quotes and signs between words: `--to-command=rm`, `'1e rm x'`, `system("rm x")`. */
const NOT_IN_A_WORD = /[^\w@%+./~-]+/;
/** A longer command cannot be read: comparing it from each word on takes quadratic time. */
const LONGEST = 4_000;
const MOST_WORDS = 500;

function simpleCommands(text: string): string[][] {
  const commands: string[][] = [[]];
  for (const token of tokensOf(text)) {
    if (typeof token === 'string') commands.at(-1)?.push(token);
    else if ('pattern' in token) commands.at(-1)?.push(token.pattern);
    else commands.push([]);
  }
  return commands.filter((words) => words.length > 0);
}

function tokensOf(text: string): ReturnType<typeof parse> {
  try {
    return parse(text);
  } catch {
    return []; // a substitution that no shell accepts either
  }
}

function withoutAssignments(words: readonly string[]): readonly string[] {
  const start = words.findIndex((word) => !ASSIGNMENT.test(word));
  return start < 0 ? [] : words.slice(start);
}

/** `/bin/rm x` as `rm x`. */
function byName([program = '', ...rest]: readonly string[]): string[] {
  return [program.slice(program.lastIndexOf('/') + 1), ...rest];
}

function inOneForm(words: readonly string[]): string {
  return words
    .map((word) => (BARE_WORD.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`))
    .join(' ');
}
