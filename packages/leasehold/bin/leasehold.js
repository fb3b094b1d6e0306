#!/usr/bin/env node
// Starts the command line, which is a package of its own.

const EXIT_USAGE = 64

/** The URL of the package, or undefined if it is not installed. */
function commandLine() {
  try {
    return import.meta.resolve('@leasehold/cli')
  } catch (error) {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

const url = commandLine()
if (url === undefined) {
  process.stderr.write(
    'leasehold: the command line is not installed\n  hint: npm install @leasehold/cli, in the version of leasehold\n',
  )
  process.exitCode = EXIT_USAGE
} else {
  void import(url).then(({ run }) => run(process.argv.slice(2)))
}
