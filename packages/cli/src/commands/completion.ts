import { Argument, Command } from 'commander'
import { print, printJson } from '../output.js'
import { SHELLS, type Shell } from '../completion/shells.js'

/** `completion SHELL`: the words of this command line, for the shell's completion. */
export function completionCommand(): Command {
  return new Command('completion')
    .addArgument(new Argument('<shell>', 'whose script to print').choices(SHELLS))
    .description('print a script with which a shell completes commands and options')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Put the line for your shell into its startup file:
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
