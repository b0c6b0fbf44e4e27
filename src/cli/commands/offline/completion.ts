import { Argument, type Command } from 'commander';
import type { Act } from '../../context.ts';

/** Shell completion, generated from the tree of commands. Ids of conversations and slugs come from the daemon in use. */

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

export function addCompletion(program: Command, act: Act): void {
  const added = program
    .command('completion')
    .description('print a script that completes commands, options, conversations and agents')
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS));
  act(added, async (context, shell: Shell) => context.line(SCRIPTS[shell](linesOf(program))));
}

/** `words of the command|what may follow`. `@c`: ids of conversations; `@a`: slugs of agents. */
function linesOf(program: Command): string[] {
  const global = flagsOf(program);
  const walk = (command: Command, path: string): string[] => [
    `${path}|${[...command.commands.map((one) => one.name()), ...argumentsOf(command), ...flagsOf(command), ...(path === '' ? [] : global)].join(' ')}`,
    ...command.commands.flatMap((one) => walk(one, `${path} ${one.name()}`.trim())),
  ];
  return walk(program, '');
}

function flagsOf({ options }: Command): string[] {
  return options.filter(({ hidden }) => !hidden).flatMap(({ long }) => long ?? []);
}

function argumentsOf({ registeredArguments }: Command): string[] {
  return registeredArguments.flatMap((argument) => {
    if (argument.name() === 'conversation') return ['@c'];
    if (argument.name() === 'agent') return ['@a'];
    return argument.argChoices ?? [];
  });
}

/** A daemon that does not answer must not block the shell. */
const ASK = 'timeout 2 parley';

/** `found`: the words of this variable, in that shell. */
const LOOK_UP = (lines: readonly string[], found = '$found') => `_parley_words() {
  local path="" word line found=""
  for word in "$@"; do
    case "$word" in -*) continue ;; esac
    if grep -q -F -x -e "$path$word" <<< "$_parley_paths"; then path="$path$word "; fi
  done
  line="\${path% }|"
  found=$(while IFS= read -r one; do case "$one" in "$line"*) printf '%s' "\${one#"$line"}" ;; esac; done <<< "$_parley_lines")
  case " $found " in *" @c "*) found="\${found/@c/} $(${ASK} ls 2>/dev/null | awk 'NR > 1 { print $1 }')" ;; esac
  case " $found " in *" @a "*) found="\${found/@a/} $(${ASK} agents 2>/dev/null | awk 'NR > 1 { print $1 }')" ;; esac
  printf '%s\\n' ${found}
}
_parley_lines='${lines.join('\n')}'
_parley_paths=$(cut -d'|' -f1 <<< "$_parley_lines")`;

const SCRIPTS: Record<Shell, (lines: readonly string[]) => string> = {
  bash: (lines) => `# parley: source <(parley completion bash)
${LOOK_UP(lines)}
_parley() {
  COMPREPLY=($(compgen -W "$(_parley_words "\${COMP_WORDS[@]:1:COMP_CWORD-1}")" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _parley parley`,
  zsh: (lines) => `#compdef parley
# parley: source <(parley completion zsh)
${LOOK_UP(lines, '$=found')}
_parley() { compadd -- $(_parley_words "\${(@)words[2,CURRENT-1]}") }
compdef _parley parley`,
  fish: (lines) => `# parley: parley completion fish | source
set -g _parley_lines ${lines.map((line) => `'${line}'`).join(' ')}
function _parley_words
  set -l path ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$path $word")
    if string match -q -- "$next|*" $_parley_lines
      set path $next
    end
  end
  for line in $_parley_lines
    if string match -q -- "$path|*" $line
      for one in (string split ' ' -- (string split -m1 '|' -- $line)[2])
        switch $one
          case '@c'
            ${ASK} ls 2>/dev/null | awk 'NR > 1 { print $1 }'
          case '@a'
            ${ASK} agents 2>/dev/null | awk 'NR > 1 { print $1 }'
          case '*'
            echo $one
        end
      end
    end
  end
end
complete -c parley -f -a '(_parley_words)'`,
};
