import { Argument, Command } from 'commander'
import { print, printJson } from '../output.js'
import { SHELLS, type Shell } from '../completion/shells.js'

/** `completion SHELL`: prints the completion script of a shell. */
export function completionCommand(): Command {
  return new Command('completion')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .description('print a script that completes commands and options in a shell')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Add the line for your shell to its startup file:
  bash  eval "$(leasehold completion bash)"
  zsh   eval "$(leasehold completion zsh)"      after compinit
  fish  leasehold completion fish | source

Example:
  $ eval "$(leasehold completion bash)"`,
    )
    .action(async (shell: Shell, { json }: { json?: boolean }, command: Command) => {
      const { completionScript } = await import('../completion/scripts.js')
      const script = completionScript(command.parent as Command, shell)
      if (json === true) printJson({ shell, script })
      else print(script.trimEnd())
    })
}
