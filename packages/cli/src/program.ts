import { Command } from 'commander'
import { VERSION } from './version.js'
import { acquireCommand } from './commands/acquire.js'
import { backupCommand } from './commands/backup.js'
import { benchCommand } from './commands/bench.js'
import { clusterCommand } from './commands/cluster.js'
import { completionCommand } from './commands/completion.js'
import { demoCommand } from './commands/demo.js'
import { doctorCommand } from './commands/doctor.js'
import { enginesCommand } from './commands/engines.js'
import { getCommand } from './commands/get.js'
import { guardCommand } from './commands/guard.js'
import { inspectCommand } from './commands/inspect.js'
import { labCommand } from './commands/lab.js'
import { keyCommand } from './commands/key.js'
import { lsCommand } from './commands/ls.js'
import { putCommand } from './commands/put.js'
import { recoverCommand } from './commands/recover.js'
import { releaseCommand } from './commands/release.js'
import { renewCommand } from './commands/renew.js'
import { restoreCommand } from './commands/restore.js'
import { runCommand } from './commands/run.js'
import { serveCommand } from './commands/serve.js'
import { sessionCommand } from './commands/session.js'
import { stealCommand } from './commands/steal.js'
import { verifyCommand } from './commands/verify.js'
import { watchCommand } from './commands/watch.js'
import type { Outcome } from './outcome.js'

const EXIT_CODES = `
Exit codes:
  0 done · 1 other failure or conflict · 64 wrong usage · 69 service unreachable, no quorum or outcome unknown
  74 storage · 75 not acquired in time or limit reached · 76 hold lost or gone · 77 not allowed
  130 interrupted while waiting

Examples:
  $ leasehold serve --data ./data
  $ leasehold run nightly-report -- ./report.sh
  $ leasehold ls
`

/** Creates the command line. Commands throw typed errors; usage errors are `CommanderError`s. */
export function createProgram(outcome: Outcome): Command {
  const program = new Command('leasehold')
    .description('Distributed locks with fencing tokens')
    .version(VERSION, '-v, --version')
    .showSuggestionAfterError()
    .showHelpAfterError('(add --help for the options and an example)')
    .addHelpText('after', EXIT_CODES)
  const commands = [
    serveCommand(),
    runCommand(outcome),
    acquireCommand(),
    renewCommand(),
    releaseCommand(),
    lsCommand(),
    inspectCommand(),
    watchCommand(),
    stealCommand(),
    sessionCommand(),
    getCommand(outcome),
    putCommand(),
    clusterCommand(),
    keyCommand(),
    backupCommand(),
    restoreCommand(),
    verifyCommand(),
    recoverCommand(),
    guardCommand(),
    enginesCommand(),
    doctorCommand(outcome),
    demoCommand(outcome),
    benchCommand(),
    labCommand(outcome),
    completionCommand(),
  ]
  for (const command of commands) program.addCommand(command)
  exitByException(program)
  return program
}

/** Makes all levels throw on a usage error instead of exiting: `addCommand` does not inherit settings. */
function exitByException(command: Command): void {
  command.exitOverride()
  for (const child of command.commands) {
    child.copyInheritedSettings(command)
    exitByException(child)
  }
}
