import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mutantsCommand } from './mutants-command.js'
import { PACKAGES_FOLDER } from './copy.js'

const document = join(PACKAGES_FOLDER, '..', 'docs', 'internals', 'mutants.md')

process.exitCode = await mutantsCommand(process.argv.slice(2), {
  out: (line) => process.stdout.write(`${line}\n`),
  read: () => readFileSync(document, 'utf8'),
  write: (text) => writeFileSync(document, text),
})
