import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { checkHistoryCommand } from './check-history-command.js'

process.exitCode = await checkHistoryCommand(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  readText,
  now: processorMs,
})

/** Time that this process has computed, in milliseconds: a busy machine does not turn answers into unknown ones. */
function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** npm starts scripts in the project's root: a path is also tried from where the user called. */
async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const calledFrom = process.env['INIT_CWD']
    if (calledFrom === undefined || resolve(file) === resolve(calledFrom, file)) throw error
    return await readFile(resolve(calledFrom, file), 'utf8')
  }
}
